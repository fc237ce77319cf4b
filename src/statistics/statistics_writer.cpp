#include "statistics/statistics_writer.h"

#include <cassert>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "statistics/checkpoint_file.h"

namespace qcalib {

namespace {

constexpr std::string_view part_suffix = ".part";

std::filesystem::path part_of(const std::filesystem::path& path) {
    std::filesystem::path part = path;
    part += part_suffix;
    return part;
}

[[noreturn]] void refuse_part(const std::filesystem::path& path, const std::string& found) {
    fail("{}: expected the rows of the run that was broken off, found {}{}",
         printable(part_of(path).string()), found, start_anew(path));
}

// Makes sure that the file's part is there and starts as written, and puts that start through the digest.
std::uint64_t check_part(const std::filesystem::path& path, const WrittenRows& written, Sha256& digest) {
    const std::filesystem::path part = part_of(path);
    const bool there = std::filesystem::exists(part);
    if (!there && !std::filesystem::exists(path)) refuse_part(path, "no file");
    const MappedFile file(there ? part : path);
    if (file.bytes().size() < written.bytes) {
        refuse_part(path, fmt::format("{} of {} bytes", file.bytes().size(), written.bytes));
    }
    digest.update(file.bytes().first(written.bytes));
    if (digest.so_far() != written.digest) refuse_part(path, "other contents");
    if (there) return written.bytes;
    OutputFile copy(part);
    copy.write(file.bytes().first(written.bytes));
    copy.commit();
    return written.bytes;
}

}  // namespace

RecordWriter::RecordWriter(const std::filesystem::path& path, const StatisticsHeader& header)
    : file_(path, part_suffix),
      layout_(records::row_entries(header), header.counter.extremes_only),
      tensors_left_(header.tensors.size()) {
    write(records::prefix(records::magic, records::version));
    write_record(records::Kind::header, records::encode(header));
}

RecordWriter::RecordWriter(const std::filesystem::path& path, const StatisticsHeader& header,
                           const WrittenRows& written)
    : file_(path, part_suffix, check_part(path, written, digest_)),
      layout_(records::row_entries(header), header.counter.extremes_only),
      tensors_left_(header.tensors.size()) {}

void RecordWriter::add_row(const Row& row) {
    assert(!last_row_ || row.number > *last_row_);
    last_row_ = row.number;
    add_encoded_row(records::encode(row, layout_));
}

void RecordWriter::add_encoded_row(std::string_view row) {
    assert(row.size() == layout_.length());
    write_record(records::Kind::row, row);
}

void RecordWriter::add_tensor(const TensorStatistics& statistics) {
    assert(tensors_left_ > 0);
    --tensors_left_;
    write_record(records::Kind::tensor, records::encode(statistics));
}

WrittenRows RecordWriter::sync() {
    file_.sync();
    return {file_.size(), digest_.so_far()};
}

void RecordWriter::finish(std::span<const std::uint64_t> skipped) {
    assert(tensors_left_ == 0);
    write_record(records::Kind::skipped, records::encode_skipped(skipped));
    file_.write(digest_.finish());
    file_.commit();
}

void RecordWriter::write(std::string_view bytes) {
    digest_.update(std::as_bytes(std::span(bytes)));
    file_.write(bytes);
}

void RecordWriter::write_record(records::Kind kind, std::string_view bytes) {
    write(records::record_head(static_cast<std::uint32_t>(kind), bytes.size()));
    write(bytes);
}

struct StatisticsWriter::State {
    State(const std::filesystem::path& path, const StatisticsHeader& header) : writer(path, header) {}
    State(const std::filesystem::path& path, const StatisticsHeader& header, const WrittenRows& written)
        : writer(path, header, written) {}

    RecordWriter writer;
};

StatisticsWriter::StatisticsWriter(const std::filesystem::path& path, const StatisticsHeader& header)
    : state_(std::make_unique<State>(path, header)) {}

StatisticsWriter::StatisticsWriter(const std::filesystem::path& path, const StatisticsHeader& header,
                                   const WrittenRows& written)
    : state_(std::make_unique<State>(path, header, written)) {}

StatisticsWriter::~StatisticsWriter() = default;

void StatisticsWriter::add_row(const Row& row) {
    state_->writer.add_row(row);
}

WrittenRows StatisticsWriter::sync() {
    return state_->writer.sync();
}

void StatisticsWriter::finish(std::span<const TensorStatistics> tensors,
                              std::span<const std::uint64_t> skipped) {
    for (const TensorStatistics& tensor : tensors) state_->writer.add_tensor(tensor);
    state_->writer.finish(skipped);
}

void StatisticsWriter::finish(const StatisticsSet& tensors, std::span<const std::uint64_t> skipped) {
    for (std::size_t i = 0; i < tensors.size(); ++i) state_->writer.add_tensor(tensors[i]);
    state_->writer.finish(skipped);
}

}  // namespace qcalib
