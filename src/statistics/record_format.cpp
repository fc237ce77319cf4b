#include "statistics/record_format.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

namespace qcalib::records {

static_assert(std::endian::native == std::endian::little, "rows are read in place");

namespace {

constexpr std::uint32_t length_delimited = 2;  // wire types of protobuf's encoding
constexpr std::uint32_t fixed64 = 1;

void append_varint(std::string& text, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>((value & 0x7f) | 0x80));
    text.push_back(static_cast<char>(value));
}

template <typename T>
void append_raw(std::string& text, const T& value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string serialized(const google::protobuf::MessageLite& message) {
    std::string text;
    text.reserve(message.ByteSizeLong());
    const bool done = message.SerializeToString(&text);
    assert(done);
    static_cast<void>(done);
    return text;
}

void fill(const MagnitudeHistogram& histogram, qstats::Histogram& message) {
    std::size_t first = 0;
    std::size_t last = MagnitudeHistogram::bins - 1;
    while (histogram.count(first) == 0) ++first;
    while (histogram.count(last) == 0) --last;
    message.set_exponent(histogram.exponent());
    message.set_first_bin(static_cast<std::uint32_t>(first));
    message.mutable_counts()->Reserve(static_cast<int>(last - first + 1));
    for (std::size_t bin = first; bin <= last; ++bin) message.add_counts(histogram.count(bin));
}

float entry_value(const SampleSummary& entry, std::size_t array) {
    if (!entry.has_data) return std::numeric_limits<float>::quiet_NaN();
    switch (array) {
        case 0:
            return entry.min;
        case 1:
            return entry.max;
        case 2:
            return entry.low_tail;
        default:
            return entry.high_tail;
    }
}

}  // namespace

std::string prefix(std::string_view magic, std::uint32_t version) {
    std::string text(magic);
    append_raw(text, version);
    return text;
}

std::string record_head(std::uint32_t kind, std::size_t length) {
    std::string text;
    append_varint(text, kind << 3 | length_delimited);
    append_varint(text, length);
    return text;
}

std::optional<std::uint64_t> Cursor::varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
        const auto byte = std::to_integer<std::uint64_t>(bytes[at++]);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    return std::nullopt;
}

RowLayout::RowLayout(std::size_t entries, bool extremes_only)
    : entries_(entries),
      arrays_(entries == 0    ? 0
              : extremes_only ? 2
                              : 4),
      head_(array_head(0).size()),
      length_(number + sizeof(std::uint64_t) + arrays_ * (head_ + entries * sizeof(float))) {}

std::string RowLayout::array_head(std::size_t array) const {
    std::string text;
    append_varint(text, (array + 2) << 3 | length_delimited);
    append_varint(text, entries_ * sizeof(float));
    return text;
}

std::size_t RowLayout::array(std::size_t array) const {
    return number + sizeof(std::uint64_t) + array * (head_ + entries_ * sizeof(float)) + head_;
}

std::string encode(const StatisticsHeader& header) {
    qstats::Header message;
    message.set_model_hash(header.model_hash);
    message.set_settings(header.settings);
    message.set_instruction_set(header.instruction_set);
    if (header.counter.mask_below) message.set_mask_below(*header.counter.mask_below);
    message.set_extremes_only(header.counter.extremes_only);
    message.set_selected(header.selected);
    message.set_shard(header.shard);
    message.set_shards(header.shards);
    for (const TensorInfo& tensor : header.tensors) {
        qstats::TensorInfo& info = *message.add_tensors();
        info.set_name(tensor.name);
        info.set_constant(tensor.constant);
    }
    message.set_sequences(header.sequences);
    return serialized(message);
}

StatisticsHeader decode(const qstats::Header& message) {
    StatisticsHeader header;
    header.model_hash = message.model_hash();
    header.settings = message.settings();
    header.instruction_set = message.instruction_set();
    if (message.has_mask_below()) header.counter.mask_below = message.mask_below();
    header.counter.extremes_only = message.extremes_only();
    header.selected = message.selected();
    header.shard = message.shard();
    header.shards = message.shards();
    header.sequences = message.sequences();
    for (const qstats::TensorInfo& info : message.tensors()) {
        header.tensors.push_back({info.name(), info.constant()});
    }
    return header;
}

std::string encode(const Row& row, const RowLayout& layout) {
    assert(row.entries.size() == layout.entries());
    std::string text;
    text.reserve(layout.length());
    append_varint(text, 1 << 3 | fixed64);
    append_raw(text, row.number);
    for (std::size_t array = 0; array < layout.arrays(); ++array) {
        text += layout.array_head(array);
        for (const SampleSummary& entry : row.entries) append_raw(text, entry_value(entry, array));
    }
    assert(text.size() == layout.length());
    return text;
}

std::string encode(const TensorStatistics& statistics) {
    qstats::Tensor message;
    message.set_zeros(statistics.zeros);
    message.set_nans(statistics.nans);
    message.set_positive_infinities(statistics.positive_infinities);
    message.set_negative_infinities(statistics.negative_infinities);
    message.set_positive_masks(statistics.positive_masks);
    message.set_negative_masks(statistics.negative_masks);
    if (statistics.extremes) {
        message.mutable_extremes()->set_min(statistics.extremes->min);
        message.mutable_extremes()->set_max(statistics.extremes->max);
    }
    if (statistics.positive.total() > 0) fill(statistics.positive, *message.mutable_positive());
    if (statistics.negative.total() > 0) fill(statistics.negative, *message.mutable_negative());
    return serialized(message);
}

std::string encode_skipped(std::span<const std::uint64_t> numbers) {
    qstats::Skipped message;
    message.mutable_numbers()->Add(numbers.begin(), numbers.end());
    return serialized(message);
}

std::size_t row_entries(const StatisticsHeader& header) {
    return static_cast<std::size_t>(std::count_if(header.tensors.begin(), header.tensors.end(),
                                                  [](const TensorInfo& tensor) { return !tensor.constant; }));
}

}  // namespace qcalib::records
