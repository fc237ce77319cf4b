#include "target/emission_remarks.h"

#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

class OddEncodings {
  public:
    OddEncodings(const Graph& graph, const EncodingSet& set) : graph_(graph) {
        for (const auto* section : {&set.activations, &set.parameters}) {
            for (const TensorEncoding& entry : *section) entries_.emplace(entry.tensor, &entry);
        }
    }

    void look_at(const Node& node) {
        if (!node.domain.empty() || node.inputs.empty() || node.outputs.empty()) return;
        if (node.op_type == "MatMul") look_at_product(node);
        if (node.op_type == "HardSwish") look_at_hard_swish(node.inputs.front(), node.outputs.front());
        if (node.op_type == "Relu") look_at_relu(node);
    }

    // HardSwish(x) is x from x = 3 on, HardSigmoid(x) never above 1.
    void look_at_hard_swish(ValueId input, ValueId output) {
        const TensorEncoding* in = find(input);
        const TensorEncoding* out = find(output);
        if (in == nullptr || out == nullptr || in->encodings.empty() || out->encodings.empty()) return;
        const double greatest_in = in->encodings.front().max;
        const double greatest_out = out->encodings.front().max;
        if (greatest_in < 3 || greatest_out > 1.05) return;
        remarks_.push_back(
            fmt::format("{}: its range ends at {:.4g} though that of its input {} ends at {:.4g}, where a "
                        "HardSwish is the "
                        "input itself: these look like the ranges of a HardSigmoid",
                        quoted(output), greatest_out, quoted(input), greatest_in));
    }

    std::vector<std::string> take() { return std::move(remarks_); }

  private:
    const TensorEncoding* find(ValueId value) const {
        if (value == no_value) return nullptr;
        const auto found = entries_.find(graph_.values[value].name);
        return found == entries_.end() ? nullptr : found->second;
    }
    std::string quoted(ValueId value) const {
        return fmt::format("'{}'", printable(graph_.values[value].name));
    }
    bool in_integers(ValueId value) const {
        const TensorEncoding* entry = find(value);
        return entry != nullptr && entry->type == CodeType::integer;
    }

    void look_at_product(const Node& node) {
        if (node.inputs.size() != 2 || in_integers(node.inputs[0]) == in_integers(node.inputs[1])) return;
        const std::size_t encoded = in_integers(node.inputs[0]) ? 0 : 1;
        remarks_.push_back(
            fmt::format("{}: operand {} has an encoding and {} has none: Qualcomm's backends take no product "
                        "of integers and "
                        "floats",
                        label(graph_, node), quoted(node.inputs[encoded]), quoted(node.inputs[1 - encoded])));
    }

    void look_at_relu(const Node& node) {
        const TensorEncoding* out = find(node.outputs.front());
        if (out == nullptr || out->encodings.empty() || out->encodings.front().symmetric) return;
        const Encoding& encoding = out->encodings.front();
        if (encoding.min >= -encoding.scale / 2) return;
        remarks_.push_back(
            fmt::format("{}: its range starts at {:.4g}, but it is the output of a Relu, which has "
                        "no values below 0{}",
                        quoted(node.outputs.front()), encoding.min,
                        out->origin == "shared" ? ": it shares the encoding of others" : ""));
    }

    const Graph& graph_;
    std::unordered_map<std::string, const TensorEncoding*> entries_;
    std::vector<std::string> remarks_;
};

}  // namespace

std::vector<std::string> emission_remarks(const Graph& graph, const Fusions& fusions,
                                          const EncodingSet& set) {
    OddEncodings odd(graph, set);
    for (const Node& node : graph.nodes) odd.look_at(node);
    for (const Fusion& fusion : fusions.all()) {
        if (fusion.pattern->name == "Hswish") odd.look_at_hard_swish(fusion.inputs.front(), fusion.output);
    }
    return odd.take();
}

}  // namespace qcalib
