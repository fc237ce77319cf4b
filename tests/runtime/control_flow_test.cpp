#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/model_files.h"
#include "runtime/allocation_counter.h"
#include "runtime/control_flow_fixture.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using Floats = std::vector<float>;

// y = c ? Relu(x) * w : -x, for a condition that the model is given.
OnnxModel choice(OnnxGraph then_branch, OnnxGraph else_branch) {
    OnnxModel model;
    model.graph.input("c", {}, DataType::boolean).input("x", {"n"});
    model.graph.initializer("w", {1}, Floats{10});
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", then_branch}, {"else_branch", else_branch}},
                     "choice");
    return model;
}

OnnxGraph scaled() {
    OnnxGraph branch;
    branch.node("Relu", {"x"}, {"r"}).node("Mul", {"r", "w"}, {"scaled"}).output("scaled");
    return branch;
}

OnnxGraph negated() {
    OnnxGraph branch;
    branch.node("Neg", {"x"}, {"negated"}).output("negated");
    return branch;
}

// A condition that hangs on data: whether the sum of x is above 0.
void add_data_condition(OnnxGraph& graph) {
    graph.input("x", {"n"}).initializer("zero", {}, Floats{0});
    graph.node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", 0}}).node("Greater", {"sum", "zero"}, {"c"});
}

OnnxModel data_choice(const OnnxGraph& then_branch, const OnnxGraph& else_branch) {
    OnnxModel model;
    add_data_condition(model.graph);
    model.graph.initializer("w", {1}, Floats{10});
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", then_branch}, {"else_branch", else_branch}},
                     "choice");
    model.graph.node("Neg", {"y"}, {"z"});
    return model;
}

// Sums v over a number of iterations: s = s + v, and hands out each sum.
OnnxGraph summing_body() {
    OnnxGraph body;
    body.input("i", {}, DataType::int64).input("go", {}, DataType::boolean).input("s", {"n"});
    body.node("Add", {"s", "v"}, {"t"}).node("Identity", {"go"}, {"again"}).node("Identity", {"t"}, {"each"});
    body.output("again", {}, DataType::boolean).output("t").output("each");
    return body;
}

}  // namespace

TEST_CASE("an If takes the branch of its condition with all kinds of kernels") {
    for (const Kernels kernels : all_kernels) {
        Run run(data_choice(scaled(), negated()), kernels);
        CHECK(run({floats({1, -2, 3})})["y"] == Floats{10, 0, 30});
        CHECK(run({floats({1, -2, 0})})["y"] == Floats{-1, 2, 0});
        CHECK(run.seen() == std::vector<std::string>{"x", "sum", "c", "negated", "y", "z"});
        CHECK(run({floats({5, -2, 0})})["z"] == Floats{-50, 0, 0});
        CHECK(run.seen() == std::vector<std::string>{"x", "sum", "c", "r", "scaled", "y", "z"});
    }
}

TEST_CASE("an If whose condition is an input of the signature becomes the branch it takes") {
    OnnxGraph wrong;
    wrong.node("Reshape", {"x", "shape"}, {"reshaped"}).output("reshaped");
    wrong.initializer("shape", {2}, std::vector<std::int64_t>{7, 77});
    Run run(choice(scaled(), wrong));
    CHECK(run({yes(true), floats({1, -2})})["y"] == Floats{10, 0});
    CHECK(run.step_operators() == std::vector<std::string>{"Relu", "Mul"});
    CHECK(message_of<Error>([&] {
              run({yes(false), floats({1, -2})});
          }).find("'reshaped'") != std::string::npos);
}

TEST_CASE("an If decided by an initializer leaves nothing of the other branch, not even a missing operator") {
    OnnxGraph unknown;
    unknown.node("NoSuchOperator", {"x"}, {"u"}).output("u");
    OnnxModel model = choice(unknown, scaled());
    model.graph.inputs.erase(model.graph.inputs.begin());
    model.graph.initializer("c", yes(false));
    Run run(model);
    CHECK(run({floats({1, -2})})["y"] == Floats{10, 0});
    CHECK(run.step_operators() == std::vector<std::string>{"Relu", "Mul"});
    model.graph.initializers.back() = OnnxTensor::of("c", yes(true));
    Run other(model);
    CHECK(message_of<Error>([&] {
              other({floats({1, -2})});
          }).find("operator NoSuchOperator (opset 13)") != std::string::npos);
}

TEST_CASE("a missing operator in a branch that data decides on is told before anything runs") {
    OnnxGraph unknown;
    unknown.node("NoSuchOperator", {"x"}, {"u"}, {}, "inner").output("u");
    const std::string message = message_of<Error>([&] { const Run run(data_choice(unknown, negated())); });
    CHECK(message ==
          "operators that are not supported:\n  operator NoSuchOperator (opset 13), 1 node: "
          "NoSuchOperator 'inner'");
}

TEST_CASE("a condition that follows from shapes is known in the plan") {
    OnnxModel model;
    model.graph.input("x", {"n"})
        .initializer("w", {1}, Floats{10})
        .initializer("two", {1}, std::vector<std::int64_t>{2});
    model.graph.node("Shape", {"x"}, {"s"}).node("Equal", {"s", "two"}, {"c"});
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", scaled()}, {"else_branch", negated()}});
    Run run(model);
    CHECK(run({floats({1, -2})})["y"] == Floats{10, 0});
    CHECK(run.step_operators() == std::vector<std::string>{"Relu", "Mul"});
    CHECK(run({floats({1, -2, 3})})["y"] == Floats{-1, 2, -3});
    CHECK(run.step_operators() == std::vector<std::string>{"Neg"});
}

TEST_CASE("a large integer input that leads to a condition is no part of the signature") {
    OnnxModel model;
    model.graph.input("ids", {100}, DataType::int64).input("x", {2}).initializer("w", {1}, Floats{10});
    model.graph.initializer("five", {}, std::vector<std::int64_t>{5});
    model.graph.node("ReduceSum", {"ids"}, {"sum"}, {{"keepdims", 0}})
        .node("Greater", {"sum", "five"}, {"c"});
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", scaled()}, {"else_branch", negated()}});
    Run run(model);
    const Tensor few = Tensor::of<std::int64_t>({100}, std::vector<std::int64_t>(100, 0));
    const Tensor many = Tensor::of<std::int64_t>({100}, std::vector<std::int64_t>(100, 1));
    CHECK(run({few, floats({1, -2})})["y"] == Floats{-1, 2});
    const Plan* plan = &run.plan();
    CHECK(run({many, floats({1, -2})})["y"] == Floats{10, 0});
    CHECK(&run.plan() == plan);
}

TEST_CASE("a branch may give a value of around, a constant, and the same value twice") {
    OnnxGraph handing_on;
    handing_on.output("x").output("w2").output("x");
    OnnxGraph making;
    making.node("Neg", {"x"}, {"n"}).node("Add", {"n", "w2"}, {"a"}).output("n").output("a").output("a");
    for (const bool data : {false, true}) {
        OnnxModel model;
        if (data) {
            add_data_condition(model.graph);
        } else {
            model.graph.input("x", {"n"}).initializer("c", yes(true));
        }
        model.graph.initializer("w2", {2}, Floats{5, 6});
        model.graph.node("If", {"c"}, {"p", "q", "r"},
                         {{"then_branch", handing_on}, {"else_branch", making}});
        model.graph.node("Relu", {"p"}, {"z"});
        Run run(model);
        auto values = run({floats({1, 2})});
        CHECK(values["p"] == Floats{1, 2});
        CHECK(values["q"] == Floats{5, 6});
        CHECK(values["r"] == Floats{1, 2});
        CHECK(values["z"] == Floats{1, 2});
        if (!data) continue;
        values = run({floats({1, -2})});
        CHECK(values["p"] == Floats{-1, 2});
        CHECK(values["q"] == Floats{4, 8});
        CHECK(values["z"] == Floats{0, 2});
    }
}

TEST_CASE("Ifs inside Ifs are run, whether data decides or not") {
    OnnxGraph inner;
    inner.node("If", {"deep"}, {"i"}, {{"then_branch", scaled()}, {"else_branch", negated()}}, "inner")
        .output("i");
    OnnxGraph abs;
    abs.node("Abs", {"x"}, {"a"}).output("a");
    OnnxModel model = data_choice(inner, abs);
    model.graph.input("deep", {}, DataType::boolean);
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        CHECK(run({floats({3, -2}), yes(true)})["y"] == Floats{30, 0});
        CHECK(run({floats({3, -2}), yes(false)})["y"] == Floats{-3, 2});
        CHECK(run({floats({1, -2}), yes(false)})["y"] == Floats{1, 2});
    }
}

TEST_CASE("branches that make different shapes are run: what follows has a plan for each") {
    OnnxGraph twice;
    twice.node("Concat", {"x", "x"}, {"both"}, {{"axis", 0}}).output("both");
    for (const Kernels kernels : all_kernels) {
        Run run(data_choice(twice, negated()), kernels);
        CHECK(run({floats({1, 2})})["z"] == Floats{-1, -2, -1, -2});
        CHECK(run({floats({1, -2})})["z"] == Floats{1, -2});
        CHECK(run({floats({3, 2})})["z"] == Floats{-3, -2, -3, -2});
        CHECK(run.seen() == std::vector<std::string>{"x", "sum", "c", "both", "y", "z"});
    }
}

TEST_CASE("an error in a branch names the inner node and its tensor") {
    OnnxGraph bad;
    bad.node("Gather", {"x", "at"}, {"g"}, {}, "pick").output("g");
    OnnxModel model = data_choice(bad, negated());
    model.graph.input("at", {2}, DataType::int32);
    Run run(model);
    const std::string message = message_of<Error>([&] {
        run({floats({1, 2}), Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{0, 9})});
    });
    CHECK(message.find("If 'choice' (tensor 'y'): Gather 'pick' (tensor 'g'): ") != std::string::npos);
}

TEST_CASE("a condition that is no single boolean and branches that do not fit are refused") {
    OnnxModel model = choice(scaled(), negated());
    model.graph.inputs[0].data_type = onnx_type(DataType::float32);
    CHECK(message_of<Error>([&] {
              Run run(model);
              run({Tensor::of<float>({}, Floats{1}), floats({1})});
          }) == "If 'choice': expected one boolean as its condition, found float32 []");
    OnnxGraph two = negated();
    two.output("x");
    Run run(data_choice(two, negated()));
    CHECK(message_of<Error>([&] { run({floats({1})}); }) ==
          "If 'choice': then_branch: expected no inputs and 1 outputs, found 0 and 2");
    OnnxModel lacking = data_choice(scaled(), negated());
    lacking.graph.nodes[2].attributes.pop_back();
    Run other(lacking);
    CHECK(message_of<Error>([&] { other({floats({1})}); }) ==
          "If 'choice': expected a graph 'else_branch', found none");
}

TEST_CASE("a tap may change what a branch makes and what it reads") {
    Run run(data_choice(scaled(), negated()));
    run.tap().rights = {{"negated", TapRight::write}, {"y", TapRight::write}};
    run.tap().change = [](const std::string& name, MutableTensorView view) {
        if (name == "negated") view.as<float>()[0] = 100;
        if (name == "y") view.as<float>()[1] = 200;
    };
    run.restart();
    auto values = run({floats({1, -2})});
    CHECK(values["z"] == Floats{-100, -200});
    OnnxModel known = choice(scaled(), negated());
    known.graph.node("Neg", {"y"}, {"z"});
    Run taken(known);
    taken.tap().rights = run.tap().rights;
    taken.tap().change = run.tap().change;
    taken.restart();
    CHECK(taken({yes(false), floats({1, -2})})["z"] == Floats{-100, -200});
}

TEST_CASE("weights inside a branch are packed once for all plans") {
    OnnxGraph product;
    product.initializer("m", random_tensor({64, 64}, 3)).node("MatMul", {"x", "m"}, {"p"}).output("p");
    OnnxGraph same;
    same.node("Identity", {"x"}, {"s"}).output("s");
    OnnxModel model;
    model.graph.input("x", {"n", 64}).initializer("zero", {}, Floats{0});
    model.graph.node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", 0}}).node("Greater", {"sum", "zero"}, {"c"});
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", product}, {"else_branch", same}});
    Run run(model);
    run({random_tensor({2, 64}, 1, 0, 1)});
    const std::size_t bytes = run.program().weight_bytes();
    run({random_tensor({3, 64}, 1, 0, 1)});
    run({random_tensor({4, 64}, 1, -1, 0)});
    CHECK(run.program().weight_bytes() == bytes);
    CHECK(bytes <= std::size_t{64} * 64 * 4 + 4096);
}

TEST_CASE("what hangs on a body's initializers alone is folded once and kept as a constant") {
    OnnxGraph branch;
    branch.initializer("k", {1}, Floats{2})
        .node("Mul", {"k", "w"}, {"kw"})
        .node("Mul", {"x", "kw"}, {"p"})
        .output("p");
    Run run(data_choice(branch, negated()));
    CHECK(run({floats({1, 2})})["y"] == Floats{20, 40});
    const ValueId folded = run.graph().find("kw");
    REQUIRE(run.program().constant(folded) != nullptr);
    CHECK(numbers_of(run.program().constant(folded)->view()) == std::vector<double>{20});
    CHECK(std::count(run.seen().begin(), run.seen().end(), "kw") == 0);
}

TEST_CASE("a Loop carries its states and puts together what each iteration makes") {
    OnnxModel model;
    model.graph.input("n", {}, DataType::int64).input("x", {"k"}).input("v", {"k"});
    model.graph.node("Loop", {"n", "", "x"}, {"last", "all"}, {{"body", summing_body()}}, "loop");
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        auto values = run(
            {Tensor::of<std::int64_t>({}, std::vector<std::int64_t>{3}), floats({1, 2}), floats({10, 20})});
        CHECK(values["last"] == Floats{31, 62});
        CHECK(values["all"] == Floats{11, 22, 21, 42, 31, 62});
        CHECK(run.shape("all") == Shape{3, 2});
        CHECK(run.count("t") == 3);
        CHECK(run.count("s") == 3);
        values = run(
            {Tensor::of<std::int64_t>({}, std::vector<std::int64_t>{0}), floats({1, 2}), floats({10, 20})});
        CHECK(values["last"] == Floats{1, 2});
        CHECK(run.shape("all") == Shape{0, 2});
        CHECK(run.count("t") == 0);
    }
}

TEST_CASE("a Loop ends when its condition says so") {
    OnnxGraph body;
    body.input("i", {}, DataType::int64).input("go", {}, DataType::boolean).input("s", {1});
    body.node("Add", {"s", "s"}, {"t"})
        .node("Less", {"t", "limit"}, {"again"})
        .node("Identity", {"t"}, {"each"});
    body.output("again", {1}, DataType::boolean).output("t").output("each");
    OnnxModel model;
    model.graph.input("s0", {1}).input("limit", {1});
    model.graph.node("Loop", {"", "", "s0"}, {"last", "all"}, {{"body", body}}, "loop")
        .node("Neg", {"all"}, {"z"});
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        auto values = run({floats({1}), floats({10})});
        CHECK(values["last"] == Floats{16});
        CHECK(values["z"] == Floats{-2, -4, -8, -16});
        values = run({floats({3}), floats({10})});
        CHECK(values["z"] == Floats{-6, -12});
        CHECK(run.seen() == std::vector<std::string>{"s0", "limit", "i", "go", "s", "t", "again", "each", "i",
                                                     "go", "s", "t", "again", "each", "last", "all", "z"});
    }
}

TEST_CASE("a Loop without an end and one that does not fit its body are refused") {
    OnnxModel model;
    model.graph.input("x", {2}).input("v", {2});
    model.graph.node("Loop", {"", "", "x"}, {"last", "all"}, {{"body", summing_body()}}, "loop");
    Run run(model);
    CHECK(message_of<Error>([&] {
              run({floats({1, 2}), floats({1, 2})});
          }) == "Loop 'loop': expected an end, found neither a count nor a condition that changes");
    model.graph.nodes[0].inputs.emplace_back("x");
    Run other(model);
    CHECK(message_of<Error>([&] {
              other({floats({1, 2}), floats({1, 2})});
          }) == "Loop 'loop': expected 3 inputs as its body has, found 4");
}

TEST_CASE("states that change places are carried without overwriting one another") {
    OnnxGraph body;
    body.input("i", {}, DataType::int64)
        .input("go", {}, DataType::boolean)
        .input("a", {2})
        .input("b", {2})
        .input("d", {2});
    body.node("Identity", {"go"}, {"again"}).node("Neg", {"d"}, {"nd"});
    body.output("again", {}, DataType::boolean).output("b").output("a").output("nd");
    OnnxModel model;
    model.graph.input("p", {2}).input("q", {2}).initializer("n", {}, std::vector<std::int64_t>{3});
    model.graph.node("Loop", {"n", "", "p", "q", "p"}, {"x", "y", "z"}, {{"body", body}});
    Run run(model);
    auto values = run({floats({1, 2}), floats({3, 4})});
    CHECK(values["x"] == Floats{3, 4});
    CHECK(values["y"] == Floats{1, 2});
    CHECK(values["z"] == Floats{-1, -2});
}

TEST_CASE("a Loop whose state grows has a plan for each shape") {
    OnnxGraph body;
    body.input("i", {}, DataType::int64).input("go", {}, DataType::boolean).input("s", {"n"});
    body.node("Concat", {"s", "x"}, {"t"}, {{"axis", 0}}).node("Identity", {"go"}, {"again"});
    body.output("again", {}, DataType::boolean).output("t");
    OnnxModel model;
    model.graph.input("x", {1}).initializer("n", {}, std::vector<std::int64_t>{3});
    model.graph.node("Loop", {"n", "", "x"}, {"y"}, {{"body", body}}).node("Neg", {"y"}, {"z"});
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        CHECK(run({floats({2})})["z"] == Floats{-2, -2, -2, -2});
        CHECK(run({floats({3})})["z"] == Floats{-3, -3, -3, -3});
        CHECK(run.count("t") == 3);
    }
}

TEST_CASE("a Scan takes its inputs apart and puts its outputs together along any axis and direction") {
    OnnxGraph body;
    body.input("s", {2}).input("e", {2}).node("Add", {"s", "e"}, {"t"}).node("Neg", {"t"}, {"o"});
    body.output("t").output("o");
    OnnxModel model;
    model.graph.input("s0", {2}).input("x", {2, 3});
    model.graph.node("Scan", {"s0", "x"}, {"last", "all"},
                     {{"body", body},
                      {"num_scan_inputs", 1},
                      {"scan_input_axes", OnnxInts{1}},
                      {"scan_input_directions", OnnxInts{1}},
                      {"scan_output_axes", OnnxInts{-1}},
                      {"scan_output_directions", OnnxInts{1}}});
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        auto values = run({floats({0, 100}), Tensor::of<float>({2, 3}, Floats{1, 2, 3, 10, 20, 30})});
        CHECK(values["last"] == Floats{6, 160});
        CHECK(run.shape("all") == Shape{2, 3});
        CHECK(values["all"] == Floats{-6, -5, -3, -160, -150, -130});
    }
    model.graph.nodes[0].attributes[2] = OnnxAttribute("scan_input_axes", OnnxInts{2});
    Run run(model);
    CHECK(message_of<Error>([&] {
              run({floats({0, 100}), random_tensor({2, 3}, 1)});
          }).find("input 1: expected an axis 2 to take apart, found the shape [2,3]") != std::string::npos);
}

TEST_CASE("a Loop in a branch of an If in a Loop is run, each with what it captures") {
    OnnxGraph innermost;
    innermost.input("j", {}, DataType::int64).input("go2", {}, DataType::boolean).input("u", {1});
    innermost.node("Add", {"u", "step"}, {"u2"}).node("Identity", {"go2"}, {"again2"});
    innermost.output("again2", {}, DataType::boolean).output("u2");
    OnnxGraph branch;
    branch.initializer("two", {}, std::vector<std::int64_t>{2});
    branch.node("Loop", {"two", "", "s"}, {"looped"}, {{"body", innermost}}, "inner").output("looped");
    OnnxGraph keep;
    keep.node("Neg", {"s"}, {"kept"}).output("kept");
    OnnxGraph outer;
    outer.input("i", {}, DataType::int64).input("go", {}, DataType::boolean).input("s", {1});
    outer.node("Less", {"s", "limit"}, {"c"}).node("Identity", {"go"}, {"again"});
    outer.node("If", {"c"}, {"t"}, {{"then_branch", branch}, {"else_branch", keep}}, "if");
    outer.output("again", {}, DataType::boolean).output("t");
    OnnxModel model;
    model.graph.input("s0", {1})
        .input("limit", {1})
        .input("step", {1})
        .initializer("n", {}, std::vector<std::int64_t>{3});
    model.graph.node("Loop", {"n", "", "s0"}, {"y"}, {{"body", outer}}, "outer");
    for (const Kernels kernels : all_kernels) {
        Run run(model, kernels);
        // 0 -> 2 -> 4 -> -4, as 4 is not below 3
        CHECK(run({floats({0}), floats({3}), floats({1})})["y"] == Floats{-4});
        CHECK(run.count("u2") == 4);
        CHECK(run.count("kept") == 1);
    }
}

TEST_CASE("float16 values in bodies are rounded to their type") {
    OnnxGraph branch;
    branch.node("Mul", {"x", "third"}, {"m"})
        .value_info("m", {1}, DataType::float16)
        .output("m", {1}, DataType::float16);
    OnnxGraph same;
    same.node("Identity", {"x"}, {"i"}).output("i", {1}, DataType::float16);
    OnnxModel model;
    add_data_condition(model.graph);
    model.graph.initializer("third", {1}, Floats{1.0F / 3});
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", branch}, {"else_branch", same}});
    Run run(model);
    CHECK(run({floats({1})})["y"] == Floats{0.333251953125F});
}

TEST_CASE("running an If or a Loop of fixed shapes allocates nothing once each has run") {
    OnnxModel model;
    add_data_condition(model.graph);
    model.graph.initializer("w", {1}, Floats{10}).initializer("n", {}, std::vector<std::int64_t>{5});
    model.graph.node("If", {"c"}, {"v"}, {{"then_branch", scaled()}, {"else_branch", negated()}});
    model.graph.node("Loop", {"n", "", "x"}, {"last", "all"}, {{"body", summing_body()}});
    const Model loaded = load(model);
    Program program(loaded.graph, builtin_kernels(), {});
    const std::vector<Tensor> above = {floats({1, 2})};
    const std::vector<Tensor> below = {floats({-1, -2})};
    const auto plan = program.plan(above);
    Frame frame;
    frame.run(plan, above, 0);
    CHECK(allocations_during([&] {
              frame.run(plan, below, 1);
              frame.run(plan, above, 2);
          }) == 0);
}
