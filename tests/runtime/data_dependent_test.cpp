// Shapes and values that are known only while a sample runs: plans end there and go on.
#include <doctest/doctest.h>

#include "base/error.h"
#include "runtime/control_flow_fixture.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("NonZero gives the indices of what is not zero, in row-major order, for every type") {
    OperatorCase test{.op_type = "NonZero"};
    test.inputs = {Tensor::of<float>({2, 3}, Floats{1, 0, -2, -0.0F, 5, 0})};
    for (const bool constant : {false, true}) {
        test.constant = {constant};
        for (const Kernels kernels : all_kernels) {
            const Tensor found = run_operator(test, kernels)[0];
            CHECK(found.shape() == Shape{2, 3});
            CHECK(integers_of(found.view()) == Integers{0, 0, 1, 0, 2, 1});
        }
    }
    test.inputs = {Tensor::of<std::int64_t>({3}, Integers{0, 7, 0})};
    CHECK(integers_of(run_operator(test, Kernels::fast)[0].view()) == Integers{1});
    test.inputs = {yes(true)};
    CHECK(run_operator(test, Kernels::fast)[0].shape() == Shape{0, 1});
    test.inputs = {Tensor::of<float>({2, 2}, Floats{0, 0, 0, 0})};
    CHECK(run_operator(test, Kernels::fast)[0].shape() == Shape{2, 0});
}

TEST_CASE("channels-last data has its indices in row-major order, too") {
    OperatorCase test{.op_type = "NonZero"};
    test.inputs = {random_tensor({1, 3, 4, 5}, 1)};
    const Tensor expected = run_operator(test, Kernels::fast)[0];
    const Tensor found = run_operator(test, Kernels::fast_channels_last)[0];
    CHECK(integers_of(found.view()) == integers_of(expected.view()));
}

TEST_CASE("what follows a data-dependent shape has a plan for each shape found") {
    OnnxModel model;
    model.graph.input("x", {"n"}).initializer("two", {}, Floats{2});
    model.graph.node("Mul", {"x", "two"}, {"d"}).node("NonZero", {"x"}, {"at"});
    model.graph.node("Transpose", {"at"}, {"rows"}).node("GatherND", {"d", "rows"}, {"found"});
    model.graph.node("Neg", {"found"}, {"y"}).node("Neg", {"d"}, {"z"}).output("y").output("z");
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        auto values = run({floats({0, 1, 0, 2})});
        CHECK(values["y"] == Floats{-2, -4});
        CHECK(values["z"] == Floats{0, -2, 0, -4});
        CHECK(run.seen() == std::vector<std::string>{"x", "d", "at", "rows", "found", "y", "z"});
        CHECK(run({floats({0, 1, 3, 2})})["y"] == Floats{-2, -6, -4});
        CHECK(run({floats({5, 0, 0, 0})})["y"] == Floats{-10});
        CHECK(run({floats({0, 0, 0, 0})})["y"].empty());
        CHECK(run({floats({0, 1, 0, 2})})["y"] == Floats{-2, -4});
    }
}

TEST_CASE("one data-dependent shape after another, and values of before, are handed on") {
    OnnxModel model;
    model.graph.input("x", {"n"}).initializer("k", {2}, Floats{3, 4});
    model.graph.node("Exp", {"x"}, {"e"}).node("NonZero", {"x"}, {"a"}).node("Neg", {"a"}, {"b"});
    model.graph.node("NonZero", {"b"}, {"c"}).node("Shape", {"c"}, {"s"});
    model.graph.node("Add", {"e", "e"}, {"late"}).node("Add", {"k", "k"}, {"kk"}).node("Abs", {"a"}, {"aa"});
    model.graph.output("late").output("kk").output("s").output("aa");
    Run run(model);
    auto values = run({floats({0, 1, 1})});
    CHECK(values["late"][0] == 2.0F);
    CHECK(values["s"] == Floats{2, 2});
    CHECK(values["aa"] == Floats{1, 2});
    values = run({floats({1, 0, 0})});
    CHECK(values["a"] == Floats{0});
    CHECK(values["s"] == Floats{2, 0});
}

TEST_CASE("a shape that is computed from data is known once the data is") {
    OnnxModel model;
    model.graph.input("x", {"n"}).input("ids", {"n"}, DataType::int64).initializer("one", {}, Integers{1});
    model.graph.initializer("zero", {}, Integers{0}).initializer("axes", {1}, Integers{0});
    model.graph.node("ReduceMax", {"ids"}, {"most"}, {{"keepdims", 0}})
        .node("Add", {"most", "one"}, {"count"});
    model.graph.node("Range", {"zero", "count", "one"}, {"range"}).node("Neg", {"x"}, {"y"});
    model.graph.node("Cast", {"range"}, {"r"}, {{"to", 1}}).output("r").output("y");
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        const auto ids = [](const Integers& values) {
            return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
        };
        CHECK(run({floats({1, 2}), ids({0, 2})})["r"] == Floats{0, 1, 2});
        CHECK(run({floats({1, 2}), ids({4, 2})})["r"] == Floats{0, 1, 2, 3, 4});
        CHECK(run({floats({1, 2}), ids({0, 2})})["y"] == Floats{-1, -2});
    }
}

TEST_CASE("a data-dependent shape inside a Loop is found anew in each iteration") {
    OnnxGraph body;
    body.input("i", {}, DataType::int64).input("go", {}, DataType::boolean).input("s", {"n"});
    body.node("Sub", {"s", "one"}, {"d"}).node("Relu", {"d"}, {"t"}).node("NonZero", {"t"}, {"at"});
    body.node("Shape", {"at"}, {"sh"}).node("Identity", {"go"}, {"again"});
    body.output("again", {}, DataType::boolean).output("t").output("sh", {2}, DataType::int64);
    OnnxModel model;
    model.graph.input("x", {3}).initializer("n", {}, Integers{3}).initializer("one", {}, Floats{1});
    model.graph.node("Loop", {"n", "", "x"}, {"y", "sizes"}, {{"body", body}}, "loop").output("y");
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        const auto values = run({floats({3, 2, 0})});
        CHECK(values.at("y") == Floats{0, 0, 0});
        CHECK(values.at("sizes") == Floats{1, 2, 1, 1, 1, 0});
        CHECK(run.shape("sizes") == Shape{3, 2});
        CHECK(run.count("at") == 3);
    }
}

TEST_CASE("a data-dependent shape inside a branch is found where the branch is taken") {
    OnnxGraph finding;
    finding.node("NonZero", {"x"}, {"at"}).node("Cast", {"at"}, {"f"}, {{"to", 1}}).output("f");
    OnnxGraph plain;
    plain.node("Neg", {"x"}, {"p"}).output("p");
    OnnxModel model;
    model.graph.input("x", {"n"}).initializer("zero", {}, Floats{0});
    model.graph.node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", 0}}).node("Greater", {"sum", "zero"}, {"c"});
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", finding}, {"else_branch", plain}})
        .node("Neg", {"y"}, {"z"});
    Run run(model);
    CHECK(run({floats({0, 1, 2})})["z"] == Floats{-1, -2});
    CHECK(run({floats({0, -1, -2})})["z"] == Floats{0, -1, -2});
    CHECK(run({floats({3, -1, -1})})["z"] == Floats{0, -1, -2});
}

TEST_CASE("an error behind a data-dependent shape names its node") {
    OnnxModel model;
    model.graph.input("x", {"n"}).initializer("shape", {2}, Integers{3, 1});
    model.graph.node("NonZero", {"x"}, {"at"}).node("Reshape", {"at", "shape"}, {"y"}, {}, "fit").output("y");
    Run run(model);
    CHECK(run({floats({1, 1, 1})})["y"] == Floats{0, 1, 2});
    CHECK(message_of<Error>([&] { run({floats({1, 0, 0})}); }).find("Reshape 'fit'") != std::string::npos);
    CHECK(run({floats({1, 1, 1})})["y"] == Floats{0, 1, 2});
}

TEST_CASE("a tap may change what has a data-dependent shape") {
    OnnxModel model;
    model.graph.input("x", {"n"}).node("NonZero", {"x"}, {"at"}).node("Neg", {"at"}, {"y"}).output("y");
    Run run(model);
    run.tap().rights = {{"at", TapRight::write}};
    run.tap().change = [](const std::string& name, MutableTensorView view) {
        if (name == "at") view.as<std::int64_t>()[0] = 70;
    };
    run.restart();
    CHECK(run({floats({0, 1})})["y"] == Floats{-70});
}

TEST_CASE("NonMaxSuppression picks the best boxes that do not overlap a better one") {
    OperatorCase test{.op_type = "NonMaxSuppression", .opset = 11};
    test.inputs = {
        Tensor::of<float>({1, 4, 4}, Floats{0, 0, 1, 1, 0, 0.1F, 1, 1.1F, 10, 11, 11, 10, 0, 0, 0, 0}),
        Tensor::of<float>({1, 2, 4}, Floats{0.9F, 0.75F, 0.6F, 0.1F, 0.2F, 0.3F, 0.05F, 0.3F}),
        Tensor::of<std::int64_t>({1}, Integers{3}), floats({0.5F}), floats({0.1F})};
    for (const Kernels kernels : all_kernels) {
        const Tensor found = run_operator(test, kernels)[0];
        CHECK(found.shape() == Shape{4, 3});
        CHECK(integers_of(found.view()) == Integers{0, 0, 0, 0, 0, 2, 0, 1, 1, 0, 1, 3});
    }
    test.inputs[2] = std::nullopt;
    CHECK(run_operator(test, Kernels::fast)[0].shape() == Shape{0, 3});
    test.inputs[1] = random_tensor({1, 2, 5}, 1);
    check_refused(
        test,
        "expected boxes [batches,boxes,4] and scores [batches,classes,boxes], found [1,4,4] and [1,2,5]");
}
