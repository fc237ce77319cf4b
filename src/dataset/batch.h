#pragma once

#include <cstddef>
#include <optional>

#include "dataset/input_spec.h"

namespace qcalib {

// The input with a batch of 1 where its fixed batch is `batch`, else nothing.
std::optional<InputSpec> item_of_batch(const InputSpec& input, std::size_t batch);

}  // namespace qcalib
