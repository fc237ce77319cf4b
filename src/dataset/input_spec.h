#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace qcalib {

// A model input as samples must fill it. Dimensions without a size are bound by the data.
struct InputSpec {
    std::string name;
    DataType type = DataType::float32;
    std::vector<std::optional<std::int64_t>> shape;
    bool rank_known = true;  // false: the data bind the whole shape
};

// "[1,3,?,?]".
std::string to_string(const std::vector<std::optional<std::int64_t>>& shape);

// Applies "--shape name=1,3,640,640" (the name may be left out where there is one input). Errors name the
// nearest input, and where a number contradicts the model, both.
void apply_shape(std::vector<InputSpec>& inputs, const std::string& option);

}  // namespace qcalib
