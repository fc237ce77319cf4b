// Why a tensor has no partner.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "mapping/mapping_state.h"
#include "mapping/operator_kind.h"

namespace qcalib {

namespace {

class LoneReasons {
  public:
    explicit LoneReasons(const MappingState& state) : state_(state) {}

    std::string of_circle(ValueId value) const {
        const ProbedValue& probed = state_.circle.values[value];
        if (probed.repeated) return "made more than once a sample";
        if (probed.constant) return of_circle_constant(value);
        const std::string there = onnx_operator(state_.paired_behind(value));
        if (there.empty()) return "leads to no tensor that has a partner";
        const Node* node = state_.circle.producer(value);
        const std::string kind = node == nullptr ? "" : operator_kind(*node);
        if (kind == "pad")
            return fmt::format("the padding of {}, an operator of its own here",
                               padded_operator(value, there));
        if (kind == "transpose" || kind == "reshape")
            return fmt::format("a change of layout the converter added for {}", there);
        return fmt::format("inside what the converter made of {}", there);
    }

    LoneTensor of_onnx(ValueId value) const {
        LoneTensor lone{value, {}, no_value};
        const ProbedValue& probed = state_.onnx.values[value];
        const ValueId behind = state_.paired_behind_onnx(value);
        if (behind != no_value) lone.absorbed_by = state_.partners[behind].front();
        if (!probed.seen()) {
            lone.reason = "not made in these runs (a branch not taken, or only its shape is used)";
        } else if (probed.repeated) {
            lone.reason = "made more than once a sample";
        } else if (lone.absorbed_by == no_value) {
            lone.reason = "leads to no tensor that has a partner";
        } else if (probed.constant) {
            lone.reason = fmt::format("folded into the operator that makes '{}'",
                                      printable(state_.circle.name(lone.absorbed_by)));
        } else {
            lone.reason = fmt::format("fused: no tensor of its own in what makes '{}'",
                                      printable(state_.circle.name(lone.absorbed_by)));
        }
        return lone;
    }

  private:
    // What ONNX calls the operator whose output is the tensor's partner; "" without one.
    std::string onnx_operator(ValueId circle) const {
        if (circle == no_value) return "";
        const std::vector<NodeIndex> region = state_.region_of(circle);
        if (region.empty()) return "";
        const auto computing = std::find_if(region.begin(), region.end(), [&](NodeIndex node) {
            return !keeps_values(state_.onnx.graph.nodes[node]);
        });
        return label(state_.onnx.graph,
                     state_.onnx.graph.nodes[computing == region.end() ? region.front() : *computing]);
    }

    // The ONNX operator that pads its input itself, or `otherwise`.
    std::string padded_operator(ValueId circle, const std::string& otherwise) const {
        for (const NodeIndex index : state_.region_of(state_.paired_behind(circle))) {
            const Node& node = state_.onnx.graph.nodes[index];
            if (node.has_attribute("pads") || node.has_attribute("auto_pad"))
                return label(state_.onnx.graph, node);
        }
        return otherwise;
    }

    std::string of_circle_constant(ValueId value) const {
        for (const NodeIndex reader : state_.circle.consumers[value]) {
            const Node& node = state_.circle.graph.nodes[reader];
            for (const ValueId output : node.outputs) {
                const ValueId behind = output == no_value ? no_value : state_.paired_behind(output);
                const std::string there = onnx_operator(behind);
                if (there.empty()) continue;
                const bool bias = node.inputs.size() > 2 && node.inputs[2] == value;
                if (bias && state_.circle.values[value].largest == 0)
                    return fmt::format("a bias of zeros the converter added to {}", there);
                if (const std::string attribute = attribute_like(value, behind); !attribute.empty())
                    return attribute;
                return fmt::format("a constant of what the converter made of {}", there);
            }
        }
        return state_.circle.consumers[value].empty() ? "nothing reads it"
                                                      : "its readers lead to no tensor that has a partner";
    }

    // "'alpha' of LeakyRelu 'act1'" where the constant is one number that an ONNX operator has as an
    // attribute.
    std::string attribute_like(ValueId value, ValueId behind) const {
        const Fingerprint& print = state_.circle.values[value].samples.front();
        if (print.min != print.max) return "";
        for (const NodeIndex index : state_.region_of(behind)) {
            const Node& node = state_.onnx.graph.nodes[index];
            for (const auto& [name, given] : node.attributes) {
                const float* number = std::get_if<float>(&given);
                if (number != nullptr && std::abs(*number - print.min) <= 1e-5F * std::abs(*number))
                    return fmt::format("'{}' of {}", name, label(state_.onnx.graph, node));
            }
            // LeakyRelu's alpha where the file leaves it out.
            if (node.op_type == "LeakyRelu" && !node.has_attribute("alpha") &&
                std::abs(print.min - 0.01F) < 1e-7F)
                return fmt::format("'alpha' of {}", label(state_.onnx.graph, node));
        }
        return "";
    }

    const MappingState& state_;
};

bool is_output(const Graph& graph, ValueId value) {
    return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end();
}

// Whether a value has anything to do with the model: somebody makes or reads it.
bool takes_part(const MappedSide& side, ValueId value) {
    return side.producer(value) != nullptr || !side.consumers[value].empty() || is_output(side.graph, value);
}

}  // namespace

void explain_lone(const MappingState& state, TensorMapping& mapping) {
    const LoneReasons reasons(state);
    for (ValueId id = 0; id < state.circle.values.size(); ++id) {
        if (!state.circle.values[id].seen() || state.pairs[id] || !takes_part(state.circle, id)) continue;
        mapping.circle_alone.push_back({id, reasons.of_circle(id), no_value});
    }
    for (ValueId id = 0; id < state.onnx.values.size(); ++id) {
        const bool is_float =
            state.onnx.values[id].seen() || is_floating(state.onnx.graph.values[id].declared_type);
        if (!is_float || state.is_paired_onnx(id) || !takes_part(state.onnx, id)) continue;
        mapping.onnx_alone.push_back(reasons.of_onnx(id));
    }
}

}  // namespace qcalib
