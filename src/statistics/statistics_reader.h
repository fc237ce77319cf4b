#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "statistics/record_format.h"

namespace qcalib {

// A .qstats file, checked and mapped, whose rows and tensors are read as they are asked for. Under
// StatisticsFile, which holds all tensors, and merge_statistics, which holds one. Errors start with the path.
class StatisticsReader {
  public:
    // Checks all but the tensors' records.
    explicit StatisticsReader(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return file_.path(); }
    const StatisticsHeader& header() const { return header_; }
    const std::vector<std::uint64_t>& skipped() const { return skipped_; }

    std::size_t rows() const { return row_count_; }
    std::string_view encoded_row(std::size_t row) const;
    std::uint64_t row_number(std::size_t row) const;
    SampleSummary entry(std::size_t row, std::size_t tensor) const;

    // Reads and checks the record of a tensor.
    TensorStatistics tensor(std::size_t tensor) const;

  private:
    struct Record {
        std::size_t offset = 0;  // of the first byte behind tag and length
        std::size_t length = 0;
    };

    std::string shown() const;
    std::string_view text(Record record) const;
    void check_frame() const;
    void find_records();
    void take_row(Record record, std::size_t end);
    void check_checksum() const;
    void read_header();
    void check_tensor_names() const;
    void read_skipped();
    void check_rows() const;
    void check_entry(std::size_t row, std::size_t tensor) const;
    void check_numbers() const;
    void check_step_numbers() const;
    float row_value(std::size_t row, std::size_t array, std::size_t position) const;
    template <typename Message>
    Message parse(Record record, std::string_view what) const;

    MappedFile file_;
    StatisticsHeader header_;
    records::RowLayout layout_{0, false};
    std::vector<std::size_t> positions_;  // of each tensor in a row; meaningless for constants
    Record header_record_;
    Record first_row_;
    std::size_t row_stride_ = 0;
    std::size_t row_count_ = 0;
    std::vector<Record> tensor_records_;
    Record skipped_record_;
    std::vector<std::uint64_t> skipped_;
};

}  // namespace qcalib
