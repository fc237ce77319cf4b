#include <algorithm>

#include "runtime/movement_cases.h"

namespace qcalib::test {

TEST_CASE("Transpose agrees with the reference for every permutation up to rank 5, in both memory orders") {
    for (const Shape& shape : {Shape{5}, Shape{3, 4}, Shape{2, 3, 4}, Shape{2, 3, 1, 5}, Shape{2, 3, 4, 5},
                               Shape{1, 3, 2, 4, 5}}) {
        std::vector<std::int64_t> permutation(shape.size());
        std::iota(permutation.begin(), permutation.end(), 0);
        do {
            OperatorCase test{.op_type = "Transpose"};
            test.attributes["perm"] = permutation;
            test.inputs = {random_tensor(shape, 7)};
            CAPTURE(permutation);
            check_all_kernels_agree(test);
        } while (std::next_permutation(permutation.begin(), permutation.end()));
    }
}

TEST_CASE("Transpose reverses the axes by default and moves elements of every size") {
    OperatorCase test{.op_type = "Transpose"};
    test.inputs = {counting<std::int64_t>({2, 3})};
    check_values(test, {3, 2}, {0, 3, 1, 4, 2, 5});
    test.inputs = {counting<std::uint8_t>({2, 3})};
    check_values(test, {3, 2}, {0, 3, 1, 4, 2, 5});
    test.inputs = {counting<std::int16_t>({2, 3})};
    check_values(test, {3, 2}, {0, 3, 1, 4, 2, 5});
    test.inputs = {counting({})};
    check_values(test, {}, {0});
    test.inputs = {counting({0, 3})};
    check_values(test, {3, 0}, {});
}

TEST_CASE("Transpose copies large tensors in tiles") {
    for (const auto& permutation : {std::vector<std::int64_t>{0, 2, 1}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}}) {
        OperatorCase test{.op_type = "Transpose"};
        test.attributes["perm"] = permutation;
        test.inputs = {random_tensor({3, 37, 65}, 8)};
        check_all_kernels_agree(test);
    }
}

TEST_CASE("Transpose refuses what is no permutation") {
    OperatorCase test{.op_type = "Transpose"};
    test.inputs = {counting({2, 3})};
    test.attributes["perm"] = std::vector<std::int64_t>{0};
    check_refused(test, "expected a permutation of 2 axes, found [0]");
    test.attributes["perm"] = std::vector<std::int64_t>{0, 0};
    check_refused(test, "found axis 0 twice");
}

namespace {

// A graph of Transpose nodes, one after the other, over an input 'x'.
std::shared_ptr<const Graph> transposes(const std::vector<std::vector<std::int64_t>>& permutations) {
    auto graph = std::make_shared<Graph>();
    const auto add = [&](const std::string& name) {
        graph->values.emplace_back();
        graph->values.back().name = name;
        graph->values.back().declared_type = DataType::float32;
        graph->index[name] = static_cast<ValueId>(graph->values.size() - 1);
        return static_cast<ValueId>(graph->values.size() - 1);
    };
    ValueId last = add("x");
    graph->inputs = {last};
    for (const auto& permutation : permutations) {
        Node node;
        node.op_type = "Transpose";
        node.opset = 13;
        node.inputs = {last};
        node.attributes["perm"] = permutation;
        last = add("y" + std::to_string(graph->nodes.size()));
        graph->values[last].producer = static_cast<std::uint32_t>(graph->nodes.size());
        node.outputs = {last};
        graph->nodes.push_back(node);
    }
    graph->outputs = {last};
    return graph;
}

}  // namespace

TEST_CASE("Transposes between NCHW and NHWC only change the memory order's name") {
    const auto graph = transposes({{0, 3, 1, 2}, {0, 2, 3, 1}, {0, 3, 1, 2}});
    Program program(graph, builtin_kernels(), {});
    const std::vector<Tensor> inputs{random_tensor({2, 4, 5, 3}, 1)};
    const auto plan = program.plan(inputs);
    CHECK(std::none_of(plan->steps().begin(), plan->steps().end(),
                       [](const Step& step) { return step.kind != Step::Kind::show; }));
    CHECK(plan->descriptor(graph->find("y0"))->order == MemoryOrder::channels_last);
    CHECK(plan->descriptor(graph->find("y1"))->order == MemoryOrder::row_major);
}

}  // namespace qcalib::test
