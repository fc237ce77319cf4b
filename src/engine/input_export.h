#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "dataset/input_spec.h"
#include "statistics/statistics_file.h"
#include "tensor/tensor.h"

namespace qcalib {

// The samples as a converter reads them: a headerless little-endian float32 file for each input of each
// sample, and input_list.txt, which names them.
class InputExport {
  public:
    // Inputs of these ranks (3 to 5) are written with their channels (axis 1) last. Errors where the folder's
    // absolute path or an input's name cannot stand in a list, whose items blanks separate.
    InputExport(std::filesystem::path folder, std::span<const InputSpec> inputs,
                std::vector<std::int64_t> channels_last_ranks);

    // Writes one sample's files; `inputs` are row-major. Safe to call from several threads.
    void write(const std::string& number, std::span<const Tensor> inputs) const;
    // Writes input_list.txt: a line for each row of the statistics, with absolute paths and no header lines
    // (with these, converters calibrate the named outputs alone).
    std::filesystem::path write_list(const StatisticsFile& statistics) const;

  private:
    std::filesystem::path file_of(const std::string& number, std::size_t input) const;

    std::filesystem::path folder_;  // absolute
    std::vector<std::string> names_;
    std::vector<std::int64_t> channels_last_ranks_;
};

// How files of a sample are called: "000012", of a step "000003.000017".
std::string sample_text(std::uint64_t sample);
std::string step_text(std::uint64_t sequence, std::uint64_t step);

// An input's name as a part of a file's: all but letters, digits, `.`, `_` and `-` becomes `_`.
std::string file_part(const std::string& input);

}  // namespace qcalib
