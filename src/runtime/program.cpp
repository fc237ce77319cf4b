#include "runtime/program.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "runtime/fold.h"
#include "runtime/fusion.h"
#include "runtime/guards.h"
#include "runtime/plan_builder.h"

namespace qcalib {

namespace {

constexpr std::size_t plan_cache_size = 16;

struct MissingOperator {
    std::int64_t opset = 0;
    std::vector<std::string> nodes;
};

// A graph input whose value may be part of the signature for the sake of a condition: a mode, a sample rate.
bool is_few_integers(const Value& value) {
    constexpr std::int64_t few = 8;
    if (!is_numeric(value.declared_type) || is_floating(value.declared_type)) return false;
    if (!value.declared_shape || value.declared_shape->size() > 1) return false;
    return value.declared_shape->empty() || value.declared_shape->front().size.value_or(few + 1) <= few;
}

// The nodes in branches that shapes and a few integers decide on: which are taken is known in a plan.
std::vector<bool> nodes_in_known_branches(const Graph& graph, const KernelRegistry& registry) {
    std::vector<bool> known(graph.values.size());
    for (ValueId id = 0; id < graph.values.size(); ++id) known[id] = graph.values[id].initializer.has_value();
    for (const ValueId input : graph.inputs) known[input] = is_few_integers(graph.values[input]);
    std::vector<bool> decided(graph.nodes.size());  // the node's branches are
    for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
        const Node& node = graph.nodes[index];
        const OperatorEntry* entry = registry.find(node.domain, node.op_type, node.opset);
        if (entry == nullptr) continue;
        const auto is_known = [&](ValueId input) { return input == no_value || known[input]; };
        const bool all_known = std::all_of(node.inputs.begin(), node.inputs.end(), is_known);
        decided[index] = all_known && entry->taken_body != nullptr;
        if (!entry->needs_shapes_only && (!all_known || !node.bodies.empty())) continue;
        for (const ValueId output : node.outputs) {
            if (output != no_value) known[output] = true;
        }
    }
    std::vector<bool> inside(graph.nodes.size());
    for (NodeIndex index = static_cast<NodeIndex>(graph.nodes.size()); index-- > 0;) {
        const NodeIndex owner = graph.nodes[index].owner;
        inside[index] = owner != no_node && (inside[owner] || decided[owner]);
    }
    return inside;
}

// Values that plans must or should know.
struct WantedValues {
    std::vector<bool> needed;  // shapes depend on them
    std::vector<bool> useful;  // conditions and trip counts do
};

class WantedFinder {
  public:
    WantedFinder(const Graph& graph, std::span<const OperatorEntry* const> entries,
                 const std::vector<bool>& folded)
        : graph_(graph), entries_(entries), folded_(folded), sources_(graph.values.size(), no_value) {
        for (const Node& node : graph.nodes) {
            for (const Body& body : node.bodies) list_sources(node, body);
        }
    }

    WantedValues run() {
        return {spread(&OperatorEntry::value_inputs), spread(&OperatorEntry::useful_values)};
    }

  private:
    // Body inputs have the values of the node's last inputs, but for those that the node makes up (a Loop's
    // count and condition come first, too, and are no values of around).
    void list_sources(const Node& node, const Body& body) {
        const std::size_t count = std::min(node.inputs.size(), body.inputs.size());
        for (std::size_t i = 0; i < count; ++i) sources_[body.inputs[i]] = node.inputs[i];
    }

    // From each value that an operator wants by `field` back to all that it hangs on. Users come after makers
    // in the order of nodes, and a node with bodies after the nodes of these.
    std::vector<bool> spread(std::vector<std::size_t> OperatorEntry::*field) const {
        std::vector<bool> wanted(graph_.values.size());
        const auto want = [&](ValueId value) {
            for (; value != no_value && !wanted[value]; value = sources_[value]) {
                if (graph_.values[value].initializer) return;
                wanted[value] = true;
            }
        };
        for (auto index = static_cast<NodeIndex>(graph_.nodes.size()); index-- > 0;) {
            const OperatorEntry* entry = entries_[index];
            if (folded_[index] || entry == nullptr) continue;
            const Node& node = graph_.nodes[index];
            for (const std::size_t i : entry->*field) {
                if (i < node.inputs.size()) want(node.inputs[i]);
            }
            const bool makes_wanted =
                std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId output) { return output != no_value && wanted[output]; });
            if (!makes_wanted || entry->needs_shapes_only) continue;
            std::for_each(node.inputs.begin(), node.inputs.end(), want);
            for (const Body& body : node.bodies)
                std::for_each(body.outputs.begin(), body.outputs.end(), want);
        }
        return wanted;
    }

    const Graph& graph_;
    std::span<const OperatorEntry* const> entries_;
    const std::vector<bool>& folded_;
    std::vector<ValueId> sources_;  // of body inputs: what the node gives them
};

std::string describe_missing(const KernelRegistry& registry, const std::pair<std::string, std::string>& name,
                             const MissingOperator& entry) {
    const auto& [domain, op_type] = name;
    return fmt::format("operator {}{} (opset {}), {} node{}: {}{}", domain.empty() ? "" : domain + ".",
                       op_type, entry.opset, entry.nodes.size(), entry.nodes.size() == 1 ? "" : "s",
                       join(entry.nodes, ", "), did_you_mean(op_type, registry.names(domain)));
}

}  // namespace

std::vector<std::string> missing_operators(const Graph& graph, const KernelRegistry& registry) {
    std::map<std::pair<std::string, std::string>, MissingOperator> missing;
    const std::vector<bool> known_branch = nodes_in_known_branches(graph, registry);
    for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
        const Node& node = graph.nodes[index];
        if (known_branch[index] || registry.find(node.domain, node.op_type, node.opset) != nullptr) continue;
        MissingOperator& entry = missing[{node.domain, node.op_type}];
        entry.opset = node.opset;
        entry.nodes.push_back(label(graph, node));
    }
    std::vector<std::string> lines;
    for (const auto& [name, entry] : missing) lines.push_back(describe_missing(registry, name, entry));
    return lines;
}

Program::Program(std::shared_ptr<const Graph> graph, const KernelRegistry& registry, std::vector<Tap*> taps,
                 ProgramOptions options)
    : graph_(std::move(graph)), registry_(&registry), taps_(std::move(taps)), options_(std::move(options)) {
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
    if (options_.fuse && !options_.reference_kernels && !options_.float64) fuse();
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

const OperatorEntry& Program::entry(NodeIndex node) const {
    if (entries_[node] != nullptr) return *entries_[node];
    const Node& missing = graph_->nodes[node];
    fail("operators that are not supported:\n  {}",
         describe_missing(*registry_, {missing.domain, missing.op_type},
                          {missing.opset, {label(*graph_, missing)}}));
}

std::unique_ptr<Kernel> Program::make_kernel_of(NodeIndex node) const {
    const bool reference = options_.reference_kernels || options_.float64;
    return reference ? entries_[node]->make_reference() : entries_[node]->make();
}

bool Program::may_fold(const Node& node) const {
    return node.bodies.empty() && std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
               return output != no_value && rights_[output] == TapRight::write;
           });
}

void Program::fold_constants() {
    const DenormalGuard denormals;
    const SingleThreadGuard single_thread;
    folded_.assign(graph_->nodes.size(), false);
    for (const NodeIndex index : graph_->outermost_nodes()) fold_group(index);
}

// Folds the nodes of a node's bodies, as far as they may be taken, then the node itself.
void Program::fold_group(NodeIndex index) {
    const Node& node = graph_->nodes[index];
    const OperatorEntry* known = entries_[index];
    const Body* taken = known == nullptr || known->taken_body == nullptr
                            ? nullptr
                            : known->taken_body(node, constant_inputs(node));
    for (const Body& body : node.bodies) {
        if (taken != nullptr && taken != &body) continue;
        for (const NodeIndex inner : body.nodes) fold_group(inner);
    }
    if (taken != nullptr) return take_constants_of(index, *taken);
    if (known == nullptr || !may_fold(node)) return;
    try {
        fold_one(index);
    } catch (const Error&) {
        // A branch may be wrong for what leads to it to be never taken: the plan tells where it is.
        if (node.owner == no_node) throw;
    }
}

void Program::take_constants_of(NodeIndex index, const Body& body) {
    const Node& node = graph_->nodes[index];
    bool all = true;
    for (std::size_t i = 0; i < node.outputs.size() && i < body.outputs.size(); ++i) {
        const Tensor* known = constant(body.outputs[i]);
        if (node.outputs[i] == no_value) continue;
        all = all && known != nullptr && rights_[node.outputs[i]] != TapRight::write;
    }
    if (!all) return;
    folded_[index] = true;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != no_value)
            constants_.insert_or_assign(node.outputs[i], *constant(body.outputs[i]));
    }
}

std::vector<InputInfo> Program::constant_inputs(const Node& node) const {
    std::vector<InputInfo> inputs;
    for (const ValueId input : node.inputs) {
        const Tensor* known = input == no_value ? nullptr : constant(input);
        inputs.push_back(known == nullptr ? InputInfo{} : InputInfo{known->descriptor(), *known, true});
    }
    return inputs;
}

void Program::fold_one(NodeIndex index) {
    const Node& node = graph_->nodes[index];
    if (!makes_something(node)) return;
    const bool all_known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        return input == no_value || constant(input) != nullptr;
    });
    if (!all_known) return;
    const std::vector<InputInfo> inputs = constant_inputs(node);
    const NodeContext context{*graph_, node, inputs, weights_};
    check_elements(*entries_[index], context);
    const std::unique_ptr<Kernel> kernel = make_kernel_of(index);
    std::vector<Tensor> outputs = fold_node(context, *kernel);
    folded_[index] = true;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == no_value) continue;
        const Value& value = graph_->values[node.outputs[i]];
        outputs[i] = rounded_to(value.declared_type, std::move(outputs[i]));
        constants_.insert_or_assign(node.outputs[i], in_computed_type(std::move(outputs[i]), value.name));
    }
}

void Program::fuse() {
    std::vector<bool> wanted;
    for (const TapRight right : rights_) wanted.push_back(right != TapRight::ignore);
    FusedGraph fused = fuse_nodes(graph_, wanted, [&](ValueId value) { return constant(value); });
    graph_ = std::move(fused.graph);
    for (NodeIndex index = 0; index < graph_->nodes.size(); ++index) {
        const Node& node = graph_->nodes[index];
        if (fused.absorbed[index]) folded_[index] = true;
        if (node.domain == fused_domain)
            entries_[index] = registry_->find(node.domain, node.op_type, node.opset);
    }
}

void Program::find_signature_inputs() {
    const WantedValues wanted = WantedFinder(*graph_, entries_, folded_).run();
    for (std::size_t i = 0; i < graph_->inputs.size(); ++i) {
        const ValueId input = graph_->inputs[i];
        const Value& value = graph_->values[input];
        const bool vector =
            value.declared_shape && value.declared_shape->size() <= 1;  // scales, as of a Resize
        const bool numeric = value.declared_type == DataType::undefined || is_numeric(value.declared_type);
        const bool needed = wanted.needed[input] && numeric && (vector || !is_floating(value.declared_type));
        if (needed || (wanted.useful[input] && is_few_integers(value))) signature_inputs_.push_back(i);
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

PlanTask Program::whole_graph() const {
    PlanTask task;
    for (const NodeIndex node : graph_->outermost_nodes()) task.work.push_back({node});
    std::reverse(task.work.begin(), task.work.end());
    task.inputs = graph_->inputs;
    return task;
}

std::vector<InputInfo> Program::describe_inputs(std::span<const Tensor> inputs) const {
    std::vector<InputInfo> infos;
    for (const Tensor& input : inputs) {
        InputInfo& info = infos.emplace_back();
        info.descriptor = input.descriptor();
        const std::size_t rank = info.descriptor.rank();
        if (options_.channels_last_inputs && rank >= 3 && rank <= 5) {
            info.descriptor.order = MemoryOrder::channels_last;
        }
    }
    for (const std::size_t i : signature_inputs_) infos[i].constant = inputs[i];
    return infos;
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
    std::shared_ptr<const Plan> plan = PlanBuilder(*this, whole_graph(), describe_inputs(inputs)).build();
    plans_.emplace(plans_.begin(), std::move(signature), plan);
    if (plans_.size() > plan_cache_size) plans_.pop_back();
    return plan;
}

}  // namespace qcalib
