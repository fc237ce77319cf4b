#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "dataset/input_spec.h"

namespace qcalib {

// Which of the arrays of a file, by name, fills each input: the one of its name, or, where just one input
// must be given and there is just one array, that one. Nothing for an input with a value of its own. Throws
// Error "<shown>: ..." for an input without an array.
std::vector<std::optional<std::size_t>> bind_arrays(std::span<const std::string> names,
                                                    std::span<const InputSpec> inputs,
                                                    const std::string& shown);

// One remark that names the arrays no input takes.
void remark_on_unused(std::span<const std::string> names, std::span<const std::optional<std::size_t>> bound,
                      const std::string& shown, Remarks& remarks);

// An array with a sample axis in front, in a file.
struct SampleArray {
    std::string shown;  // "x.npz, array 'image'"
    TensorDescriptor descriptor;

    TensorDescriptor sample() const;  // of one sample, without the axis
};

// The number of samples of the arrays; Error where one has no sample axis or they differ.
std::uint64_t count_samples(std::span<const SampleArray* const> arrays);

}  // namespace qcalib
