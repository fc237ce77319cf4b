#include "statistics/statistics_writer.h"

#include <cassert>
#include <span>

namespace qcalib {

RecordWriter::RecordWriter(const std::filesystem::path& path, const StatisticsHeader& header)
    : file_(path, ".part"),
      layout_(records::row_entries(header), header.counter.extremes_only),
      tensors_left_(header.tensors.size()) {
    write(records::prefix());
    write_record(records::Kind::header, records::encode(header));
}

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
    write(records::record_head(kind, bytes.size()));
    write(bytes);
}

struct StatisticsWriter::State {
    State(const std::filesystem::path& path, const StatisticsHeader& header) : writer(path, header) {}

    RecordWriter writer;
};

StatisticsWriter::StatisticsWriter(const std::filesystem::path& path, const StatisticsHeader& header)
    : state_(std::make_unique<State>(path, header)) {}

StatisticsWriter::~StatisticsWriter() = default;

void StatisticsWriter::add_row(const Row& row) {
    state_->writer.add_row(row);
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
