#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/files.h"
#include "statistics/record_format.h"

namespace qcalib {

// Writes a .qstats file record by record, in the order the file has them. Under StatisticsWriter, which has
// all tensors at once, and merge_statistics, which has one at a time.
class RecordWriter {
  public:
    RecordWriter(const std::filesystem::path& path, const StatisticsHeader& header);
    // Goes on with a file that is partly written, see StatisticsWriter.
    RecordWriter(const std::filesystem::path& path, const StatisticsHeader& header,
                 const WrittenRows& written);

    void add_row(const Row& row);
    // A row as it stands in a file of the same tensors.
    void add_encoded_row(std::string_view row);
    void add_tensor(const TensorStatistics& statistics);
    WrittenRows sync();
    // The last record; puts the file in place.
    void finish(std::span<const std::uint64_t> skipped);

  private:
    void write(std::string_view bytes);
    void write_record(records::Kind kind, std::string_view bytes);

    Sha256 digest_;
    OutputFile file_;
    records::RowLayout layout_;
    std::size_t tensors_left_;
    std::optional<std::uint64_t> last_row_;
};

}  // namespace qcalib
