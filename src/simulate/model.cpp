#include "simulate/model.h"

#include <algorithm>

#include "runtime/kernel_registry.h"
#include "target/counted_values.h"
#include "target/float_values.h"
#include "target/tidl_layers.h"

namespace qcalib {

namespace {

std::unique_ptr<const Program> folding_program(const std::shared_ptr<const Graph>& graph,
                                               ProgramOptions options) {
    options.fuse = false;  // nodes stay those of the graph
    return std::make_unique<Program>(graph, builtin_kernels(), std::vector<Tap*>{}, options);
}

std::vector<bool> computed_floats(const Graph& graph, const Program& program) {
    const auto is_float_constant = [&](ValueId value) {
        const Tensor* constant = program.constant(value);
        return constant != nullptr && is_floating(constant->type());
    };
    std::vector<bool> floats = float_values(graph, is_float_constant);
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        if (program.constant(value) != nullptr) floats[value] = false;
    }
    return floats;
}

// The graph with these values, whose constants nodes make, as initializers.
std::shared_ptr<const Graph> with_initializers(const Graph& graph, const Program& program,
                                               const std::vector<Parameter>& parameters) {
    auto copy = std::make_shared<Graph>(graph);
    for (const Parameter& parameter : parameters) {
        Value& value = copy->values[parameter.value];
        if (value.initializer) continue;
        value.initializer = *program.constant(parameter.value);
        if (value.producer == no_node) continue;
        for (ValueId& output : copy->nodes[value.producer].outputs) {
            if (output == parameter.value) output = no_value;
        }
        value.producer = no_node;
    }
    return copy;
}

bool is_clipping(const Node& node) {
    return node.domain.empty() && (node.op_type == "Relu" || node.op_type == "Clip");
}

}  // namespace

SimulatedModel::SimulatedModel(const std::shared_ptr<const Graph>& graph, Target target,
                               const ProgramOptions& options)
    : graph_(graph), target_(std::move(target)), options_(options) {
    program_ = folding_program(graph, options);
    const auto constant_value = [this](ValueId value) { return program_->constant(value); };
    activations_ = computed_floats(*graph_, *program_);
    fusions_ = std::make_unique<Fusions>(*graph_, constant_value, target_);
    parameters_ = find_parameters(*graph_, constant_value, activations_, target_, *fusions_);
    graph_ = with_initializers(*graph, *program_, parameters_);
    program_ = folding_program(graph_, options);
    fusions_ = std::make_unique<Fusions>(*graph_, constant_value, target_);
    parameters_ = find_parameters(*graph_, constant_value, activations_, target_, *fusions_);
    order_ = values_in_order(*graph_);
    find_near_inputs();
    find_pre_activations();
    find_inside_layers();
}

void SimulatedModel::find_near_inputs() {
    near_input_.assign(graph_->values.size(), false);
    for (const ValueId input : graph_->inputs) near_input_[input] = true;
    std::vector<bool> weighted(graph_->nodes.size());
    for (const Parameter& parameter : parameters_) {
        if (!is_weight(parameter)) continue;
        for (const ParameterUse& use : parameter.uses) {
            weighted[static_cast<std::size_t>(use.node - graph_->nodes.data())] = true;
        }
    }
    for (NodeIndex index = 0; index < graph_->nodes.size(); ++index) {
        const Node& node = graph_->nodes[index];
        if (weighted[index] || !node.bodies.empty() || node.owner != no_node) continue;
        bool near = false;
        bool all = true;
        for (const ValueId input : node.inputs) {
            if (input == no_value || !activations_[input]) continue;
            near = near || near_input_[input];
            all = all && near_input_[input];
        }
        for (const ValueId output : node.outputs) {
            if (output != no_value) near_input_[output] = near && all;
        }
    }
}

void SimulatedModel::find_pre_activations() {
    std::vector<std::size_t> readers(graph_->values.size());
    std::vector<bool> clipped(graph_->values.size());
    const auto read = [&](ValueId value) {
        if (value != no_value) ++readers[value];
    };
    for (const Node& node : graph_->nodes) {
        std::for_each(node.inputs.begin(), node.inputs.end(), read);
        std::for_each(node.captured.begin(), node.captured.end(), read);
        for (const Body& body : node.bodies) std::for_each(body.outputs.begin(), body.outputs.end(), read);
        if (is_clipping(node) && !node.inputs.empty() && node.inputs[0] != no_value)
            clipped[node.inputs[0]] = true;
    }
    std::for_each(graph_->outputs.begin(), graph_->outputs.end(), read);
    pre_activation_.assign(graph_->values.size(), false);
    for (ValueId value = 0; value < graph_->values.size(); ++value) {
        const bool made = graph_->values[value].producer != no_node;
        pre_activation_[value] = made && clipped[value] && readers[value] == 1;
    }
}

void SimulatedModel::find_inside_layers() {
    inside_layer_.assign(graph_->values.size(), false);
    if (!target_.simulation.has_chain) return;
    const TidlLayers layers(*graph_, [this](ValueId value) { return program_->constant(value); });
    for (ValueId value = 0; value < graph_->values.size(); ++value)
        inside_layer_[value] = layers.around(value) && !layers.making(value);
}

}  // namespace qcalib
