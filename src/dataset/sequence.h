#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dataset/file_reader.h"
#include "dataset/sample_list.h"

namespace qcalib {

// A line of a list as the steps of a sequence (--carry). A file longer than its input is cut along its first
// axis; all such files of a line must have as many steps. Any other file, and an input without one, has the
// same value in every step.
class Sequence {
  public:
    // Opens and checks the files; their steps are read when asked for. Throws Error "<file>: ...".
    Sequence(const ListEntry& entry, std::span<const InputSpec> inputs, const Preprocessing& preprocessing);

    std::size_t steps() const { return steps_; }
    // One row-major tensor per model input. What a carried input has here counts for step 0 alone.
    std::vector<Tensor> step(std::size_t index) const;
    // The file that ends with an incomplete step and what of it fills none, for each.
    const std::vector<std::string>& left_over() const { return left_over_; }

  private:
    struct Source {
        std::optional<FileSteps> steps;
        Tensor whole;  // where it is not cut
    };

    std::vector<Source> sources_;  // per input
    std::size_t steps_ = 1;
    std::vector<std::string> left_over_;
};

}  // namespace qcalib
