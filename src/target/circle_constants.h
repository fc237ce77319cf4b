#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "target/circle_propagation.h"
#include "target/parameters.h"

namespace qcalib {

// How the codes of a constant of the file follow from an encoding, wherever that is from: by what reads it
// and, for encodings of another tensor, by TensorEncoding::origin "shared".
CircleCoding circle_coding(const CircleGraph& graph, const Target& target, ValueId value,
                           const TensorEncoding& encoding);

// Encodes the constants of a graph by the steps of luci's quantizer: operands by their own range; weights,
// per channel where asked for; biases at the scale of input times weight.
class CircleConstants {
  public:
    CircleConstants(const CircleGraph& graph, const Target& target, const ResolvedOptions& options,
                    CircleEncodings& encodings, Remarks& remarks);

    // Constants that are neither weights nor biases nor have an encoding yet.
    void encode_operands();
    // Widens the scale of a weight whose bias would not fit into int32.
    void encode_weights();
    // An Error where two operators with other scales share a bias, or its elements are not those of the
    // weight.
    void encode_biases();

  private:
    struct Product {
        const Node* node = nullptr;
        ValueId data = no_value;
        ValueId weight = no_value;
        ValueId bias = no_value;
    };

    std::optional<Product> product_of(const Node& node) const;
    std::optional<int> channel_axis(ValueId weight);
    std::optional<int> axis_of(const Node& node, std::size_t input, ValueId weight) const;
    void encode_weight(ValueId weight, const Node& node, std::size_t input);
    void encode_whole(ValueId value, Decision::Kind kind, const std::string& method);
    void encode_channels(ValueId weight, int axis, const MethodChoice& choice);
    void encode_signs(ValueId weight, int axis);
    void widen(const Product& product);
    bool widen_channel(const Product& product, std::size_t channel, float bias);
    void encode_bias(const Product& product);
    void check_channels(const Product& product, std::size_t elements, std::size_t channels) const;
    Decision& decide(ValueId value, Decision::Kind kind, std::string method, const std::string& origin);
    std::string quoted(ValueId value) const;

    const CircleGraph& graph_;
    const Target& target_;
    const ResolvedOptions& options_;
    CircleEncodings& encodings_;
    Remarks& remarks_;
    int bits_;
    std::vector<bool> biases_;   // by ValueId
    std::vector<bool> weights_;  // by ValueId
    std::map<ValueId, const Node*> bias_of_;
};

}  // namespace qcalib
