#include "graph/circle_file.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <circle_schema_generated.h>
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "graph/circle_operators.h"
#include "graph/model_file.h"
#include "support/circle_builder.h"
#include "support/temporary_folder.h"

namespace qcalib {

namespace {

const std::filesystem::path golden_circles =
    std::filesystem::path(QCALIB_SOURCE_DIR) / "tests/circle_golden/small";

CircleFile read_circle_bytes(const std::string& bytes) {
    const test::TemporaryFolder folder;
    test::write_unsynced(folder / "m.circle", bytes);
    return read_circle_file(folder / "m.circle");
}

std::string circle_error(const std::string& bytes) {
    return test::message_of<Error>([&] { read_circle_bytes(bytes); });
}

bool says(const std::string& message, const std::string& part) {
    return message.find(part) != std::string::npos;
}

// x [1,4,4,2] by a convolution of stride 2 with a fused RELU6.
std::string one_convolution() {
    CircleBuilder builder;
    const auto x = builder.add_float("x", {1, 4, 4, 2});
    const auto w = builder.add_float("w", {1, 1, 1, 2}, {0.5F, -2});
    const auto b = builder.add_float("b", {1}, {3});
    const auto y = builder.add_float("y", {1, 2, 2, 1});
    builder.add_operator(3, {x, w, b}, {y}, 1, {{0, 1, 1}, {1, 2}, {2, 2}, {3, 3, 1}});
    return builder.finish({x}, {y});
}

// A model whose first subgraph runs the others, each `values` times its input plus itself.
std::string model_with_branches(std::int32_t then_subgraph) {
    flatbuffers::FlatBufferBuilder builder;
    const auto tensor = [&](const char* name, std::int8_t type) {
        const std::vector<std::int32_t> shape{1};
        return circle::CreateTensorDirect(builder, &shape, type, 0, name, 0, false, 0, nullptr, true);
    };
    const auto graph = [&](const std::vector<flatbuffers::Offset<circle::Tensor>>& tensors,
                           const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
                           flatbuffers::Offset<circle::Operator> one) {
        const std::vector<flatbuffers::Offset<circle::Operator>> operators{one};
        return circle::CreateSubGraphDirect(builder, &tensors, &inputs, &outputs, &operators);
    };
    const auto node = [&](std::uint32_t code, const std::vector<std::int32_t>& inputs,
                          const std::vector<std::int32_t>& outputs, std::uint8_t type = 0,
                          flatbuffers::Offset<circle::Anything> options = 0) {
        return circle::CreateOperatorDirect(builder, code, &inputs, &outputs, type, options);
    };
    const auto start = builder.StartTable();
    builder.AddElement<std::int32_t>(4, then_subgraph, 0);
    builder.AddElement<std::int32_t>(6, 2, 0);
    const flatbuffers::Offset<circle::Anything> branches(builder.EndTable(start));
    const auto main = graph({tensor("c", 6), tensor("x", 0), tensor("y", 0)}, {0, 1}, {2},
                            node(0, {0, 1}, {2}, 92, branches));
    const auto then_graph = graph({tensor("x", 0), tensor("sum", 0)}, {0}, {1}, node(1, {0, 0}, {1}));
    const auto else_graph = graph({tensor("arg", 0), tensor("sum", 0)}, {0}, {1}, node(1, {0, 0}, {1}));
    const std::vector<flatbuffers::Offset<circle::SubGraph>> graphs{main, then_graph, else_graph};
    const std::vector<flatbuffers::Offset<circle::OperatorCode>> codes{
        circle::CreateOperatorCode(builder, 118, 0, 1, 118), circle::CreateOperatorCode(builder, 0, 0, 1, 0)};
    const std::vector<flatbuffers::Offset<circle::Buffer>> buffers{circle::CreateBuffer(builder)};
    builder.Finish(circle::CreateModelDirect(builder, 3, &codes, &graphs, "test", &buffers), "TFL3");
    return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

}  // namespace

TEST_CASE("a circle file becomes a graph of its tensors and operators") {
    const CircleFile file = read_circle_bytes(one_convolution());
    const Graph& graph = *file.model.graph;
    CHECK(file.model.form == ModelForm::circle);
    CHECK(file.subgraph_count == 1);
    CHECK(file.model.hash.size() == 64);
    REQUIRE(graph.values.size() == 4);
    REQUIRE(graph.nodes.size() == 1);
    const Node& node = graph.nodes[0];
    CHECK(node.domain == "circle");
    CHECK(node.op_type == "CONV_2D");
    CHECK(node.attribute<std::string>("padding", "") == "VALID");
    CHECK(node.attribute<std::int64_t>("stride_w", 0) == 2);
    CHECK(node.attribute<std::int64_t>("dilation_h_factor", 0) == 1);  // the schema's default
    CHECK(node.attribute<std::string>("fused_activation_function", "") == "RELU6");
    const Value& weights = graph.values[graph.find("w")];
    REQUIRE(weights.initializer.has_value());
    CHECK(weights.initializer->mapped());
    CHECK(numbers_of(weights.initializer->view()) == std::vector<double>{0.5, -2});
    CHECK(to_string(graph.values[graph.find("x")].declared_shape) == "[1,4,4,2]");
    CHECK(label(graph, node) == "CONV_2D making 'y'");
    CHECK(file.tensors[graph.find("b")].index == 2);
}

TEST_CASE("a model is read by its content, whatever its name") {
    const test::TemporaryFolder folder;
    std::string bytes = one_convolution();
    test::write_unsynced(folder / "m.onnx", bytes);
    CHECK(read_model(folder / "m.onnx").form == ModelForm::circle);
    bytes.replace(4, 4, "TFL3");
    test::write_unsynced(folder / "m.bin", bytes);
    CHECK(read_model(folder / "m.bin").form == ModelForm::tflite);
    bytes.replace(4, 4, "XXXX");
    test::write_unsynced(folder / "m.circle", bytes);
    CHECK(
        says(test::message_of<Error>([&] { read_circle_file(folder / "m.circle"); }), "expected a .circle"));
}

TEST_CASE("tensors without a name or with one that another has get names of their own") {
    CircleBuilder builder;
    const auto x = builder.add_float("t", {2});
    const auto a = builder.add_float("", {2});
    const auto b = builder.add_float("t", {2});
    builder.add_operator(101, {x}, {a});
    builder.add_operator(101, {a}, {b});
    const CircleFile file = read_circle_bytes(builder.finish({x}, {b}));
    std::set<std::string> names;
    for (const Value& value : file.model.graph->values) names.insert(value.name);
    CHECK(names == std::set<std::string>{"t", "tensor_1", "t_2"});
    CHECK(file.tensors[1].name.empty());
    CHECK(file.tensors[2].name == "t");
    CHECK(file.model.graph->values[2].file_name == "t");
}

TEST_CASE("whatever is wrong with a circle file is told at once") {
    CircleBuilder builder;
    const auto x = builder.add_float("x", {2});
    const auto w = builder.add_float("w", {3}, {1, 2});  // two numbers for three elements
    const auto y = builder.add_float("y", {2});
    builder.add_operator(0, {x, w}, {y}, 5);  // an addition with the options of a pooling
    builder.add_operator(18, {x, 77}, {y}, 21);
    const std::string message = circle_error(builder.finish({x}, {y}));
    CHECK(says(message, "m.circle: "));
    CHECK(says(message, "tensor 'w': expected 3 elements of 4 bytes for float32 [3], found 8 bytes"));
    CHECK(says(message, "operator 0 (ADD): expected options of kind 11, found those of kind 5"));
    CHECK(says(message, "operator 1 (MUL), inputs: expected one of 3 tensors, found tensor 77"));
}

TEST_CASE("subgraphs become bodies of the operator that runs them") {
    const CircleFile file = read_circle_bytes(model_with_branches(1));
    const Graph& graph = *file.model.graph;
    CHECK(file.subgraph_count == 3);
    CHECK(graph.nodes.size() == 3);
    CHECK(graph.outermost_nodes().size() == 1);
    const Node& node = graph.nodes[graph.outermost_nodes()[0]];
    REQUIRE(node.body("then_branch") != nullptr);
    REQUIRE(node.body("else_branch") != nullptr);
    CHECK(node.body("then_branch")->inputs.size() == 1);
    // "x" is the main graph's, "arg" nobody else's, "sum" of both branches.
    CHECK(graph.find("y/then_branch/x") != no_value);
    CHECK(graph.find("arg") != no_value);
    CHECK(graph.find("y/else_branch/sum") != no_value);
}

TEST_CASE("a subgraph that runs itself is refused") {
    CHECK(says(circle_error(model_with_branches(0)), "expected a subgraph that does not run this one"));
    CHECK(says(circle_error(model_with_branches(9)), "expected one of 3 subgraphs, found 9"));
}

TEST_CASE("operators and types of both schemas have names") {
    CHECK(circle_operator_name(0) == "ADD");
    CHECK(circle_operator_name(150) == "GELU");
    CHECK(circle_operator_name(-2) == "INSTANCE_NORM");
    CHECK(circle_operator_name(-6) == "RMS_NORM");
    CHECK(circle_operator_name(5000) == "OPERATOR_5000");
    CHECK(circle_type_name(-6) == "MXFP4");
    CHECK(circle_type_name(17) == "int4");
    CHECK(data_type_of_circle(7) == DataType::int16);
    CHECK(data_type_of_circle(17) == DataType::undefined);
}

TEST_CASE("small files of all kinds are read, or refused for a stated reason") {
    std::size_t read = 0;
    std::set<std::string> refused;
    for (const auto& entry : std::filesystem::directory_iterator(golden_circles)) {
        if (entry.path().extension() != ".circle") continue;
        const std::string message = test::message_of<Error>([&] { read_circle_file(entry.path()); });
        if (message.empty()) {
            ++read;
        } else {
            CHECK(says(message, "is made twice"));
            refused.insert(entry.path().stem().string());
        }
    }
    CHECK(read == 143);
    CHECK(refused == std::set<std::string>{"dup1", "dup2"});
}

TEST_CASE("damaged and truncated circle files are refused, and never crash") {
    const test::TemporaryFolder folder;
    for (const char* name : {"ca.circle", "s_concat.circle", "qe_two.circle"}) {
        const std::string bytes = read_text_file(golden_circles / name);
        for (std::size_t size = 0; size < bytes.size(); size += 7) {
            test::write_unsynced(folder / "cut.circle", std::string_view(bytes).substr(0, size));
            static_cast<void>(test::message_of<Error>([&] { read_circle_file(folder / "cut.circle"); }));
        }
        std::size_t refused = 0;
        for (std::size_t place = 0; place < bytes.size(); ++place) {
            for (const unsigned char change : {0x01, 0x80, 0xff}) {
                std::string damaged = bytes;
                damaged[place] = static_cast<char>(static_cast<unsigned char>(damaged[place]) ^ change);
                test::write_unsynced(folder / "damaged.circle", damaged);
                const std::string message =
                    test::message_of<Error>([&] { read_circle_file(folder / "damaged.circle"); });
                if (!message.empty()) ++refused;
            }
        }
        CHECK(refused > bytes.size() / 8);
        test::write_unsynced(folder / "half.circle", std::string_view(bytes).substr(0, bytes.size() / 2));
        CHECK(!test::message_of<Error>([&] { read_circle_file(folder / "half.circle"); }).empty());
    }
}

}  // namespace qcalib
