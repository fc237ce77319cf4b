#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "graph/onnx_file.h"
#include "mapping/mapping.h"
#include "support/onnx_builder.h"
#include "support/temporary_folder.h"

namespace qcalib::test {

// Numbers that are all different and not symmetric, of about `size`.
inline std::vector<float> uneven(std::size_t count, float size = 1, unsigned seed = 1) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double x = std::sin(12.9898 * static_cast<double>(i + 1) + 78.233 * seed) * 43758.5453;
        values[i] = size * static_cast<float>(2 * (x - std::floor(x)) - 0.93);
    }
    return values;
}

// A filter of shape OIHW as OHWI (permutation 0,2,3,1), or any other tensor by a permutation.
inline std::vector<float> permuted_values(const std::vector<float>& values, const Shape& shape,
                                          const std::vector<std::size_t>& axes) {
    const Tensor tensor = Tensor::of<float>(shape, values);
    const Tensor moved = permuted(tensor.view(), {AxisMap::Form::axes, axes});
    const auto view = moved.view().as<float>();
    return {view.begin(), view.end()};
}

// Two models that are mapped; the "Circle" one may be an ONNX graph written the way a converter would.
struct MapScene {
    OnnxModel circle = {};
    OnnxModel onnx = {};
    MappingRequest request = {};

    TensorMapping map() {
        const TemporaryFolder folder;
        circle.save(folder / "circle.onnx");
        onnx.save(folder / "net.onnx");
        request.circle = read_onnx_file(folder / "circle.onnx").graph;
        request.onnx = read_onnx_file(folder / "net.onnx").graph;
        request.circle_label = "net.circle";
        request.onnx_label = "net.onnx";
        return map_tensors(request);
    }
};

// "onnx tensor (permutation, evidence)" of a Circle tensor, its equals behind; "-" where it has no partner.
inline std::string partner_of(const TensorMapping& mapping, const std::string& circle) {
    const TensorPair* pair = mapping.of_circle(mapping.circle->find(circle));
    if (pair == nullptr) return "-";
    std::string text = mapping.onnx->values[pair->onnx].name + " (" + to_string(pair->axes) + ", " +
                       std::string(name_of(pair->evidence)) + ")";
    for (const ValueId equal : pair->also) text += " = " + mapping.onnx->values[equal].name;
    return text;
}

inline std::string reason_of(const std::vector<LoneTensor>& all, const Graph& graph,
                             const std::string& name) {
    for (const LoneTensor& one : all) {
        if (graph.values[one.value].name == name) return one.reason;
    }
    return "-";
}

}  // namespace qcalib::test
