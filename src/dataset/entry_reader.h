#pragma once

#include <optional>
#include <span>
#include <string>

#include "dataset/file_reader.h"
#include "dataset/sample_list.h"

namespace qcalib {

// What an entry gives for input `input` of `inputs`, read as `spec` (that input, or an item of its batch);
// nothing where it gives none.
std::optional<Tensor> read_input(const ListEntry& entry, std::size_t input, const InputSpec& spec,
                                 std::span<const InputSpec> inputs, const Preprocessing& preprocessing);
// The same cut into steps; nothing where it is one step or none.
std::optional<FileSteps> cut_input(const ListEntry& entry, std::size_t input,
                                   std::span<const InputSpec> inputs, const Preprocessing& preprocessing);
// Type and shape of an array that an entry gives for the input; nothing for pictures, raw data, or none.
std::optional<TensorDescriptor> stored_array(const ListEntry& entry, std::size_t input,
                                             std::span<const InputSpec> inputs);
// "x.raw", "x.h5, sample 3".
std::string shown_source(const ListEntry& entry, std::size_t input);

}  // namespace qcalib
