#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "mapping/axis_map.h"

namespace qcalib {

// The shapes of a model's inputs as they are run, in the graph's order. An open dimension has no size yet.
using InputShapes = std::vector<std::vector<std::optional<std::int64_t>>>;

// The declared shapes; Error naming the input where one has none.
InputShapes declared_input_shapes(const Graph& graph, const std::string& label);

// Which input of the one model is which of the other's, and how its data lie there.
struct BoundInput {
    std::size_t circle = 0;  // index into Graph::inputs
    std::size_t onnx = 0;
    std::string evidence;  // "given", "name" or "shape"
    Shape circle_shape;    // as run
    Shape onnx_shape;
    std::vector<AxisMap> maps;  // from the Circle model's data to the ONNX model's; several: values decide
};

struct BindingRequest {
    std::string circle_label;  // what messages call the models
    std::string onnx_label;
    InputShapes circle_shapes;
    InputShapes onnx_shapes;
    std::vector<std::pair<std::string, std::string>> given;  // Circle name, ONNX name
};

// Binds each input of the Circle model to one of the ONNX model: as given, by name, else by type and shape up
// to a permutation of the axes where only one is left that fits both ways. Open dimensions take the other
// model's size, or 1. An ONNX input may be left over. Error where a Circle input has no partner, does not fit
// it, or several fit: it names them and
// --bind.
std::vector<BoundInput> bind_inputs(const Graph& circle, const Graph& onnx, const BindingRequest& request);

// The name without what converters put around it: "serving_default_x:0" is "x".
std::string bare_name(const std::string& name);

}  // namespace qcalib
