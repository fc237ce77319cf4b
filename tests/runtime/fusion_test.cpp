#include "runtime/fusion.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/onnx_file.h"
#include "runtime/frame.h"
#include "runtime/program.h"
#include "support/onnx_builder.h"
#include "support/operator_harness.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// Keeps the values of some names.
class KeepTap : public Tap {
  public:
    explicit KeepTap(std::set<std::string> names) : names_(std::move(names)) {}
    TapRight right(const Graph& graph, ValueId value) const override {
        graph_ = &graph;
        return names_.contains(graph.values[value].name) ? TapRight::read : TapRight::ignore;
    }
    void on_value(ValueId value, std::uint64_t, MutableTensorView view) override {
        Tensor copy(TensorDescriptor{view.descriptor->type, view.descriptor->shape, MemoryOrder::row_major});
        copy_to_order(view, copy.mutable_view());
        kept.insert_or_assign(graph_->values[value].name, copy);
    }
    std::map<std::string, Tensor> kept;

  private:
    std::set<std::string> names_;
    mutable const Graph* graph_ = nullptr;
};

// A convolution of [2, 8, 9, 9] by `weights` that makes "c", and what comes behind it, which makes "y".
OnnxModel convolution_then(const std::function<void(OnnxGraph&)>& behind, Shape weights = {16, 8, 3, 3},
                           std::int64_t groups = 1) {
    OnnxModel model;
    model.opsets = {{"", 14}};
    model.graph.input("x", {2, 8, 9, 9});
    const std::int64_t channels = weights[0];
    model.graph.initializers.push_back(OnnxTensor::of("w", random_tensor(std::move(weights), 1, -0.7, 0.7)));
    model.graph.initializers.push_back(OnnxTensor::of("b", random_tensor({channels}, 2)));
    model.graph.node("Conv", {"x", "w", "b"}, {"c"}, {{"group", groups}});
    for (const auto& [name, number] : std::map<std::string, float>{
             {"zero", 0.0F}, {"three", 3.0F}, {"six", 6.0F}, {"half", 0.5F}, {"less", -0.25F}}) {
        model.graph.initializers.push_back(
            OnnxTensor::of(name, Tensor::of<float>({}, std::vector<float>{number})));
    }
    behind(model.graph);
    model.graph.output("y");
    return model;
}

struct Run {
    std::map<std::string, Tensor> values;
    std::size_t fused = 0;  // steps that do more than one node's work
    std::size_t steps = 0;
};

Run run(const OnnxModel& model, const Tensor& input, ProgramOptions options, std::set<std::string> wanted) {
    const TemporaryFolder folder;
    model.save(folder / "m.onnx");
    const Model read = read_onnx_file(folder / "m.onnx");
    KeepTap tap(std::move(wanted));
    Program program(read.graph, builtin_kernels(), {&tap}, std::move(options));
    const std::vector<Tensor> inputs{input};
    const std::shared_ptr<const Plan> plan = program.plan(inputs);
    Frame frame;
    frame.run(plan, inputs, 0);
    Run result{tap.kept, 0, 0};
    for (const Step& step : plan->steps()) {
        if (step.kind != Step::Kind::run) continue;
        ++result.steps;
        if (program.graph().nodes[step.node].domain == fused_domain) ++result.fused;
    }
    return result;
}

Tensor input_with_infinity() {
    Tensor input = random_tensor({2, 8, 9, 9}, 3, -4, 4);
    input.mutable_view().as<float>()[8 * 81 + 40] = std::numeric_limits<float>::infinity();
    return input;
}

double largest_difference(const Run& a, const Run& b) {
    const std::span<const float> ours = a.values.at("y").view().as<float>();
    const std::span<const float> theirs = b.values.at("y").view().as<float>();
    REQUIRE(ours.size() == theirs.size());
    double largest = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(ours[i]) - theirs[i]));
    }
    return largest;
}

// Expects one step for all, whose result agrees with the reference kernels' number by number, NaN by NaN.
void check_fused(const OnnxModel& model, const Tensor& input) {
    const Run fused = run(model, input, {}, {"y"});
    CHECK(fused.steps == 1);
    CHECK(fused.fused == 1);
    ProgramOptions reference;
    reference.reference_kernels = true;
    const Run expected = run(model, input, reference, {"y"});
    const std::span<const float> ours = fused.values.at("y").view().as<float>();
    const std::span<const float> theirs = expected.values.at("y").view().as<float>();
    REQUIRE(ours.size() == theirs.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        const bool same = ours[i] == theirs[i] || (std::isnan(ours[i]) && std::isnan(theirs[i])) ||
                          std::abs(ours[i] - theirs[i]) <= 3e-4F + 1e-4F * std::abs(theirs[i]);
        wrong += same ? 0 : 1;
    }
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("a convolution does the activations behind it that nobody wants to see before") {
    const std::map<std::string, std::function<void(OnnxGraph&)>> chains{
        {"Relu", [](OnnxGraph& graph) { graph.node("Relu", {"c"}, {"y"}); }},
        {"LeakyRelu",
         [](OnnxGraph& graph) {
             graph.node("LeakyRelu", {"c"}, {"y"}, {{"alpha", 0.2}});
         }},
        {"Clip",
         [](OnnxGraph& graph) {
             graph.node("Clip", {"c", "zero", "six"}, {"y"});
         }},
        {"Clip from below",
         [](OnnxGraph& graph) {
             graph.node("Clip", {"c", "less"}, {"y"});
         }},
        {"HardSwish", [](OnnxGraph& graph) { graph.node("HardSwish", {"c"}, {"y"}); }},
        {"HardSwish from HardSigmoid",
         [](OnnxGraph& graph) {
             graph.node("HardSigmoid", {"c"}, {"s"}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
             graph.node("Mul", {"c", "s"}, {"y"});
         }},
        {"HardSwish written out, then numbers",
         [](OnnxGraph& graph) {
             graph.node("Add", {"c", "three"}, {"a"});
             graph.node("Clip", {"a", "zero", "six"}, {"l"});
             graph.node("Mul", {"c", "l"}, {"m"});
             graph.node("Div", {"m", "six"}, {"d"});
             graph.node("Mul", {"half", "d"}, {"e"});
             graph.node("Sub", {"e", "three"}, {"y"});
         }},
    };
    for (const auto& [name, behind] : chains) {
        CAPTURE(name);
        check_fused(convolution_then(behind), random_tensor({2, 8, 9, 9}, 4, -4, 4));
        check_fused(convolution_then(behind, {8, 1, 3, 3}, 8), random_tensor({2, 8, 9, 9}, 5, -4, 4));
        check_fused(convolution_then(behind, {24, 8, 1, 1}), random_tensor({2, 8, 9, 9}, 6, -4, 4));
    }
}

TEST_CASE(
    "infinity comes out of a fused activation as out of a node of its own; NaN becomes NaN or a bound") {
    const auto relu = [](OnnxGraph& graph) { graph.node("Relu", {"c"}, {"y"}); };
    const auto clip = [](OnnxGraph& graph) { graph.node("Clip", {"c", "zero", "six"}, {"y"}); };
    for (const Shape& weights : {Shape{16, 8, 3, 3}, Shape{24, 8, 1, 1}}) {
        check_fused(convolution_then(relu, weights), input_with_infinity());
        check_fused(convolution_then(clip, weights), input_with_infinity());
        Tensor input = input_with_infinity();
        input.mutable_view().as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
        const Run fused = run(convolution_then(clip, weights), input, {}, {"y"});
        for (const float number : fused.values.at("y").view().as<float>()) {
            CHECK((std::isnan(number) || (number >= 0 && number <= 6)));
        }
    }
}

TEST_CASE("Swish and Gelu that are written out become one step") {
    const OnnxModel swish = convolution_then([](OnnxGraph& graph) {
        graph.node("Sigmoid", {"c"}, {"s"});
        graph.node("Mul", {"s", "c"}, {"y"});
    });
    const OnnxModel gelu = convolution_then([](OnnxGraph& graph) {
        graph.initializers.push_back(
            OnnxTensor::of("root", Tensor::of<float>({}, std::vector<float>{std::sqrt(2.0F)})));
        graph.initializers.push_back(OnnxTensor::of("one", Tensor::of<float>({}, std::vector<float>{1.0F})));
        graph.node("Div", {"c", "root"}, {"d"});
        graph.node("Erf", {"d"}, {"e"});
        graph.node("Add", {"e", "one"}, {"a"});
        graph.node("Mul", {"c", "a"}, {"m"});
        graph.node("Mul", {"m", "half"}, {"y"});
    });
    const Tensor input = random_tensor({2, 8, 9, 9}, 11, -4, 4);
    ProgramOptions reference;
    reference.reference_kernels = true;
    for (const OnnxModel* model : {&swish, &gelu}) {
        const Run fused = run(*model, input, {}, {"y", "c"});
        CHECK(fused.fused == 1);
        CHECK(fused.steps == 2);
        CHECK(largest_difference(fused, run(*model, input, reference, {"y"})) < 1e-4);
        CHECK(run(*model, input, {}, {"y", model == &swish ? "s" : "a"}).fused == 0);
    }
}

TEST_CASE("a chain ends where an activation comes for the second time") {
    const OnnxModel model = convolution_then([](OnnxGraph& graph) {
        graph.node("LeakyRelu", {"c"}, {"l"}, {{"alpha", 0.5}});
        graph.node("Mul", {"l", "less"}, {"m"});
        graph.node("LeakyRelu", {"m"}, {"y"}, {{"alpha", 0.125}});
    });
    const Tensor input = random_tensor({2, 8, 9, 9}, 10);
    const Run fused = run(model, input, {}, {"y"});
    CHECK(fused.fused == 1);
    CHECK(fused.steps == 2);
    ProgramOptions reference;
    reference.reference_kernels = true;
    CHECK(largest_difference(fused, run(model, input, reference, {"y"})) < 1e-5);
}

TEST_CASE("what somebody wants to see is not fused away") {
    const OnnxModel model = convolution_then([](OnnxGraph& graph) { graph.node("Relu", {"c"}, {"y"}); });
    const Tensor input = random_tensor({2, 8, 9, 9}, 7);
    const Run both = run(model, input, {}, {"c", "y"});
    CHECK(both.fused == 0);
    CHECK(both.values.contains("c"));
    ProgramOptions apart;
    apart.fuse = false;
    CHECK(run(model, input, apart, {"y"}).fused == 0);
}

TEST_CASE("a convolution that more than its activation reads, or a number that is none, is left alone") {
    const Tensor input = random_tensor({2, 8, 9, 9}, 8);
    const OnnxModel two_readers = convolution_then([](OnnxGraph& graph) {
        graph.node("Relu", {"c"}, {"r"});
        graph.node("Add", {"r", "c"}, {"y"});
    });
    CHECK(run(two_readers, input, {}, {"y"}).fused == 0);
    const OnnxModel other_gate = convolution_then([](OnnxGraph& graph) {
        graph.node("HardSigmoid", {"c"}, {"s"});
        graph.node("Mul", {"c", "s"}, {"y"});
    });
    CHECK(run(other_gate, input, {}, {"y"}).fused == 0);
    const OnnxModel by_channel = convolution_then([](OnnxGraph& graph) {
        graph.initializers.push_back(OnnxTensor::of("v", random_tensor({16, 1, 1}, 9)));
        graph.node("Mul", {"c", "v"}, {"y"});
    });
    CHECK(run(by_channel, input, {}, {"y"}).fused == 0);
    const OnnxModel is_output = convolution_then([](OnnxGraph& graph) {
        graph.node("Relu", {"c"}, {"y"});
        graph.output("c");
    });
    CHECK(run(is_output, input, {}, {"y"}).fused == 0);
}

TEST_CASE("a number that raises the rank keeps a written-out Gelu apart") {
    OnnxModel model;
    model.graph.input("x", {4, 6});
    const auto number = [&](const std::string& name, Shape shape, float value) {
        model.graph.initializers.push_back(
            OnnxTensor::of(name, Tensor::of<float>(std::move(shape), std::vector<float>{value})));
    };
    number("root", {1, 1, 1}, std::sqrt(2.0F));
    number("one", {}, 1);
    number("half", {}, 0.5F);
    model.graph.node("Div", {"x", "root"}, {"d"});
    model.graph.node("Erf", {"d"}, {"e"});
    model.graph.node("Add", {"e", "one"}, {"a"});
    model.graph.node("Mul", {"x", "a"}, {"m"});
    model.graph.node("Mul", {"m", "half"}, {"y"});
    model.graph.output("y");
    const Run apart = run(model, random_tensor({4, 6}, 12), {}, {"y"});
    CHECK(apart.fused == 0);
    CHECK(apart.values.at("y").shape() == Shape{1, 4, 6});
}

TEST_CASE("nodes that lack inputs or outputs are refused as they are, not looked into") {
    for (const char* op_type : {"Div", "Sigmoid", "Clip", "Mul", "Add"}) {
        CAPTURE(op_type);
        for (const std::vector<std::string>& inputs :
             {std::vector<std::string>{}, {"c"}, {"c", ""}, {"", "c"}}) {
            for (const std::vector<std::string>& outputs : {std::vector<std::string>{"y"}, {""}}) {
                const OnnxModel model = convolution_then([&](OnnxGraph& graph) {
                    graph.node(op_type, inputs, outputs);
                    if (outputs[0].empty()) graph.node("Relu", {"c"}, {"y"});
                });
                try {
                    run(model, random_tensor({2, 8, 9, 9}, 13), {}, {"y"});
                } catch (const Error& error) {
                    CHECK(std::string(error.what()).find(op_type) != std::string::npos);
                }
            }
        }
    }
}
