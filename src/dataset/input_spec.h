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
    bool rank_known = true;                // false: the data bind the whole shape
    std::optional<Tensor> otherwise = {};  // its value for a line of the list that names no file for it
    bool carried = false;                  // after a sequence's first step the engine feeds it from an output
};

// "[1,3,?,?]".
std::string to_string(const std::vector<std::optional<std::int64_t>>& shape);

// Applies "--shape name=1,3,640,640" (the name may be left out where there is one input). Errors name the
// nearest input, and where a number contradicts the model, both.
void apply_shape(std::vector<InputSpec>& inputs, const std::string& option);

// Applies "--input sr=16000" or "--input mask=1,1,0": the value of an input for lines that name no file for
// it, one number for all elements or one for each in row-major order; one open dimension is bound by their
// count. To be called after apply_shape(). Errors name the nearest input, and what the type or the shape asks
// for.
void apply_value(std::vector<InputSpec>& inputs, const std::string& option);

}  // namespace qcalib
