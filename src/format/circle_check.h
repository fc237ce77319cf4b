#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/circle_file.h"
#include "tensor/tensor.h"

namespace qcalib {

// One entry of a qparam.json with the arrays it names.
struct CircleQparam {
    std::string name;   // the tensor's in the file, unnamed_circle_tensor for one without
    std::string dtype;  // "uint8", "int8", "int16", "int32" or "int64"
    std::vector<float> scale;
    std::vector<std::int64_t> zero_point;
    std::int64_t axis = 0;        // quantized_dimension
    std::optional<Tensor> value;  // the codes of a constant
};

// What q-implant calls a tensor that has no name.
constexpr std::string_view unnamed_circle_tensor = "(noname)";

// Something that makes a set of entries useless for a model.
struct CircleFault {
    std::string tensor;  // or an operator, or "" for the file
    std::string text;    // what was expected and found
    std::string said;    // what q-implant says of it; "": nothing, it writes a wrong file and answers 0
};

// What q-implant does with the entries, in its order: what it refuses, then what it takes in silence though
// the file is wrong. Empty: it takes them, and no float tensor is left. `file` is a float model.
std::vector<CircleFault> check_circle_qparams(const CircleFile& file, std::span<const CircleQparam> entries);

// One Error that names every fault, most important first; nothing where there is none.
void throw_circle_faults(std::string_view path, std::span<const CircleFault> faults);

}  // namespace qcalib
