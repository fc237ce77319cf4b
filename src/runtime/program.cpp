#include "runtime/program.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "runtime/fold.h"
#include "runtime/guards.h"
#include "runtime/plan_builder.h"

namespace qcalib {

namespace {

constexpr std::size_t plan_cache_size = 16;

struct MissingOperator {
    std::int64_t opset = 0;
    std::vector<std::string> nodes;
};

void collect_missing(const Graph& graph, const KernelRegistry& registry,
                     std::map<std::pair<std::string, std::string>, MissingOperator>& missing) {
    for (const Node& node : graph.nodes) {
        if (registry.find(node.domain, node.op_type, node.opset) == nullptr) {
            MissingOperator& entry = missing[{node.domain, node.op_type}];
            entry.opset = node.opset;
            entry.nodes.push_back(label(graph, node));
        }
        for (const auto& [name, value] : node.attributes) {
            if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&value)) {
                collect_missing(**body, registry, missing);
            }
        }
    }
}

bool is_initializer_or_none(const Graph& graph, ValueId id) {
    return id == no_value || graph.values[id].initializer.has_value();
}

}  // namespace

std::vector<std::string> missing_operators(const Graph& graph, const KernelRegistry& registry) {
    std::map<std::pair<std::string, std::string>, MissingOperator> missing;
    collect_missing(graph, registry, missing);
    std::vector<std::string> lines;
    for (const auto& [name, entry] : missing) {
        const auto& [domain, op_type] = name;
        lines.push_back(fmt::format("operator {}{} (opset {}), {} node{}: {}{}",
                                    domain.empty() ? "" : domain + ".", op_type, entry.opset,
                                    entry.nodes.size(), entry.nodes.size() == 1 ? "" : "s",
                                    join(entry.nodes, ", "), did_you_mean(op_type, registry.names(domain))));
    }
    return lines;
}

Program::Program(std::shared_ptr<const Graph> graph, const KernelRegistry& registry, std::vector<Tap*> taps,
                 ProgramOptions options)
    : graph_(std::move(graph)), taps_(std::move(taps)), options_(std::move(options)) {
    const std::vector<std::string> missing = missing_operators(*graph_, registry);
    if (!missing.empty()) fail("operators that are not supported:\n  {}", join(missing, "\n  "));
    for (const Node& node : graph_->nodes)
        entries_.push_back(registry.find(node.domain, node.op_type, node.opset));
    rights_.assign(graph_->values.size(), TapRight::ignore);
    for (ValueId value = 0; value < graph_->values.size(); ++value) {
        for (const Tap* tap : taps_) rights_[value] = std::max(rights_[value], tap->right(*graph_, value));
    }
    take_initializers();
    fold_constants();
    find_signature_inputs();
}

Program::~Program() = default;

const Tensor* Program::constant(ValueId value) const {
    const auto found = constants_.find(value);
    return found == constants_.end() ? nullptr : &found->second;
}

Tensor Program::in_computed_type(Tensor tensor, std::string_view name) const {
    tensor = to_float32(tensor, fmt::format("tensor '{}'", printable(name)));
    return options_.float64 && tensor.type() == DataType::float32 ? to_float64(tensor) : tensor;
}

void Program::take_initializers() {
    for (ValueId id = 0; id < graph_->values.size(); ++id) {
        const Value& value = graph_->values[id];
        if (!value.initializer) continue;
        const auto replacement = options_.replaced.find(id);
        const Tensor& tensor =
            replacement == options_.replaced.end() ? *value.initializer : replacement->second;
        constants_.emplace(id, in_computed_type(tensor, value.name));
    }
}

std::unique_ptr<Kernel> Program::make_kernel_of(std::size_t node) const {
    const bool reference = options_.reference_kernels || options_.float64;
    return reference ? entries_[node]->make_reference() : entries_[node]->make();
}

bool Program::may_fold(const Node& node) const {
    return node.captured.empty() &&
           std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
               return output != no_value && rights_[output] == TapRight::write;
           });
}

void Program::fold_constants() {
    const DenormalGuard denormals;
    const SingleThreadGuard single_thread;
    folded_.assign(graph_->nodes.size(), false);
    for (std::size_t index = 0; index < graph_->nodes.size(); ++index) {
        const Node& node = graph_->nodes[index];
        std::vector<InputInfo> inputs;
        bool all_known = may_fold(node);
        for (const ValueId input : node.inputs) {
            const Tensor* known = input == no_value ? nullptr : constant(input);
            if (input != no_value && known == nullptr) all_known = false;
            inputs.push_back(known == nullptr ? InputInfo{} : InputInfo{known->descriptor(), *known, true});
        }
        if (!all_known) continue;
        const std::unique_ptr<Kernel> kernel = make_kernel_of(index);
        std::vector<Tensor> outputs = fold_node({*graph_, node, inputs, weights_}, *kernel);
        folded_[index] = true;
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            if (node.outputs[i] == no_value) continue;
            const Value& value = graph_->values[node.outputs[i]];
            outputs[i] = rounded_to(value.declared_type, std::move(outputs[i]));
            constants_.insert_or_assign(node.outputs[i], in_computed_type(std::move(outputs[i]), value.name));
        }
    }
}

void Program::find_signature_inputs() {
    std::set<ValueId> wanted;
    for (std::size_t index = graph_->nodes.size(); index-- > 0;) {
        const Node& node = graph_->nodes[index];
        if (folded_[index]) continue;
        for (const std::size_t i : entries_[index]->value_inputs) {
            if (i < node.inputs.size() && !is_initializer_or_none(*graph_, node.inputs[i])) {
                wanted.insert(node.inputs[i]);
            }
        }
        const bool makes_wanted = std::any_of(node.outputs.begin(), node.outputs.end(),
                                              [&](ValueId output) { return wanted.contains(output); });
        if (!makes_wanted || entries_[index]->needs_shapes_only) continue;
        for (const ValueId input : node.inputs) {
            if (!is_initializer_or_none(*graph_, input)) wanted.insert(input);
        }
    }
    for (std::size_t i = 0; i < graph_->inputs.size(); ++i) {
        const Value& value = graph_->values[graph_->inputs[i]];
        const bool vector =
            value.declared_shape && value.declared_shape->size() <= 1;  // scales, as of a Resize
        if (wanted.contains(graph_->inputs[i]) && (vector || !is_floating(value.declared_type))) {
            signature_inputs_.push_back(i);
        }
    }
}

void Program::check_inputs(std::span<const Tensor> inputs) const {
    if (inputs.size() != graph_->inputs.size()) {
        fail("expected {} inputs, found {}", graph_->inputs.size(), inputs.size());
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Value& value = graph_->values[graph_->inputs[i]];
        const DataType expected = is_floating(value.declared_type) ? DataType::float32 : value.declared_type;
        if (inputs[i].type() != expected) {
            fail("input '{}': expected {}, found {}", printable(value.name), name_of(expected),
                 name_of(inputs[i].type()));
        }
        if (!value.declared_shape) continue;
        bool fits = value.declared_shape->size() == inputs[i].shape().size();
        for (std::size_t d = 0; fits && d < inputs[i].shape().size(); ++d) {
            fits = (*value.declared_shape)[d].size.value_or(inputs[i].shape()[d]) == inputs[i].shape()[d];
        }
        if (!fits) {
            fail("input '{}': expected the shape {}, found {}", printable(value.name),
                 to_string(value.declared_shape), to_string(inputs[i].shape()));
        }
    }
}

std::string Program::signature_of(std::span<const Tensor> inputs) const {
    std::string signature;
    for (const Tensor& input : inputs) signature += to_string(input.shape());
    for (const std::size_t i : signature_inputs_) {
        const std::span<const std::byte> bytes = inputs[i].view().bytes();
        signature.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return signature;
}

std::shared_ptr<const Plan> Program::plan(std::span<const Tensor> inputs) {
    check_inputs(inputs);
    std::string signature = signature_of(inputs);
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(plans_.begin(), plans_.end(),
                                    [&](const auto& entry) { return entry.first == signature; });
    if (found != plans_.end()) {
        std::rotate(plans_.begin(), found, found + 1);
        return plans_.front().second;
    }
    const DenormalGuard denormals;
    const SingleThreadGuard single_thread;
    std::shared_ptr<const Plan> plan = PlanBuilder(*this, inputs).build();
    plans_.emplace(plans_.begin(), std::move(signature), plan);
    if (plans_.size() > plan_cache_size) plans_.pop_back();
    return plan;
}

}  // namespace qcalib
