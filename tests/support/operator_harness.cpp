#include "support/operator_harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "runtime/frame.h"

namespace qcalib::test {

namespace {

Tensor row_major_copy(TensorView view) {
    TensorDescriptor descriptor = *view.descriptor;
    descriptor.order = MemoryOrder::row_major;
    Tensor copy(descriptor);
    copy_to_order(view, copy.mutable_view());
    copy.own_elements();
    return copy;
}

class CapturingTap : public Tap {
  public:
    explicit CapturingTap(const Graph& graph) : graph_(graph) {}
    TapRight right(const Graph& /*graph*/, ValueId /*value*/) const override { return TapRight::read; }
    void on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) override {
        values.insert_or_assign(graph_.values[value].name, row_major_copy(view));
    }

    std::map<std::string, Tensor> values;

  private:
    const Graph& graph_;
};

ProgramOptions options_for(Kernels kernels) {
    ProgramOptions options;
    options.row_major_only = kernels == Kernels::fast_row_major;
    options.channels_last_inputs = kernels == Kernels::fast_channels_last;
    options.reference_kernels = kernels == Kernels::reference || kernels == Kernels::reference_float64;
    options.float64 = kernels == Kernels::reference_float64;
    return options;
}

ValueId add_value(Graph& graph, const std::string& name) {
    graph.values.emplace_back();
    graph.values.back().name = name;
    graph.index[name] = static_cast<ValueId>(graph.values.size() - 1);
    return static_cast<ValueId>(graph.values.size() - 1);
}

}  // namespace

std::map<std::string, Tensor> run_graph(const std::shared_ptr<const Graph>& graph,
                                        const std::vector<Tensor>& inputs, Kernels kernels) {
    CapturingTap tap(*graph);
    Program program(graph, builtin_kernels(), {&tap}, options_for(kernels));
    Frame frame;
    frame.run(program.plan(inputs), inputs, 0);
    for (ValueId value = 0; value < graph->values.size(); ++value) {
        const Tensor* constant = program.constant(value);
        if (constant != nullptr)
            tap.values.emplace(graph->values[value].name, row_major_copy(constant->view()));
    }
    return tap.values;
}

std::vector<Tensor> run_operator(const OperatorCase& test, Kernels kernels) {
    auto graph = std::make_shared<Graph>();
    Node node;
    node.op_type = test.op_type;
    node.domain = test.domain;
    node.opset = test.opset;
    node.name = "node";
    node.attributes = test.attributes;
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < test.inputs.size(); ++i) {
        if (!test.inputs[i]) {
            node.inputs.push_back(no_value);
            continue;
        }
        const ValueId value = add_value(*graph, "input" + std::to_string(i));
        graph->values[value].declared_type = test.inputs[i]->type();
        node.inputs.push_back(value);
        if (i < test.constant.size() && test.constant[i]) {
            graph->values[value].initializer = *test.inputs[i];
        } else {
            graph->inputs.push_back(value);
            inputs.push_back(*test.inputs[i]);
        }
    }
    for (std::size_t i = 0; i < test.outputs; ++i) {
        const ValueId value = add_value(*graph, "output" + std::to_string(i));
        graph->values[value].producer = 0;
        node.outputs.push_back(value);
        graph->outputs.push_back(value);
    }
    graph->nodes.push_back(node);
    const std::map<std::string, Tensor> values = run_graph(graph, inputs, kernels);
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < test.outputs; ++i) outputs.push_back(values.at("output" + std::to_string(i)));
    return outputs;
}

Tensor random_tensor(Shape shape, std::uint64_t seed, double low, double high) {
    Random random(seed);
    Tensor tensor(TensorDescriptor{DataType::float32, std::move(shape), MemoryOrder::row_major});
    for (float& value : tensor.mutable_view().as<float>()) {
        value = static_cast<float>(low + (high - low) * random.unit());
    }
    return tensor;
}

namespace {

// The elements that break the rule of agreement, counted.
std::size_t count_disagreements(const Tensor& ours, const Tensor& expected) {
    const std::vector<double> a = numbers_of(ours.view());
    const std::vector<double> b = numbers_of(expected.view());
    const bool real = is_floating(expected.type());
    double largest = 0;
    for (const double value : b) {
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
        const double allowed = real ? 3e-5 * largest + 1e-4 * std::abs(b[i]) : 0;
        if (!(std::abs(a[i] - b[i]) <= allowed)) ++wrong;
    }
    return wrong;
}

}  // namespace

void check_all_kernels_agree(const OperatorCase& test) {
    const std::vector<Tensor> expected = run_operator(test, Kernels::reference_float64);
    for (const auto& [name, kernels] : {std::pair{"fast", Kernels::fast},
                                        std::pair{"fast, channels-last inputs", Kernels::fast_channels_last},
                                        std::pair{"fast, row-major", Kernels::fast_row_major},
                                        std::pair{"reference, float32", Kernels::reference}}) {
        const std::vector<Tensor> outputs = run_operator(test, kernels);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            INFO(test.op_type << " output " << i << ", kernels: " << name);
            REQUIRE(outputs[i].shape() == expected[i].shape());
            CHECK(count_disagreements(outputs[i], expected[i]) == 0);
        }
    }
}

void check_refused(const OperatorCase& test, const std::string& part) {
    for (const Kernels kernels :
         {Kernels::fast, Kernels::fast_channels_last, Kernels::fast_row_major, Kernels::reference}) {
        INFO(test.op_type << ", kernels " << static_cast<int>(kernels));
        CHECK_THROWS_WITH_AS(run_operator(test, kernels), doctest::Contains(part.c_str()), Error);
    }
}

}  // namespace qcalib::test
