#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/kernel_registry.h"
#include "runtime/plan.h"
#include "runtime/tap.h"
#include "runtime/weight_cache.h"

namespace qcalib {

struct PlanTask;

struct ProgramOptions {
    bool reference_kernels = false;      // plain kernels instead of fast ones
    bool float64 = false;                // compute float tensors in double (reference kernels only)
    bool row_major_only = false;         // never use channels-last, whatever kernels ask for
    bool fuse = true;                    // make nodes one where no tap wants what is between (fusion.h)
    bool channels_last_inputs = false;   // graph inputs of rank 3 to 5 lie channels-last
    std::map<ValueId, Tensor> replaced;  // values of initializers to use instead of the file's
};

// Each operator of the graph that `registry` lacks: one line per operator with its domain, its opset and its
// nodes. Those of a branch are left out where shapes and integers decide whether it is taken: the plan tells
// when it is. Empty where the model can run.
std::vector<std::string> missing_operators(const Graph& graph, const KernelRegistry& registry);

// A graph made ready to run: kernels chosen, what hangs on initializers alone folded, plans made on demand
// and kept. Thread-safe. Throws Error listing all missing operators.
class Program {
  public:
    Program(std::shared_ptr<const Graph> graph, const KernelRegistry& registry, std::vector<Tap*> taps,
            ProgramOptions options = {});
    ~Program();

    const Graph& graph() const { return *graph_; }

    // The value of an initializer (its replacement, if any) or of what was folded from initializers; else
    // nullptr. Row-major, float values as float32 (float64 where so computed).
    const Tensor* constant(ValueId value) const;

    // The plan for inputs of these descriptors and, where shapes depend on them, values; from a small cache.
    // `inputs` are the graph's inputs in order. Errors name the node that cannot take its inputs.
    std::shared_ptr<const Plan> plan(std::span<const Tensor> inputs);

    std::size_t weight_bytes() const { return weights_.bytes(); }

  private:
    friend class PlanBuilder;

    void take_initializers();
    void fold_constants();
    void fold_group(NodeIndex index);
    void fold_one(NodeIndex index);
    void take_constants_of(NodeIndex index, const Body& body);
    std::vector<InputInfo> constant_inputs(const Node& node) const;
    void fuse();
    void find_signature_inputs();
    const OperatorEntry& entry(NodeIndex node) const;  // throws Error where the operator is missing
    void check_inputs(std::span<const Tensor> inputs) const;
    PlanTask whole_graph() const;
    std::vector<InputInfo> describe_inputs(std::span<const Tensor> inputs) const;
    std::string signature_of(std::span<const Tensor> inputs) const;
    Tensor in_computed_type(Tensor tensor, std::string_view name) const;
    std::unique_ptr<Kernel> make_kernel_of(NodeIndex node) const;
    bool may_fold(const Node& node) const;

    std::shared_ptr<const Graph> graph_;
    const KernelRegistry* registry_;
    std::vector<Tap*> taps_;
    ProgramOptions options_;
    mutable WeightCache weights_;
    std::vector<const OperatorEntry*> entries_;      // per node; nullptr where missing
    std::vector<TapRight> rights_;                   // per value
    std::unordered_map<ValueId, Tensor> constants_;  // initializers and folded values
    std::vector<bool> folded_;                       // per node: its outputs are constants
    std::vector<std::size_t> signature_inputs_;      // graph inputs whose values are part of the signature

    std::mutex mutex_;
    std::vector<std::pair<std::string, std::shared_ptr<const Plan>>> plans_;  // most recently used first
};

}  // namespace qcalib
