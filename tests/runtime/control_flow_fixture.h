#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/model_files.h"
#include "runtime/frame.h"
#include "runtime/program.h"
#include "support/operator_harness.h"

namespace qcalib::test {

inline constexpr std::array all_kernels = {Kernels::fast, Kernels::reference, Kernels::reference_float64};

inline Tensor floats(const std::vector<float>& values) {
    return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

inline Tensor yes(bool value) {
    Tensor tensor(TensorDescriptor{DataType::boolean, {}, MemoryOrder::row_major});
    tensor.mutable_view().as<std::uint8_t>()[0] = value ? 1 : 0;
    return tensor;
}

// Keeps what it sees, and may change it.
class KeepingTap : public Tap {
  public:
    std::map<std::string, TapRight> rights;  // others: read
    std::function<void(const std::string&, MutableTensorView)> change;
    std::vector<std::string> seen;  // in order
    std::map<std::string, std::vector<float>> values;
    std::map<std::string, Shape> shapes;

    TapRight right(const Graph& graph, ValueId value) const override {
        graph_ = &graph;
        const auto found = rights.find(graph.values[value].name);
        return found == rights.end() ? TapRight::read : found->second;
    }
    void on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) override {
        const std::string& name = graph_->values[value].name;
        seen.push_back(name);
        if (change) change(name, view);
        const std::vector<double> numbers = numbers_of(view);
        values[name].assign(numbers.begin(), numbers.end());
        shapes[name] = view.descriptor->shape;
    }

  private:
    mutable const Graph* graph_ = nullptr;
};

// A model that is run several times, with all it makes.
class Run {
  public:
    explicit Run(const OnnxModel& model, Kernels kernels = Kernels::fast) : model_(load(model)) {
        options_.reference_kernels = kernels == Kernels::reference || kernels == Kernels::reference_float64;
        options_.float64 = kernels == Kernels::reference_float64;
        restart();
    }

    // The values by name, as the last iteration made them.
    std::map<std::string, std::vector<float>> operator()(const std::vector<Tensor>& inputs) {
        tap_.seen.clear();
        tap_.values.clear();
        plan_ = program_->plan(inputs);
        frame_->run(plan_, inputs, 0);
        std::map<std::string, std::vector<float>> values = tap_.values;
        for (ValueId value = 0; value < graph().values.size(); ++value) {
            const Tensor* constant = program_->constant(value);
            if (constant == nullptr) continue;
            const std::vector<double> numbers = numbers_of(constant->view());
            values[graph().values[value].name].assign(numbers.begin(), numbers.end());
        }
        return values;
    }

    // After the tap's rights have changed.
    void restart() {
        frame_ = std::make_unique<Frame>();
        program_ =
            std::make_unique<Program>(model_.graph, builtin_kernels(), std::vector<Tap*>{&tap_}, options_);
    }

    KeepingTap& tap() { return tap_; }
    const Graph& graph() const { return *model_.graph; }
    const Program& program() const { return *program_; }
    const Plan& plan() const { return *plan_; }
    const std::vector<std::string>& seen() const { return tap_.seen; }
    Shape shape(const std::string& name) const { return tap_.shapes.at(name); }
    std::ptrdiff_t count(const std::string& name) const {
        return std::count(tap_.seen.begin(), tap_.seen.end(), name);
    }
    // What the plan runs.
    std::vector<std::string> step_operators() const {
        std::vector<std::string> operators;
        for (const Step& step : plan_->steps()) {
            if (step.kind == Step::Kind::run) operators.push_back(graph().nodes[step.node].op_type);
        }
        return operators;
    }

  private:
    Model model_;
    ProgramOptions options_;
    KeepingTap tap_;
    std::unique_ptr<Program> program_;
    std::unique_ptr<Frame> frame_;
    std::shared_ptr<const Plan> plan_;
};

}  // namespace qcalib::test
