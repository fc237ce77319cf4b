#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "statistics/qstats.pb.h"
#include "statistics/statistics_file.h"

// What the writer and the reader of .qstats files share; see qstats.proto.
namespace qcalib::records {

inline constexpr std::string_view magic = "\x89QSTATS\n";
inline constexpr std::uint32_t version = 1;
inline constexpr std::size_t prefix_bytes = magic.size() + sizeof version;
inline constexpr std::size_t checksum_bytes = 32;

// Field numbers of qstats::File.
enum class Kind : std::uint32_t { header = 1, row = 2, tensor = 3, skipped = 4 };

// The magic bytes of a file and its version.
std::string prefix(std::string_view magic, std::uint32_t version);

// Tag and length of a record; `kind` is its field number.
std::string record_head(std::uint32_t kind, std::size_t length);

// Walks over the records of a file's body.
struct Cursor {
    std::span<const std::byte> bytes;
    std::size_t end = 0;  // of the records
    std::size_t at = 0;

    // Nothing where it does not end before `end`.
    std::optional<std::uint64_t> varint();
};

// Where a row of `entries` tensors has what, from the row's first byte.
class RowLayout {
  public:
    RowLayout(std::size_t entries, bool extremes_only);

    static constexpr std::size_t number = 1;  // behind its tag
    std::size_t length() const { return length_; }
    std::size_t arrays() const { return arrays_; }  // min, max, and with tails low and high
    std::size_t entries() const { return entries_; }
    // The tag and length before an array, and where its elements start.
    std::string array_head(std::size_t array) const;
    std::size_t array(std::size_t array) const;

  private:
    std::size_t entries_;
    std::size_t arrays_;
    std::size_t head_;  // bytes of an array's tag and length
    std::size_t length_;
};

std::string encode(const StatisticsHeader& header);
StatisticsHeader decode(const qstats::Header& message);
std::string encode(const Row& row, const RowLayout& layout);
std::string encode(const TensorStatistics& statistics);
std::string encode_skipped(std::span<const std::uint64_t> numbers);

// The number of tensors that are no constants.
std::size_t row_entries(const StatisticsHeader& header);

}  // namespace qcalib::records
