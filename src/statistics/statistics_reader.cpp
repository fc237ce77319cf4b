#include "statistics/statistics_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "statistics/tensor_record.h"

namespace qcalib {

using records::Kind;

StatisticsReader::StatisticsReader(const std::filesystem::path& path) : file_(path) {
    check_frame();
    find_records();
    check_checksum();
    read_header();
    read_skipped();
    check_rows();
    check_numbers();
}

std::string StatisticsReader::shown() const {
    return printable(path().string());
}

std::string_view StatisticsReader::text(Record record) const {
    return {reinterpret_cast<const char*>(file_.bytes().data()) + record.offset, record.length};
}

void StatisticsReader::check_frame() const {
    const std::string expected = records::prefix(records::magic, records::version);
    const std::size_t size = file_.bytes().size();
    if (size == 0) fail("{}: expected a .qstats file, found an empty one", shown());
    const std::string_view start = text({0, std::min(size, expected.size())});
    const std::size_t named = std::min(start.size(), records::magic.size());
    if (start.substr(0, named) != records::magic.substr(0, named)) {
        fail("{}: expected a .qstats file, found other contents", shown());
    }
    if (size < records::prefix_bytes + records::checksum_bytes) {
        fail("{}: truncated: expected a .qstats file, found only its first {} bytes", shown(), size);
    }
    std::uint32_t version = 0;
    std::memcpy(&version, start.data() + records::magic.size(), sizeof version);
    if (version != records::version) {
        fail("{}: expected .qstats version {}, found version {}", shown(), records::version, version);
    }
}

void StatisticsReader::find_records() {
    records::Cursor cursor{file_.bytes(), file_.bytes().size() - records::checksum_bytes,
                           records::prefix_bytes};
    auto expected = Kind::header;  // the least kind that may come next
    bool ended = false;
    while (!ended) {
        const std::size_t start = cursor.at;
        const std::optional<std::uint64_t> tag = cursor.varint();
        const std::optional<std::uint64_t> length = tag ? cursor.varint() : std::nullopt;
        if (!length || *length > cursor.end - cursor.at) {
            fail("{}: truncated or damaged: the record at byte {} is not whole", shown(), start);
        }
        const auto kind = static_cast<Kind>(*tag >> 3);
        const bool repeats = kind == expected && (kind == Kind::row || kind == Kind::tensor);
        const bool follows = expected == Kind::header ? kind == Kind::header : kind > Kind::header;
        if ((*tag & 7) != 2 || *tag > 0xff || kind > Kind::skipped || !follows ||
            (!repeats && kind < expected)) {
            fail("{}: damaged: found an unexpected record at byte {}", shown(), start);
        }
        const Record record{cursor.at, static_cast<std::size_t>(*length)};
        cursor.at += record.length;
        switch (kind) {
            case Kind::header:
                header_record_ = record;
                break;
            case Kind::row:
                take_row(record, cursor.at - start);
                break;
            case Kind::tensor:
                tensor_records_.push_back(record);
                break;
            case Kind::skipped:
                skipped_record_ = record;
                break;
        }
        expected = kind == Kind::header ? Kind::row : kind;
        ended = kind == Kind::skipped;
    }
    if (cursor.at != cursor.end) {
        fail("{}: found {} bytes behind the last record", shown(), cursor.end - cursor.at);
    }
}

void StatisticsReader::take_row(Record record, std::size_t stride) {
    if (row_count_ == 0) {
        first_row_ = record;
        row_stride_ = stride;
    } else if (record.length != first_row_.length || stride != row_stride_) {
        fail("{}: damaged: row {} has {} bytes, the first one {}", shown(), row_count_, record.length,
             first_row_.length);
    }
    ++row_count_;
}

void StatisticsReader::check_checksum() const {
    const std::span<const std::byte> bytes = file_.bytes();
    Sha256 digest;
    digest.update(bytes.first(bytes.size() - records::checksum_bytes));
    const Digest found = digest.finish();
    if (!std::equal(found.begin(), found.end(), bytes.last(records::checksum_bytes).begin())) {
        fail("{}: damaged: its checksum is not that of its contents", shown());
    }
}

template <typename Message>
Message StatisticsReader::parse(Record record, std::string_view what) const {
    Message message;
    if (record.length > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
        !message.ParseFromArray(text(record).data(), static_cast<int>(record.length))) {
        fail("{}: damaged: the record of {} cannot be read", shown(), what);
    }
    return message;
}

void StatisticsReader::read_header() {
    header_ = records::decode(parse<qstats::Header>(header_record_, "the header"));
    std::size_t position = 0;
    for (const TensorInfo& info : header_.tensors) positions_.push_back(info.constant ? 0 : position++);
    layout_ = records::RowLayout(position, header_.counter.extremes_only);
    if (header_.shard < 1 || header_.shard > header_.shards) {
        fail("{}: found the impossible shard {}/{}", shown(), header_.shard, header_.shards);
    }
    if (header_.counter.mask_below && !(*header_.counter.mask_below <= 0)) {
        fail("{}: expected a negative mask setting, found {}", shown(), *header_.counter.mask_below);
    }
    check_tensor_names();
}

void StatisticsReader::check_tensor_names() const {
    std::unordered_set<std::string_view> names;
    for (const TensorInfo& tensor : header_.tensors) {
        if (!names.insert(tensor.name).second)
            fail("{}: lists tensor '{}' twice", shown(), printable(tensor.name));
    }
    if (tensor_records_.size() != header_.tensors.size()) {
        fail("{}: lists {} tensors and has the statistics of {}", shown(), header_.tensors.size(),
             tensor_records_.size());
    }
}

void StatisticsReader::read_skipped() {
    const auto message = parse<qstats::Skipped>(skipped_record_, "the skipped samples");
    skipped_.assign(message.numbers().begin(), message.numbers().end());
}

std::string_view StatisticsReader::encoded_row(std::size_t row) const {
    return text({first_row_.offset + row * row_stride_, first_row_.length});
}

std::uint64_t StatisticsReader::row_number(std::size_t row) const {
    std::uint64_t number = 0;
    std::memcpy(&number, encoded_row(row).data() + records::RowLayout::number, sizeof number);
    return number;
}

float StatisticsReader::row_value(std::size_t row, std::size_t array, std::size_t position) const {
    float value = 0;
    std::memcpy(&value, encoded_row(row).data() + layout_.array(array) + position * sizeof value,
                sizeof value);
    return value;
}

SampleSummary StatisticsReader::entry(std::size_t row, std::size_t tensor) const {
    SampleSummary summary;
    const std::size_t position = positions_[tensor];
    const float min = row_value(row, 0, position);
    summary.has_data = !std::isnan(min);
    if (!summary.has_data) return summary;
    summary.min = min;
    summary.max = row_value(row, 1, position);
    if (layout_.arrays() > 2) {
        summary.low_tail = row_value(row, 2, position);
        summary.high_tail = row_value(row, 3, position);
    }
    return summary;
}

void StatisticsReader::check_rows() const {
    if (row_count_ > 0 && first_row_.length != layout_.length()) {
        fail("{}: expected rows of {} bytes for {} tensors, found {} bytes", shown(), layout_.length(),
             layout_.entries(), first_row_.length);
    }
    for (std::size_t row = 0; row < row_count_; ++row) {
        const std::string_view bytes = encoded_row(row);
        bool as_laid_out = bytes[0] == (1 << 3 | 1);
        for (std::size_t array = 0; array < layout_.arrays(); ++array) {
            const std::string head = layout_.array_head(array);
            as_laid_out =
                as_laid_out && bytes.substr(layout_.array(array) - head.size(), head.size()) == head;
        }
        if (!as_laid_out) fail("{}: damaged: row {} is not laid out as a row", shown(), row);
        for (std::size_t tensor = 0; tensor < header_.tensors.size(); ++tensor) {
            if (!header_.tensors[tensor].constant) check_entry(row, tensor);
        }
    }
}

void StatisticsReader::check_entry(std::size_t row, std::size_t tensor) const {
    std::size_t absent = 0;
    for (std::size_t array = 0; array < layout_.arrays(); ++array) {
        absent += std::isnan(row_value(row, array, positions_[tensor])) ? 1 : 0;
    }
    if (absent == layout_.arrays()) return;
    const SampleSummary found = entry(row, tensor);
    bool possible =
        absent == 0 && std::isfinite(found.min) && std::isfinite(found.max) && found.min <= found.max;
    if (layout_.arrays() > 2) {
        possible = possible && found.min <= found.low_tail && found.low_tail <= found.high_tail &&
                   found.high_tail <= found.max;
    }
    if (!possible) {
        fail("{}: sample {}, tensor '{}': found impossible minimum, maximum or tails", shown(),
             row_number(row), printable(header_.tensors[tensor].name));
    }
}

// Rows and skipped numbers ascend and are together the shard's part of the selection.
void StatisticsReader::check_numbers() const {
    if (header_.sequences) return check_step_numbers();
    const std::uint64_t first = header_.shard - 1;
    const std::uint64_t expected =
        header_.selected <= first ? 0 : (header_.selected - first - 1) / header_.shards + 1;
    const std::uint64_t found = row_count_ + skipped_.size();
    if (found != expected) {
        fail("{}: expected {} rows and skipped samples in shard {}/{} of {} samples, found {}", shown(),
             expected, header_.shard, header_.shards, header_.selected, found);
    }
    std::size_t row = 0;
    std::size_t skip = 0;
    for (std::uint64_t i = 0; i < expected; ++i) {
        const std::uint64_t number = first + i * header_.shards;
        if (row < row_count_ && row_number(row) == number) {
            ++row;
        } else if (skip < skipped_.size() && skipped_[skip] == number) {
            ++skip;
        } else {
            fail("{}: sample {} is neither a row nor skipped, or out of order", shown(), number);
        }
    }
}

// Of each of the shard's sequences there are the steps from 0 on, or it is skipped.
void StatisticsReader::check_step_numbers() const {
    if (header_.selected > step_number(1, 0)) {
        fail("{}: found the impossible number of {} sequences", shown(), header_.selected);
    }
    std::size_t row = 0;
    std::size_t skip = 0;
    for (std::uint64_t sequence = header_.shard - 1; sequence < header_.selected;
         sequence += header_.shards) {
        const std::uint64_t first = step_number(sequence, 0);
        if (skip < skipped_.size() && skipped_[skip] == first) {
            ++skip;
        } else if (row < row_count_ && row_number(row) == first) {
            for (std::uint64_t number = first; row < row_count_ && row_number(row) == number; ++row) ++number;
        } else {
            fail("{}: sequence {} has no first step, nor is it skipped", shown(), sequence);
        }
    }
    if (row == row_count_ && skip == skipped_.size()) return;
    const std::uint64_t number = row < row_count_ ? row_number(row) : skipped_[skip];
    fail("{}: step {} of sequence {} is out of order", shown(), number % step_number(1, 0),
         number >> step_bits);
}

TensorStatistics StatisticsReader::tensor(std::size_t tensor) const {
    const std::string what = fmt::format("tensor '{}'", printable(header_.tensors[tensor].name));
    const auto message = parse<qstats::Tensor>(tensor_records_[tensor], what);
    return records::decode(message, header_.counter.extremes_only, fmt::format("{}: {}", shown(), what));
}

}  // namespace qcalib
