#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding_file.h"
#include "mapping/mapping.h"
#include "target/overrides.h"

namespace qcalib {

// What an override's scale means to a target.
struct OverrideTarget {
    std::string name;
    bool scale_is_multiplier = false;
};

// Overrides that name tensors of the ONNX model, as overrides of the Circle tensors that these are: for each
// target what holds by the order of precedence, under the exact name. One that names a Circle tensor, or a
// pattern that any Circle tensor fits, stays as it is. Error: a name whose tensor has no partner (with the
// reason, and the tensor that takes its place), a range or step for a constant that was scaled on the way,
// and two ONNX tensors with different settings that are one Circle tensor. Patterns leave such tensors out,
// with a remark.
std::vector<Override> carry_overrides(const TensorMapping& mapping, std::span<const Override> overrides,
                                      std::span<const OverrideTarget> targets, Remarks& remarks);

// Encodings by ONNX names under the names of the Circle tensors, the axes of channels and blocks moved. A
// name the ONNX model does not have stays as it is. Left out with a remark: what has no partner (with the
// reason), encodings by channel where no one axis is left, constants that were scaled on the way, and of two
// different encodings that meet in one Circle tensor the later. `label` is what remarks call the file.
EncodingSet carry_encodings(const TensorMapping& mapping, const EncodingSet& encodings,
                            const std::string& label, Remarks& remarks);
EncodingFile carry_encodings(const TensorMapping& mapping, const EncodingFile& file, Remarks& remarks);

}  // namespace qcalib
