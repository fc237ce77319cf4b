#include "statistics/checkpoint_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "statistics/record_format.h"
#include "statistics/tensor_record.h"

namespace qcalib {

namespace {

constexpr std::string_view checkpoint_magic = "\x89QSTCKP\n";
constexpr std::uint32_t checkpoint_version = 1;
constexpr std::string_view temporary_suffix = ".tmp";

// Field numbers of qstats::Checkpoint.
enum class Part : std::uint32_t { header = 1, state = 2, tensor = 3 };

qstats::CheckpointState encoded(const Checkpoint& checkpoint) {
    qstats::CheckpointState message;
    message.set_selection(checkpoint.selection);
    message.set_done(checkpoint.done);
    message.set_rows(checkpoint.rows);
    message.set_sequences(checkpoint.sequences);
    message.set_part_bytes(checkpoint.part.bytes);
    message.set_part_digest(checkpoint.part.digest.data(), checkpoint.part.digest.size());
    for (const CheckpointSkip& skip : checkpoint.skipped) {
        qstats::SkippedSample& sample = *message.add_skipped();
        sample.set_number(skip.number);
        sample.set_reason(skip.reason);
    }
    for (const std::string& file : checkpoint.left_over) message.add_left_over(file);
    return message;
}

// Puts the records of a file through its digest.
class CheckpointWriter {
  public:
    explicit CheckpointWriter(const std::filesystem::path& path) : file_(path, temporary_suffix) {
        write(records::prefix(checkpoint_magic, checkpoint_version));
    }
    void add(Part part, std::string_view bytes) {
        write(records::record_head(static_cast<std::uint32_t>(part), bytes.size()));
        write(bytes);
    }
    void finish() {
        file_.write(digest_.finish());
        file_.commit();
    }

  private:
    void write(std::string_view bytes) {
        digest_.update(std::as_bytes(std::span(bytes)));
        file_.write(bytes);
    }

    OutputFile file_;
    Sha256 digest_;
};

}  // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& statistics) {
    std::filesystem::path path = statistics;
    path += ".checkpoint";
    return path;
}

std::string start_anew(const std::filesystem::path& statistics) {
    return fmt::format("; remove {} to start anew", printable(checkpoint_path(statistics).string()));
}

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                      const StatisticsSet& tensors) {
    CheckpointWriter writer(path);
    writer.add(Part::header, records::encode(checkpoint.header));
    writer.add(Part::state, encoded(checkpoint).SerializeAsString());
    for (std::size_t i = 0; i < tensors.size(); ++i) writer.add(Part::tensor, records::encode(tensors[i]));
    writer.finish();
}

void remove_checkpoint(const std::filesystem::path& path) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    std::filesystem::path temporary = path;
    temporary += temporary_suffix;
    std::filesystem::remove(temporary, ignored);
}

struct CheckpointFile::State {
    explicit State(const std::filesystem::path& path) : file(path) {
        check_frame();
        find_records();
        read_state();
    }

    std::string shown() const { return printable(file.path().string()); }
    void check_frame() const;
    void find_records();
    void read_state();
    template <typename Message>
    Message parse(std::string_view record, std::string_view what) const {
        Message message;
        if (record.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
            !message.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
            fail("{}: damaged: the record of {} cannot be read", shown(), what);
        }
        return message;
    }

    MappedFile file;
    std::string_view header_record;
    std::string_view state_record;
    std::vector<std::string_view> tensor_records;
    Checkpoint checkpoint;
};

void CheckpointFile::State::check_frame() const {
    const std::span<const std::byte> bytes = file.bytes();
    const std::string expected = records::prefix(checkpoint_magic, checkpoint_version);
    if (bytes.size() < expected.size() + records::checksum_bytes) {
        fail("{}: truncated: expected a checkpoint, found only its first {} bytes", shown(), bytes.size());
    }
    const std::string_view start{reinterpret_cast<const char*>(bytes.data()), expected.size()};
    if (!start.starts_with(checkpoint_magic)) {
        fail("{}: expected a checkpoint, found other contents", shown());
    }
    if (start != expected) {
        std::uint32_t version = 0;
        std::memcpy(&version, start.data() + checkpoint_magic.size(), sizeof version);
        fail("{}: expected checkpoint version {}, found version {}", shown(), checkpoint_version, version);
    }
    Sha256 digest;
    digest.update(bytes.first(bytes.size() - records::checksum_bytes));
    const Digest found = digest.finish();
    if (!std::equal(found.begin(), found.end(), bytes.last(records::checksum_bytes).begin())) {
        fail("{}: damaged: its checksum is not that of its contents", shown());
    }
}

void CheckpointFile::State::find_records() {
    const std::span<const std::byte> bytes = file.bytes();
    records::Cursor cursor{bytes, bytes.size() - records::checksum_bytes,
                           records::prefix(checkpoint_magic, checkpoint_version).size()};
    auto expected = Part::header;
    while (cursor.at < cursor.end) {
        const std::size_t start = cursor.at;
        const std::optional<std::uint64_t> tag = cursor.varint();
        const std::optional<std::uint64_t> length = tag ? cursor.varint() : std::nullopt;
        if (!length || *length > cursor.end - cursor.at ||
            *tag != (static_cast<std::uint64_t>(expected) << 3 | 2)) {
            fail("{}: damaged: found an unexpected record at byte {}", shown(), start);
        }
        const std::string_view record{reinterpret_cast<const char*>(bytes.data()) + cursor.at,
                                      static_cast<std::size_t>(*length)};
        cursor.at += record.size();
        if (expected == Part::header) {
            header_record = record;
            expected = Part::state;
        } else if (expected == Part::state) {
            state_record = record;
            expected = Part::tensor;
        } else {
            tensor_records.push_back(record);
        }
    }
    if (expected != Part::tensor) fail("{}: damaged: found no state of a run", shown());
}

void CheckpointFile::State::read_state() {
    checkpoint.header = records::decode(parse<qstats::Header>(header_record, "the header"));
    const auto message = parse<qstats::CheckpointState>(state_record, "the run's state");
    checkpoint.selection = message.selection();
    checkpoint.done = message.done();
    checkpoint.rows = message.rows();
    checkpoint.sequences = message.sequences();
    checkpoint.part.bytes = message.part_bytes();
    if (message.part_digest().size() != checkpoint.part.digest.size()) {
        fail("{}: damaged: expected a digest of {} bytes, found {}", shown(), checkpoint.part.digest.size(),
             message.part_digest().size());
    }
    std::memcpy(checkpoint.part.digest.data(), message.part_digest().data(), checkpoint.part.digest.size());
    for (const qstats::SkippedSample& sample : message.skipped()) {
        checkpoint.skipped.push_back({sample.number(), sample.reason()});
    }
    checkpoint.left_over.assign(message.left_over().begin(), message.left_over().end());
    if (checkpoint.header.tensors.size() != tensor_records.size()) {
        fail("{}: damaged: names {} tensors and has the statistics of {}", shown(),
             checkpoint.header.tensors.size(), tensor_records.size());
    }
}

CheckpointFile::CheckpointFile(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}
CheckpointFile::~CheckpointFile() = default;

const Checkpoint& CheckpointFile::checkpoint() const {
    return state_->checkpoint;
}

void CheckpointFile::merge_into(StatisticsSet& tensors) const {
    const StatisticsHeader& header = state_->checkpoint.header;
    for (std::size_t i = 0; i < header.tensors.size(); ++i) {
        const std::string what = fmt::format("tensor '{}'", printable(header.tensors[i].name));
        const TensorStatistics found =
            records::decode(state_->parse<qstats::Tensor>(state_->tensor_records[i], what),
                            header.counter.extremes_only, fmt::format("{}: {}", state_->shown(), what));
        if (!header.tensors[i].constant) {
            tensors.merge(i, found);
        } else if (!(found == tensors[i])) {
            fail("{}: constant '{}' has other values than the model's", state_->shown(),
                 printable(header.tensors[i].name));
        }
    }
}

}  // namespace qcalib
