#include <doctest/doctest.h>

#include "base/random.h"
#include "graph/model_files.h"

namespace qcalib {

namespace {

using namespace test;  // NOLINT: the builder's vocabulary

// Small, with something of everything that the reader looks at.
OnnxModel varied_model() {
    OnnxGraph branch;
    branch.initializer("k", {1}, std::vector<float>{2}).node("Mul", {"t", "k"}, {"r"}).output("r");
    OnnxModel model;
    model.graph.input("x", {1, "N"}).input("c", {}, DataType::boolean);
    model.graph.initializer("w", {2}, std::vector<float>{1, -1});
    model.graph.initializer("v", {2}, std::vector<std::int64_t>{1, 2}, OnnxStorage::typed);
    model.graph.initializer(OnnxTensor::of<double>("d", {1}, {0.5}));
    model.graph.node("Add", {"x", "w"}, {"t"},
                     {{"a", 1}, {"f", 0.5}, {"s", "text"}, {"l", OnnxInts{1, 2, 3}}}, "add");
    model.graph.node("If", {"c"}, {"y"}, {{"then_branch", branch}, {"else_branch", branch}});
    model.graph.node("Constant", {}, {"z"}, {{"value", OnnxTensor::of<float>("", {1}, {1})}});
    model.graph.value_info("t", {1, OnnxDimension()}).output("y").output("z", {1});
    return model;
}

// Loads the bytes; they must give a model or an Error that begins with the path.
bool loads(const TemporaryFolder& folder, const std::string& bytes) {
    const std::filesystem::path path = folder / "m.onnx";
    write_unsynced(path, bytes);
    try {
        const Model model = read_onnx_file(path);
        CHECK(model.graph != nullptr);
        return true;
    } catch (const Error& error) {
        CHECK(std::string_view(error.what()).starts_with(path.string() + ": "));
        return false;
    }
}

}  // namespace

TEST_CASE("a file that is missing or a folder is refused") {
    const TemporaryFolder folder;
    CHECK(error_of_file(folder / "none.onnx") == "cannot be read: No such file or directory");
    CHECK(error_of_file(folder.path()) == "expected a file, found a folder");
}

TEST_CASE("what is no ONNX model is told from one that ends early and one that is damaged") {
    CHECK(error_of("") == "expected an ONNX model, found an empty file");
    CHECK(error_of("# a readme\n") ==
          "expected an ONNX model, found another kind of file (it begins with 23 20 61 20 72 65 61 64)");
    CHECK(error_of("PK\3\4").starts_with("expected an ONNX model, found another kind of file"));
    CHECK(error_of("\x89PNG\r\n\x1a\n").starts_with("expected an ONNX model, found another kind of file"));
    CHECK(error_of("{\"a\": 1}").starts_with("expected an ONNX model, found another kind of file"));
    CHECK(error_of("\n\n\n\n").starts_with("expected an ONNX model, found another kind of file"));
    CHECK(error_of(std::string(100, '\0')).starts_with("expected an ONNX model, found another kind of file"));
    CHECK(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\n") ==
          "expected an ONNX model, found a Git LFS pointer to one");

    const std::string whole = relu_model().bytes();
    CHECK(error_of(whole.substr(0, 2)) == "expected a whole ONNX model, found one without a graph (2 bytes)");
    CHECK(error_of(whole.substr(0, 1)) ==
          "expected a whole ONNX model, found one that ends early: 1 bytes, cut at byte 0 in field "
          "'ir_version'");
    CHECK(error_of(whole.substr(0, whole.size() / 2))
              .starts_with(
                  "expected a whole ONNX model, found one that ends early: field 'graph' at byte 15 has "));

    std::string damaged = whole;
    const std::size_t at = damaged.find("Relu");
    damaged[at - 1] = '\x7f';  // the length of op_type, beyond its node
    CHECK(error_of(damaged).starts_with(
        "expected an ONNX model, found a damaged one: no valid field at byte "));
}

TEST_CASE("old versions are refused together") {
    OnnxModel model = relu_model();
    model.ir_version = 2;
    model.opsets = {{"", 6}};
    CHECK(
        error_of(model) ==
        "2 problems:\n  - IR version: expected 3 or newer, found 2\n  - opset: expected 7 or newer, found 6");
    model.ir_version = 3;
    model.opsets = {{"", 7}};
    CHECK(error_of(model).empty());
    model.opsets = {{"", 11}, {"ai.onnx", 13}};
    CHECK(error_of(model) == "opset of domain 'ai.onnx': expected one version, found 11 and 13");
    model.opsets = {{"other", 1}};
    CHECK(error_of(model) ==
          "Relu making 'y': expected a domain that the model imports an opset of, found 'ai.onnx'");
}

TEST_CASE("all problems of a file are in one message, each with its tensor or node") {
    OnnxModel model;
    model.ir_version = 1;
    model.graph.input("x", {1}).input("x", {1}).input("seq", {1});
    model.graph.inputs.back().kind = OnnxValue::Kind::sequence;
    model.graph.initializer("w", {3}, std::vector<float>{1, 2, 3})
        .initializer("w", {1}, std::vector<float>{1});
    model.graph.initializers[0].raw->pop_back();
    model.graph.initializer("", {1}, std::vector<float>{1});
    model.graph.sparse_initializers.emplace_back(OnnxTensor::of<float>("sparse", {1}, {1}),
                                                 OnnxTensor::of<std::int64_t>("", {1}, {0}));
    model.graph.node("Conv", {"weights"}, {"y"}, {{"group", 1}, {"group", 2}}, "conv");
    model.graph.node("Relu", {"b"}, {"a"}, {}, "r1").node("Relu", {"a"}, {"b"}, {}, "r2");
    model.graph.node("Magic", {"x"}, {"x"}, {}, "", "odd.domain").node("", {"x"}, {"q"}, {}, "empty");
    model.graph.output("y").output("nobody").output("");
    CHECK(error_of(model) ==
          "15 problems:\n"
          "  - IR version: expected 3 or newer, found 1\n"
          "  - initializer 'w': expected 3 elements of 4 bytes for float32 [3], found 11 bytes\n"
          "  - initializer 'w' is given twice\n"
          "  - an initializer has no name\n"
          "  - initializer 'sparse': expected a dense tensor, found a sparse one\n"
          "  - graph input 'seq': expected a tensor of numbers, found a sequence\n"
          "  - Conv 'conv': attribute 'group' is given twice\n"
          "  - odd.domain:Magic making 'x': expected a domain that the model imports an opset of, found "
          "'odd.domain'\n"
          "  - node 'empty': expected the name of an operator, found none\n"
          "  - a graph output has no name\n"
          "  - graph input 'x' is listed twice\n"
          "  - 'x' is made twice: by odd.domain:Magic making 'x' and as a graph input\n"
          "  - Conv 'conv' uses 'weights', which nothing makes\n"
          "  - graph output 'nobody' is made by nothing\n"
          "  - nodes in a cycle, each using what the one before makes: Relu 'r2', Relu 'r1'");
}

TEST_CASE("graph inputs that cannot be fed are refused by what they are") {
    const auto error = [](OnnxValue::Kind kind, std::int32_t type) {
        OnnxModel model = relu_model();
        model.graph.inputs.push_back({"i", OnnxDimensions{1}, type, kind});
        return error_of(model);
    };
    const std::string what = "graph input 'i': expected a tensor of numbers, found ";
    CHECK(error(OnnxValue::Kind::sequence, 1) == what + "a sequence");
    CHECK(error(OnnxValue::Kind::optional, 1) == what + "an optional value");
    CHECK(error(OnnxValue::Kind::map, 1) == what + "a map");
    CHECK(error(OnnxValue::Kind::sparse_tensor, 1) == what + "a sparse tensor");
    CHECK(error(OnnxValue::Kind::untyped, 1) == what + "no type");
    CHECK(error(OnnxValue::Kind::tensor, 8) == what + "strings");
    CHECK(error(OnnxValue::Kind::tensor, 14) == what + "one of complex64");
    CHECK(error(OnnxValue::Kind::tensor, 0) == what + "one of undefined");
    CHECK(error(OnnxValue::Kind::tensor, 7).empty());
}

TEST_CASE("whoever feeds more than numbers may read a model with inputs of any type there is") {
    const TemporaryFolder folder;
    const auto type_of_input = [&](OnnxValue::Kind kind, std::int32_t type) {
        OnnxModel model = relu_model();
        model.graph.inputs.push_back({"i", OnnxDimensions{1}, type, kind});
        model.save(folder / "any.onnx");
        const Model read = read_onnx_file(folder / "any.onnx", ModelInputs::any);
        return read.graph->values[read.graph->find("i")].declared_type;
    };
    CHECK(type_of_input(OnnxValue::Kind::sequence, 1) == DataType::sequence);
    CHECK(type_of_input(OnnxValue::Kind::optional, 1) == DataType::optional);
    CHECK(type_of_input(OnnxValue::Kind::tensor, 8) == DataType::string);
    CHECK_THROWS_AS(type_of_input(OnnxValue::Kind::map, 1), Error);
    CHECK_THROWS_AS(type_of_input(OnnxValue::Kind::tensor, 14), Error);
}

TEST_CASE("faults inside a subgraph are told with the node and attribute it belongs to") {
    OnnxGraph branch;
    branch.initializer(OnnxTensor::of<double>("k", {1}, {1e300}))
        .node("Mul", {"lost", "k"}, {"r"})
        .output("r");
    OnnxModel model = relu_model();
    model.graph.input("c", {}, DataType::boolean)
        .node("If", {"c"}, {"z"}, {{"then_branch", branch}}, "choice");
    CHECK(error_of(model) ==
          "2 problems:\n"
          "  - If 'choice', then_branch: initializer 'k': expected values within float32's range, found "
          "1e+300\n"
          "  - If 'choice', then_branch: Mul making 'r' uses 'lost', which nothing makes");
}

TEST_CASE("attributes that are no number, string, tensor, graph or list are refused") {
    OnnxModel model = relu_model();
    model.graph.nodes[0].attributes = {{"many", std::vector<OnnxTensor>{OnnxTensor::of<float>("", {1}, {1})}},
                                       {"later", 1}};
    model.graph.nodes[0].attributes[1].reference = "outer";
    CHECK(error_of(model) ==
          "2 problems:\n"
          "  - Relu making 'y': attribute 'many': expected a number, string, tensor, graph or list, found a "
          "list of "
          "tensors\n"
          "  - Relu making 'y': attribute 'later': expected a number, string, tensor, graph or list, found a "
          "reference "
          "to a function's attribute");
}

TEST_CASE("graphs nested without end are refused") {
    OnnxGraph graph;
    graph.output("x");
    for (int depth = 0; depth < 200; ++depth) {
        OnnxGraph outer;
        outer.node("If", {"c"}, {"y"}, {{"then_branch", graph}}).output("y");
        graph = outer;
    }
    OnnxModel model;
    model.graph = graph;
    model.graph.input("c", {}, DataType::boolean).input("x", {1});
    CHECK(error_of(model) == "expected an ONNX model, found graphs nested too deeply");
}

TEST_CASE("a model cut at any byte is refused") {
    const TemporaryFolder folder;
    const std::string whole = varied_model().bytes();
    REQUIRE(loads(folder, whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        // Fields that stand last may be absent: without the opset the file is refused for its operators.
        CHECK_FALSE(loads(folder, whole.substr(0, size)));
    }
}

TEST_CASE("a model with changed bytes gives a model or one message") {
    const TemporaryFolder folder;
    const std::string whole = varied_model().bytes();
    Random random(20240607);
    int refused = 0;
    constexpr int rounds = 5000;
    for (int round = 0; round < rounds; ++round) {
        CAPTURE(round);
        std::string changed = whole;
        for (std::uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
            changed[random.below(changed.size())] = static_cast<char>(random.below(256));
        }
        refused += loads(folder, changed) ? 0 : 1;
    }
    CHECK(refused > rounds / 4);
    CHECK(refused < rounds);
}

}  // namespace qcalib
