#include <algorithm>
#include <limits>

#include "base/text.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/iteration.h"

namespace qcalib {

namespace {

constexpr std::int64_t without_end = std::numeric_limits<std::int64_t>::max();

const Body& body_of(const NodeContext& context) {
    const Body* body = context.node.body("body");
    if (body == nullptr) context.refuse("expected a graph 'body', found none");
    return *body;
}

void check_number(const NodeContext& context, std::string_view what, std::size_t expected,
                  std::size_t found) {
    if (expected != found) {
        context.refuse(fmt::format("expected {} {} as its body has, found {}", expected, what, found));
    }
}

void check_present(const NodeContext& context, std::size_t first) {
    for (std::size_t i = first; i < context.node.inputs.size(); ++i) {
        if (!context.has_input(i)) context.refuse(fmt::format("expected input {}, which is left out", i));
    }
}

// The value that an Identity or several hand on.
ValueId behind_identities(const Graph& graph, ValueId value) {
    for (;;) {
        const NodeIndex producer = graph.values[value].producer;
        if (producer == no_node || graph.nodes[producer].op_type != "Identity") return value;
        value = graph.nodes[producer].inputs[0];
    }
}

bool truth(const Tensor& tensor) {
    return std::to_integer<int>(*tensor.data()) != 0;
}

class LoopKernel : public IterationKernel {
  protected:
    IterationForm form_of(const NodeContext& context) const override {
        const Body& body = body_of(context);
        const Node& node = context.node;
        if (body.inputs.size() < 2 || body.outputs.empty()) {
            context.refuse(
                "expected a body with a count and a condition as inputs and a condition as output");
        }
        IterationForm form;
        form.lead_inputs = 2;
        form.lead_outputs = 1;
        form.first_state = 2;
        form.states = body.inputs.size() - 2;
        if (node.inputs.size() > 2 || form.states > 0) {
            check_number(context, "inputs", form.states + 2, node.inputs.size());
        }
        check_present(context, 2);
        check_scalar(context, 0, DataType::int64);
        check_scalar(context, 1, DataType::boolean);
        if (body.outputs.size() < form.states + 1 || node.outputs.size() + 1 > body.outputs.size()) {
            context.refuse(
                fmt::format("expected a body with a condition, {} states and what is collected as "
                            "outputs, found {} outputs for {} of the node",
                            form.states, body.outputs.size(), node.outputs.size()));
        }
        form.collected.resize(body.outputs.size() - 1 - form.states);
        return form;
    }

    std::optional<std::int64_t> known_count(const NodeContext& context, const Plan& body,
                                            std::vector<std::size_t>& needs_values) const override {
        const Node& node = context.node;
        const Body& loop = *node.body("body");
        const bool has_condition = context.has_input(1);
        const bool first_known = !has_condition || context.inputs[1].constant;
        if (has_condition && first_known && !truth(*context.inputs[1].constant)) return 0;
        const auto& last = body.outputs()[0].constant;
        const bool goes_on = last && truth(*last);
        const bool stays = behind_identities(context.graph, loop.outputs[0]) == loop.inputs[1];
        if (!goes_on && !stays) return std::nullopt;
        if (!first_known) needs_values.push_back(1);
        if (!context.has_input(0)) {
            if (first_known)
                context.refuse("expected an end, found neither a count nor a condition that changes");
            return std::nullopt;
        }
        if (!context.inputs[0].constant) needs_values.push_back(0);
        if (!needs_values.empty()) return std::nullopt;
        return std::max<std::int64_t>(0, context.integers(0).front());
    }

    Course start(std::span<const TensorView> inputs) const override {
        Course course{without_end, true};
        if (!inputs.empty() && inputs[0].present()) course.count = inputs[0].as<std::int64_t>()[0];
        if (inputs.size() > 1 && inputs[1].present()) course.go = inputs[1].as<std::uint8_t>()[0] != 0;
        return course;
    }

  private:
    static void check_scalar(const NodeContext& context, std::size_t i, DataType type) {
        if (!context.has_input(i)) return;
        const TensorDescriptor& found = context.input(i);
        if (found.type == type && found.elements() == 1) return;
        context.refuse(fmt::format("input {}: expected one {}, found {} {}", i, name_of(type),
                                   name_of(found.type), to_string(found.shape)));
    }
};

class ScanKernel : public IterationKernel {
  protected:
    IterationForm form_of(const NodeContext& context) const override {
        const Body& body = body_of(context);
        const Node& node = context.node;
        const auto taken = node.attribute<std::int64_t>("num_scan_inputs", 0);
        if (taken < 1 || static_cast<std::size_t>(taken) > body.inputs.size()) {
            context.refuse(fmt::format("attribute 'num_scan_inputs': expected 1 to {}, found {}",
                                       body.inputs.size(), taken));
        }
        check_number(context, "inputs", body.inputs.size(), node.inputs.size());
        check_number(context, "outputs", body.outputs.size(), node.outputs.size());
        check_present(context, 0);
        IterationForm form;
        form.states = body.inputs.size() - static_cast<std::size_t>(taken);
        if (body.outputs.size() < form.states) {
            context.refuse(fmt::format("expected a body with {} states as outputs, found {}", form.states,
                                       body.outputs.size()));
        }
        const std::size_t collected = body.outputs.size() - form.states;
        form.taken = sequences(context, "scan_input", static_cast<std::size_t>(taken));
        form.collected = sequences(context, "scan_output", collected);
        check_lengths(context, form);
        return form;
    }

    std::optional<std::int64_t> known_count(const NodeContext& context, const Plan& /*body*/,
                                            std::vector<std::size_t>& /*needs_values*/) const override {
        return length_of(context.input(form().states), form().taken.front());
    }

    Course start(std::span<const TensorView> inputs) const override {
        return {length_of(*inputs[form().states].descriptor, form().taken.front()), true};
    }

  private:
    static std::int64_t length_of(const TensorDescriptor& whole, const SequenceAxis& sequence) {
        const auto rank = static_cast<std::int64_t>(whole.rank());
        return whole
            .shape[static_cast<std::size_t>(sequence.axis < 0 ? sequence.axis + rank : sequence.axis)];
    }

    static std::vector<SequenceAxis> sequences(const NodeContext& context, const std::string& kind,
                                               std::size_t count) {
        const auto list = [&](const std::string& name) {
            auto values = context.node.attribute<std::vector<std::int64_t>>(name, {});
            if (values.empty()) values.assign(count, 0);
            if (values.size() != count) {
                context.refuse(
                    fmt::format("attribute '{}': expected {} numbers, found {}", name, count, values.size()));
            }
            return values;
        };
        const std::vector<std::int64_t> axes = list(kind + "_axes");
        const std::vector<std::int64_t> directions = list(kind + "_directions");
        std::vector<SequenceAxis> result;
        for (std::size_t i = 0; i < count; ++i) result.push_back({axes[i], directions[i] != 0});
        return result;
    }

    static void check_lengths(const NodeContext& context, const IterationForm& form) {
        for (std::size_t i = 0; i < form.taken.size(); ++i) {
            const TensorDescriptor& whole = context.input(form.states + i);
            const auto rank = static_cast<std::int64_t>(whole.rank());
            if (form.taken[i].axis < -rank || form.taken[i].axis >= rank) {
                context.refuse(fmt::format("input {}: expected an axis {} to take apart, found the shape {}",
                                           form.states + i, form.taken[i].axis, to_string(whole.shape)));
            }
            const std::int64_t length = length_of(whole, form.taken[i]);
            const std::int64_t first = length_of(context.input(form.states), form.taken[0]);
            if (length != first) {
                context.refuse(fmt::format("input {}: expected {} elements as in the first, found {}",
                                           form.states + i, first, length));
            }
        }
    }
};

}  // namespace

void register_loop(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "Loop",
                  .since = 1,
                  .summary = "A graph, several times",
                  .make = make_kernel<LoopKernel>,
                  .make_reference = make_kernel<LoopKernel>,
                  .useful_values = {0, 1}});
    registry.add({.domain = "",
                  .op_type = "Scan",
                  .since = 9,
                  .summary = "A graph for each element of sequences",
                  .make = make_kernel<ScanKernel>,
                  .make_reference = make_kernel<ScanKernel>});
}

}  // namespace qcalib
