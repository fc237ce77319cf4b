#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/remarks.h"
#include "graph/graph.h"
#include "mapping/axis_map.h"
#include "mapping/input_binding.h"

namespace qcalib {

// What says that two tensors are one.
enum class PairEvidence : std::uint8_t {
    input,       // bound by bind_inputs()
    value,       // every element agrees, in all samples
    constant,    // the same constant, element by element
    derived,     // a constant that follows from constants of the ONNX model (a folded batch normalization)
    structure,   // values too poor to tell; it is what the same operator makes of the same tensors
    near_value,  // by its place, and the nearest in value: the conversion changed the numbers
};
std::string_view name_of(PairEvidence evidence);

// A tensor of the Circle model and the one of the ONNX model it is.
struct TensorPair {
    ValueId circle = no_value;
    ValueId onnx = no_value;
    AxisMap axes;        // from the ONNX tensor to the Circle tensor
    Shape circle_shape;  // as run
    Shape onnx_shape;
    PairEvidence evidence = PairEvidence::value;
    double difference = 0;      // largest |a - b| over all elements and samples
    double largest = 0;         // largest |x| of the ONNX tensor
    bool agrees = true;         // |a - b| <= 3e-5 * largest + 1e-4 * |b| for every element
    std::string how;            // of a derived constant: "onnx times the scale of BatchNormalization 'bn'"
    std::vector<ValueId> also;  // other ONNX tensors with the same values
    std::size_t group = 0;      // the class of tensors of the same values that both are of
};

// A tensor without a partner.
struct LoneTensor {
    ValueId value = no_value;
    std::string reason;
    ValueId absorbed_by = no_value;  // of an ONNX tensor: the Circle tensor whose operator does its work
};

// What mapping two models gave. The graphs must outlive it.
struct TensorMapping {
    std::shared_ptr<const Graph> circle;
    std::shared_ptr<const Graph> onnx;
    std::string circle_label;
    std::string onnx_label;
    std::vector<BoundInput> inputs;
    std::vector<TensorPair> pairs;         // in the Circle model's order
    std::vector<LoneTensor> circle_alone;  // float tensors
    std::vector<LoneTensor> onnx_alone;
    std::vector<std::size_t> onnx_groups;  // by ONNX value; 0: none
    std::size_t samples = 0;
    std::optional<std::size_t> first_change;  // index into pairs: the first activation that does not agree
    std::vector<std::string> remarks;  // outputs in another order, inputs left over, what was ambiguous

    // The pair of a Circle tensor, or nullptr.
    const TensorPair* of_circle(ValueId circle_value) const;
    // All pairs of an ONNX tensor: those it is named in, else those of its equals.
    std::vector<const TensorPair*> of_onnx(ValueId onnx_value) const;
    // Pairs of other tensors with the same values.
    std::vector<const TensorPair*> of_equals(ValueId onnx_value) const;
    const LoneTensor* lone_onnx(ValueId onnx_value) const;
};

struct MappingRequest {
    std::shared_ptr<const Graph> circle;
    std::shared_ptr<const Graph> onnx;
    std::string circle_label;  // what messages call the models: their paths
    std::string onnx_label;
    InputShapes circle_shapes;  // empty: as declared
    InputShapes onnx_shapes;
    std::vector<std::pair<std::string, std::string>> bind;  // inputs: Circle name, ONNX name
    std::vector<std::vector<Tensor>> samples;  // of the Circle model's inputs, besides the random ones
    std::size_t random_samples = 3;
    std::uint64_t memory = std::uint64_t{512} << 20;  // bytes of tensors kept at once to be compared
};

// Runs both models on the same samples and pairs their float tensors: constants element by element up to a
// permutation, activations by fingerprints first and then element by element in a second run, what is too
// poor for that (all zeros) by its place, the rest of a changed conversion by place and nearness. Errors name
// the model that cannot be run, or the inputs that cannot be bound.
TensorMapping map_tensors(const MappingRequest& request);

}  // namespace qcalib
