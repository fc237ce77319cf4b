#include "runtime/plan.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <set>
#include <thread>

#include <doctest/doctest.h>
#include <omp.h>
#include <xmmintrin.h>

#include "base/error.h"
#include "runtime/allocation_counter.h"
#include "runtime/frame.h"
#include "runtime/program.h"
#include "support/operator_harness.h"

using namespace qcalib;
using qcalib::test::random_tensor;

namespace {

// Builds graphs by hand: every value a float32 of no declared shape.
class GraphMaker {
  public:
    ValueId value(const std::string& name) {
        const ValueId known = graph_->find(name);
        if (known != no_value) return known;
        graph_->values.push_back({name, DataType::float32, std::nullopt, std::nullopt, {}});
        graph_->index[name] = static_cast<ValueId>(graph_->values.size() - 1);
        return static_cast<ValueId>(graph_->values.size() - 1);
    }
    GraphMaker& input(const std::string& name, DataType type = DataType::float32) {
        graph_->inputs.push_back(value(name));
        graph_->values[value(name)].declared_type = type;
        return *this;
    }
    GraphMaker& initializer(const std::string& name, const Tensor& tensor) {
        graph_->values[value(name)].declared_type = tensor.type();
        graph_->values[value(name)].initializer = tensor;
        return *this;
    }
    GraphMaker& node(const std::string& op_type, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs,
                     std::map<std::string, AttributeValue, std::less<>> attributes = {}) {
        Node& node = graph_->nodes.emplace_back();
        node.op_type = op_type;
        node.name = "make_" + outputs.front();
        node.opset = 13;
        node.attributes = std::move(attributes);
        for (const std::string& name : inputs) node.inputs.push_back(name.empty() ? no_value : value(name));
        for (const std::string& name : outputs) {
            node.outputs.push_back(value(name));
            graph_->values[value(name)].producer = static_cast<std::uint32_t>(graph_->nodes.size() - 1);
        }
        return *this;
    }
    std::shared_ptr<Graph> take() { return graph_; }

  private:
    std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

// Records every call and may change what it sees.
class TestTap : public Tap {
  public:
    std::map<std::string, TapRight> rights;  // others: otherwise
    TapRight otherwise = TapRight::read;
    std::function<void(const std::string&, MutableTensorView)> change;
    std::vector<std::string> seen;
    std::map<std::string, std::vector<float>> values;
    std::map<std::string, MemoryOrder> orders;

    TapRight right(const Graph& graph, ValueId value) const override {
        graph_ = &graph;
        const auto found = rights.find(graph.values[value].name);
        return found == rights.end() ? otherwise : found->second;
    }
    void on_value(ValueId value, std::uint64_t, MutableTensorView view) override {
        const std::string& name = graph_->values[value].name;
        seen.push_back(name);
        orders[name] = view.descriptor->order;
        if (view.descriptor->type == DataType::float32) {
            values[name].assign(view.as<float>().begin(), view.as<float>().end());
        }
        if (change) change(name, view);
    }

  private:
    mutable const Graph* graph_ = nullptr;
};

Tensor floats(const std::vector<float>& values) {
    return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}

// y = x, and tells what the thread it runs on is set to.
class ProbeKernel : public Kernel {
  public:
    static inline std::atomic<int> calls = 0;
    static inline std::atomic<int> wrong = 0;

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared;
        prepared.outputs = {context.input(0)};
        return prepared;
    }
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace&) const override {
        constexpr unsigned flush_and_treat_as_zero = 0x8040;
        ++calls;
        if ((_mm_getcsr() & flush_and_treat_as_zero) != flush_and_treat_as_zero) ++wrong;
        if (omp_get_max_threads() != 1) ++wrong;
        std::copy(inputs[0].as<float>().begin(), inputs[0].as<float>().end(), outputs[0].as<float>().begin());
    }
};

class FailingKernel : public ProbeKernel {
  public:
    void run(std::span<const TensorView>, std::span<const MutableTensorView>, Workspace&) const override {
        fail("cannot go on");
    }
};

const KernelRegistry& probe_registry() {
    static const KernelRegistry registry = [] {
        KernelRegistry probes;
        probes.add({"", "Probe", 1, "", {}, false, make_kernel<ProbeKernel>, make_kernel<ProbeKernel>});
        probes.add({"", "Fail", 1, "", {}, false, make_kernel<FailingKernel>, make_kernel<FailingKernel>});
        return probes;
    }();
    return registry;
}

Tensor denormal() {
    return floats({1e-40F});
}

}  // namespace

TEST_CASE(
    "two workers run kernels with denormals off and one OpenMP thread, and leave their threads as they "
    "were") {
    ProbeKernel::calls = 0;
    ProbeKernel::wrong = 0;
    Program program(GraphMaker().input("x").node("Probe", {"x"}, {"y"}).take(), probe_registry(), {});
    const std::vector<Tensor> inputs = {denormal()};
    const auto work = [&] {
        omp_set_num_threads(2);
        const unsigned before = _mm_getcsr();
        Frame frame;
        for (std::uint64_t sample = 0; sample < 10; ++sample) frame.run(program.plan(inputs), inputs, sample);
        CHECK(_mm_getcsr() == before);
        CHECK(omp_get_max_threads() == 2);
    };
    std::thread first(work);
    std::thread second(work);
    first.join();
    second.join();
    CHECK(ProbeKernel::calls == 20);
    CHECK(ProbeKernel::wrong == 0);
}

TEST_CASE("a kernel's failure names its node and tensor") {
    Program program(GraphMaker().input("x").node("Fail", {"x"}, {"y"}).take(), probe_registry(), {});
    const std::vector<Tensor> inputs = {floats({1})};
    Frame frame;
    CHECK_THROWS_WITH_AS(frame.run(program.plan(inputs), inputs, 0),
                         "Fail 'make_y' (tensor 'y'): cannot go on", Error);
}

TEST_CASE("all operators that are missing are named at once, with opset and nodes") {
    const auto graph = GraphMaker()
                           .input("x")
                           .node("Conf", {"x"}, {"a"})
                           .node("Relu", {"a"}, {"b"})
                           .node("Warp", {"b"}, {"c"})
                           .node("Conf", {"c"}, {"d"})
                           .take();
    const std::vector<std::string> missing = missing_operators(*graph, builtin_kernels());
    REQUIRE(missing.size() == 2);
    CHECK(missing[0] ==
          "operator Conf (opset 13), 2 nodes: Conf 'make_a', Conf 'make_d' (did you mean 'Conv'?)");
    CHECK(missing[1].starts_with("operator Warp (opset 13), 1 node: Warp 'make_c'"));
    CHECK_THROWS_AS(Program(graph, builtin_kernels(), {}), Error);
}

TEST_CASE("plans are made once per signature and shared by workers") {
    Program program(GraphMaker().input("x").node("Relu", {"x"}, {"y"}).take(), builtin_kernels(), {});
    const std::vector<Tensor> small = {random_tensor({1, 2, 3, 3}, 1)};
    const std::vector<Tensor> large = {random_tensor({1, 2, 9, 9}, 1)};
    const auto plan = program.plan(small);
    CHECK(program.plan(small) == plan);
    CHECK(program.plan(large) != plan);
    CHECK(program.plan(small) == plan);
    std::shared_ptr<const Plan> elsewhere;
    std::thread([&] { elsewhere = program.plan(small); }).join();
    CHECK(elsewhere == plan);
}

TEST_CASE("integer inputs that shapes depend on are part of the signature, others are not") {
    const auto graph = GraphMaker()
                           .input("x")
                           .input("shape", DataType::int64)
                           .input("index", DataType::int64)
                           .node("Reshape", {"x", "shape"}, {"y"})
                           .node("Gather", {"y", "index"}, {"z"})
                           .take();
    Program program(graph, builtin_kernels(), {});
    const auto numbers = [](std::vector<std::int64_t> values) {
        return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
    };
    const Tensor x = random_tensor({2, 6}, 1);
    const auto plan = program.plan(std::vector<Tensor>{x, numbers({3, 4}), numbers({0})});
    const auto other = program.plan(std::vector<Tensor>{x, numbers({4, 3}), numbers({0})});
    CHECK(plan->descriptor(graph->find("y"))->shape == Shape{3, 4});
    CHECK(other->descriptor(graph->find("y"))->shape == Shape{4, 3});
    CHECK(program.plan(std::vector<Tensor>{x, numbers({3, 4}), numbers({2})}) == plan);
}

TEST_CASE("a run allocates nothing after the first") {
    const auto graph = GraphMaker()
                           .input("x")
                           .initializer("w", random_tensor({8, 3, 3, 3}, 2))
                           .initializer("scale", random_tensor({1, 8, 1, 1}, 3))
                           .initializer("g", random_tensor({8, 5}, 4))
                           .node("Conv", {"x", "w"}, {"c"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}})
                           .node("Relu", {"c"}, {"r"})
                           .node("Mul", {"r", "scale"}, {"m"})
                           .node("Add", {"m", "c"}, {"a"})
                           .node("Concat", {"a", "r"}, {"k"}, {{"axis", std::int64_t{1}}})
                           .node("Sigmoid", {"k"}, {"s"})
                           .node("GlobalAveragePool", {"m"}, {"p"})
                           .node("Flatten", {"p"}, {"f"})
                           .node("MatMul", {"f", "g"}, {"y"})
                           .take();
    Program program(graph, builtin_kernels(), {});
    const std::vector<Tensor> inputs = {random_tensor({1, 3, 12, 12}, 5)};
    const auto plan = program.plan(inputs);
    Frame frame;
    frame.run(plan, inputs, 0);
    std::unique_ptr<int> canary;
    CHECK(test::allocations_during([&] { canary = std::make_unique<int>(1); }) == 1);
    CHECK(test::allocations_during([&] {
              for (std::uint64_t sample = 1; sample < 4; ++sample) frame.run(plan, inputs, sample);
          }) == 0);
}

TEST_CASE(
    "taps see graph inputs first, then every value once in plan order, folded ones where they are made") {
    const auto graph = GraphMaker()
                           .input("x")
                           .initializer("w", floats({2, 2}))
                           .node("Relu", {"w"}, {"constant"})
                           .node("Shape", {"x"}, {"shape"})
                           .node("Cast", {"shape"}, {"length"}, {{"to", std::int64_t{1}}})
                           .node("Mul", {"x", "length"}, {"long"})
                           .node("Add", {"long", "constant"}, {"y"})
                           .node("Reshape", {"y", "shape"}, {"view"})
                           .take();
    graph->values[graph->find("shape")].declared_type = DataType::int64;
    TestTap tap;
    Program program(graph, builtin_kernels(), {&tap});
    const std::vector<Tensor> inputs = {floats({1, -3})};
    Frame frame;
    for (int round = 0; round < 2; ++round) {
        tap.seen.clear();
        frame.run(program.plan(inputs), inputs, 0);
        CHECK(tap.seen == std::vector<std::string>{"x", "shape", "length", "long", "y", "view"});
    }
    CHECK(tap.values["length"] == std::vector<float>{2});
    CHECK(tap.values["view"] == std::vector<float>{4, -4});
    REQUIRE(program.constant(graph->find("constant")) != nullptr);
    CHECK(numbers_of(program.constant(graph->find("constant"))->view()) == std::vector<double>{2, 2});
}

TEST_CASE("ignored values give no call") {
    TestTap tap;
    tap.rights["y"] = TapRight::ignore;
    Program program(GraphMaker().input("x").node("Relu", {"x"}, {"y"}).node("Neg", {"y"}, {"z"}).take(),
                    builtin_kernels(), {&tap});
    const std::vector<Tensor> inputs = {floats({1, -1})};
    Frame().run(program.plan(inputs), inputs, 0);
    CHECK(tap.seen == std::vector<std::string>{"x", "z"});
}

TEST_CASE(
    "what a tap writes is what consumers read, be the value made, a view, folded or a source of views") {
    const auto graph =
        GraphMaker()
            .input("x")
            .initializer("w", floats({1, 1, 1, 1}))
            .initializer("shape", Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{2, 2}))
            .node("Neg", {"w"}, {"folded"})
            .node("Relu", {"x"}, {"made"})
            .node("Reshape", {"made", "shape"}, {"view"})
            .node("Neg", {"made"}, {"from_made"})
            .node("Neg", {"view"}, {"from_view"})
            .node("Add", {"made", "folded"}, {"from_folded"})
            .take();
    const std::vector<Tensor> inputs = {floats({1, 2, 3, 4})};
    const auto run = [&](const std::string& written) {
        auto tap = std::make_unique<TestTap>();
        tap->rights[written] = TapRight::write;
        tap->change = [written](const std::string& name, MutableTensorView view) {
            if (name != written) return;
            for (float& value : view.as<float>()) value += 100;
        };
        Program program(graph, builtin_kernels(), {tap.get()});
        Frame frame;
        frame.run(program.plan(inputs), inputs, 0);
        frame.run(program.plan(inputs), inputs, 1);
        return tap;
    };
    auto tap = run("made");
    CHECK(tap->values["view"] == std::vector<float>{101, 102, 103, 104});
    CHECK(tap->values["from_made"] == std::vector<float>{-101, -102, -103, -104});
    CHECK(tap->values["from_folded"] == std::vector<float>{100, 101, 102, 103});
    tap = run("view");
    CHECK(tap->values["from_view"] == std::vector<float>{-101, -102, -103, -104});
    CHECK(tap->values["from_made"] == std::vector<float>{-1, -2, -3, -4});
    tap = run("folded");
    CHECK(tap->values["from_folded"] == std::vector<float>{100, 101, 102, 103});
    tap = run("x");
    CHECK(tap->values["made"] == std::vector<float>{101, 102, 103, 104});
}

TEST_CASE("work in place never changes a value that is still wanted") {
    const auto graph = GraphMaker()
                           .input("x")
                           .node("Relu", {"x"}, {"a"})
                           .node("Neg", {"a"}, {"b"})
                           .node("Add", {"a", "b"}, {"zero"})
                           .node("Mul", {"b", "b"}, {"square"})
                           .node("Add", {"square", "zero"}, {"y"})
                           .take();
    TestTap tap;
    Program program(graph, builtin_kernels(), {&tap});
    const std::vector<Tensor> inputs = {floats({1, -2, 3})};
    const auto plan = program.plan(inputs);
    Frame().run(plan, inputs, 0);
    CHECK(tap.values["zero"] == std::vector<float>{0, 0, 0});
    CHECK(tap.values["y"] == std::vector<float>{1, 0, 9});
    CHECK(plan->arena_bytes() <= 3 * 64);  // six values of twelve bytes: most work in place
}

TEST_CASE(
    "a convolutional graph is reordered at its ends only, and agrees with row-major and reference runs") {
    const auto graph =
        GraphMaker()
            .input("x")
            .initializer("w1", random_tensor({6, 3, 3, 3}, 1))
            .initializer("w2", random_tensor({6, 6, 1, 1}, 2))
            .initializer("bias", random_tensor({1, 6, 1, 1}, 3))
            .initializer("whole", random_tensor({1, 6, 8, 8}, 4))
            .initializer("flat", Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{1, -1}))
            .node("Conv", {"x", "w1"}, {"c1"})
            .node("Relu", {"c1"}, {"r1"})
            .node("Add", {"r1", "bias"}, {"b1"})
            .node("Conv", {"b1", "w2"}, {"c2"})
            .node("Add", {"c2", "whole"}, {"s"})
            .node("Mul", {"s", "r1"}, {"m"})
            .node("Reshape", {"m", "flat"}, {"y"})
            .take();
    TestTap tap;
    const std::vector<Tensor> inputs = {random_tensor({1, 3, 10, 10}, 6)};
    Program program(graph, builtin_kernels(), {&tap});
    const auto plan = program.plan(inputs);
    std::size_t reorders = 0;
    for (const Step& step : plan->steps()) reorders += step.kind == Step::Kind::reorder ? 1 : 0;
    CHECK(reorders == 2);
    Frame().run(plan, inputs, 0);
    for (const char* name : {"c1", "r1", "b1", "c2", "s", "m"})
        CHECK(tap.orders[name] == MemoryOrder::channels_last);
    const auto expected = test::run_graph(graph, inputs, test::Kernels::reference_float64);
    for (const auto kernels :
         {test::Kernels::fast, test::Kernels::fast_row_major, test::Kernels::fast_channels_last}) {
        const auto values = test::run_graph(graph, inputs, kernels);
        for (const auto& [name, tensor] : expected) {
            if (!is_floating(tensor.type())) continue;
            const std::vector<double> a = numbers_of(values.at(name).view());
            const std::vector<double> b = numbers_of(tensor.view());
            double worst = 0;
            for (std::size_t i = 0; i < b.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
            INFO(name);
            CHECK(worst < 1e-4);
        }
    }
}

TEST_CASE("values declared float16 are rounded by the node that makes them") {
    const auto graph =
        GraphMaker().input("x").node("Mul", {"x", "x"}, {"y"}).node("Neg", {"y"}, {"z"}).take();
    for (const char* name : {"x", "y", "z"})
        graph->values[graph->find(name)].declared_type = DataType::float16;
    graph->values[graph->find("z")].declared_type = DataType::undefined;  // follows from its input
    TestTap tap;
    Program program(graph, builtin_kernels(), {&tap});
    const std::vector<Tensor> inputs = {floats({1.0003F, 300})};
    const auto plan = program.plan(inputs);
    Frame().run(plan, inputs, 0);
    CHECK(tap.values["x"] == std::vector<float>{1, 300});
    CHECK(std::isinf(tap.values["y"][1]));
    CHECK(plan->declared_type(graph->find("z")) == DataType::float16);
}

TEST_CASE("replaced initializers are used instead of the file's") {
    const auto graph =
        GraphMaker().input("x").initializer("w", floats({2})).node("Mul", {"x", "w"}, {"y"}).take();
    ProgramOptions options;
    options.replaced[graph->find("w")] = floats({5});
    TestTap tap;
    Program program(graph, builtin_kernels(), {&tap}, options);
    const std::vector<Tensor> inputs = {floats({3})};
    Frame().run(program.plan(inputs), inputs, 0);
    CHECK(tap.values["y"] == std::vector<float>{15});
}

TEST_CASE("inputs that do not fit the model are refused with both shapes or types") {
    const auto graph = GraphMaker().input("x").node("Relu", {"x"}, {"y"}).take();
    graph->values[0].declared_shape = std::vector<Dimension>{{1, ""}, {std::nullopt, "n"}};
    Program program(graph, builtin_kernels(), {});
    const auto plan_of = [&](const Tensor& tensor) { return program.plan(std::vector<Tensor>{tensor}); };
    CHECK_NOTHROW(plan_of(random_tensor({1, 7}, 1)));
    CHECK_THROWS_WITH_AS(plan_of(random_tensor({2, 7}, 1)),
                         "input 'x': expected the shape [1,n], found [2,7]", Error);
    CHECK_THROWS_WITH_AS(plan_of(Tensor::of<std::int64_t>({1, 1}, std::vector<std::int64_t>{1})),
                         "input 'x': expected float32, found int64", Error);
    CHECK_THROWS_AS(program.plan(std::vector<Tensor>{}), Error);
}
