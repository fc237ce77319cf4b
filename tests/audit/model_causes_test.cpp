// Causes that need the model.
#include <doctest/doctest.h>

#include "audit_fixture.h"
#include "graph/onnx_file.h"
#include "support/onnx_builder.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// image -> Conv -> BatchNormalization -> Relu -> Softmax -> y, a folded constant, a dead end, an integer.
Model small_model(const TemporaryFolder& folder) {
    OnnxModel model;
    OnnxGraph& graph = model.graph;
    graph.input("image", {1, 3, 4, 4});
    graph.initializer("w", {3, 3, 1, 1}, std::vector<float>(9, 0.5F));
    for (const char* name : {"scale", "shift", "mean", "variance"})
        graph.initializer(name, {3}, std::vector<float>(3, 1.0F));
    graph.initializer("two", {1}, std::vector<float>{2});
    graph.node("Conv", {"image", "w"}, {"conv"}, {}, "/conv");
    graph.node("BatchNormalization", {"conv", "scale", "shift", "mean", "variance"}, {"bn"}, {}, "/bn");
    graph.node("Relu", {"bn"}, {"relu"}, {}, "/relu");
    graph.node("Mul", {"two", "two"}, {"four"}, {}, "/four");
    graph.node("Mul", {"relu", "four"}, {"scaled"}, {}, "/scaled");
    graph.node("Sqrt", {"relu"}, {"dead"}, {}, "/dead");
    graph.node("Shape", {"relu"}, {"shape"}, {}, "/shape");
    graph.node("Softmax", {"scaled"}, {"y"}, {{"axis", 1}}, "/softmax");
    graph.node("Shape", {"y"}, {"sizes"}, {}, "/sizes");
    graph.output("y");
    graph.output("sizes", {4}, DataType::int64);
    graph.output("shape", {4}, DataType::int64);
    model.save(folder / "m.onnx");
    return read_onnx_file(folder / "m.onnx");
}

const std::string rows = log_row("image", "image", 8, 0, 1) + log_row("/conv", "bn", 8, -2, 2.5) +
                         log_row("/relu", "relu", 8, 0, 2.5) + log_row("/scaled", "scaled", 8, 0, 10) +
                         log_row("/softmax", "y", 8, 0, 0.99609375);

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("with the model, entries that are not used are told why") {
    const TemporaryFolder folder;
    const Model model = small_model(folder);
    GivenFile given;
    for (const char* name : {"conv", "four", "dead", "shape", "/relu", "reluu"}) given.add(name, -1, 1);
    const AuditResult result = audit_of(given, rows, model.graph.get());
    for (const FileEntry& entry : given.file().entries)
        CHECK(status_of(result, entry.encoding.tensor) == "unused");
    CHECK(contains(cause_of(result, "conv"), "fused"));
    CHECK(contains(cause_of(result, "conv"), "'bn'"));
    CHECK(contains(cause_of(result, "four"), "folded"));
    CHECK(contains(cause_of(result, "dead"), "no output of the model"));
    CHECK(contains(cause_of(result, "shape"), "no float tensor"));
    CHECK(find(result, "/relu")->advice == "call it 'relu'");
    CHECK(find(result, "reluu")->advice == "did you mean 'relu'?");
}

TEST_CASE("with the model, the value before a Relu, inputs and inserted tensors are told apart") {
    const TemporaryFolder folder;
    const Model model = small_model(folder);
    GivenFile given;
    given.add("relu", 0, 2.5).add("scaled", 0, 10);
    const AuditResult result = audit_of(given, rows + log_row("x", "inserted", 8, 0, 1), model.graph.get());
    CAPTURE(cause_of(result, "bn"));
    CHECK(contains(cause_of(result, "image"), "input of the model"));
    CHECK(contains(cause_of(result, "bn"), "before Relu 'relu', which has an entry"));
    CHECK(contains(cause_of(result, "inserted"), "the converter inserted it"));
    CHECK(status_of(result, "relu") == "applied");
}

TEST_CASE("a weight that dlc-info 1.x names by its layer has the model's name") {
    const TemporaryFolder folder;
    const Model model = small_model(folder);
    GivenFile given;
    given.add("w", -1.003921568627451, 0.996078431372549, 8, Section::parameter);
    const AuditResult result = audit_of(given,
                                        "| 1 | /conv | convolutional | image | bn | 1x4x4x3 | weight "
                                        "encoding: min -1.003922, max 0.996078, delta "
                                        "0.007843, offset -128.000000 bitwidth 8 |\n",
                                        model.graph.get());
    CHECK(status_of(result, "w") == "applied");
    CHECK(result.findings.size() == 1);
}

TEST_CASE("with the model, a HardSwish written out is known by the target's rules, whatever the names") {
    const TemporaryFolder folder;
    OnnxModel onnx;
    onnx.graph.input("x", {1, 2, 4, 4});
    onnx.graph.initializer("w", {2, 2, 1, 1}, std::vector<float>(4, 0.5F));
    for (const auto& [name, value] : {std::pair{"zero", 0.0F}, {"three", 3.0F}, {"six", 6.0F}})
        onnx.graph.initializer(name, Tensor::of<float>({}, std::vector<float>{value}));
    onnx.graph.node("Conv", {"x", "w"}, {"c"}, {}, "conv");
    onnx.graph.node("Add", {"c", "three"}, {"plus"}, {}, "plus");
    onnx.graph.node("Clip", {"plus", "zero", "six"}, {"cut"}, {}, "cut");
    onnx.graph.node("Mul", {"c", "cut"}, {"times"}, {}, "times");
    onnx.graph.node("Div", {"times", "six"}, {"h"}, {}, "h");
    onnx.graph.node("Conv", {"h", "w"}, {"y"}, {}, "last");
    onnx.graph.output("y");
    onnx.save(folder / "m.onnx");
    const Model model = read_onnx_file(folder / "m.onnx");
    GivenFile given;
    given.add("c", -17.5, 12.25).add("plus", 0, 6).add("h", -0.4, 12.2).add("y", -1, 1.55).add("x", 0, 1);
    const AuditResult result =
        audit_of(given,
                 log_row("x", "x", 8, 0, 1) + log_row("conv", "c", 8, -17.5, 12.25) +
                     log_row("neuron", "h", 8, -0.359582, 17.979096) + log_row("last", "y", 8, -1, 1.55),
                 model.graph.get());
    CHECK(status_of(result, "plus") == "unused");
    CHECK(contains(cause_of(result, "plus"),
                   "fused: it lies inside Hswish, of which only the output 'h' is kept"));
    CHECK(status_of(result, "h") == "recomputed");
    CHECK(contains(cause_of(result, "h"), "fused HardSwish (layer 'neuron')"));
    CHECK(contains(cause_of(result, "h"), "above the producer's maximum 12.25 ('c')"));
    CHECK(status_of(result, "c") == "applied");
    CHECK(status_of(result, "y") == "applied");
    CHECK(result.findings.size() == 5);
}
