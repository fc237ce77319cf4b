#include "engine/derivation.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/random.h"
#include "engine/calibration.h"
#include "engine/model_inputs.h"
#include "graph/onnx_file.h"
#include "support/onnx_builder.h"
#include "support/operator_harness.h"
#include "support/temporary_folder.h"
#include "tensor/npy.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class NoProgress : public Progress {
  public:
    void advance(std::size_t, std::size_t, std::string_view) override {}
};

Tensor filled(const Shape& shape, const std::vector<float>& pattern) {
    Tensor tensor(TensorDescriptor{DataType::float32, shape, MemoryOrder::row_major});
    const std::span<float> elements = tensor.mutable_view().as<float>();
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = pattern[i % pattern.size()];
    return tensor;
}

// A model with one input x of [n, 4, 2, 2], run over samples of all sorts.
class Scene {
  public:
    explicit Scene(OnnxModel& model) {
        model.save(folder / "model.onnx");
        const Shape shape = {1, 4, 2, 2};
        samples = {random_tensor(shape, 1, -3, 3),
                   random_tensor({3, 4, 2, 2}, 2, -100, 100),
                   random_tensor({400, 4, 2, 2}, 3, -1, 5),
                   filled(shape, {0.0F, -0.0F}),
                   filled(shape, {std::nanf(""), infinity, -infinity, 1.0F, -2.0F}),
                   filled(shape, {3e38F, -3e38F, 0.25F, -0.125F}),
                   filled(shape, {1e-39F, -1e-40F, 2e-38F, -3e-38F}),
                   filled(shape, {std::nanf("")}),
                   filled(shape, {-1.5F}),
                   filled(shape, {5e29F, -5e29F})};
    }

    // The statistics file's bytes.
    std::string run(const std::string& name, const CalibrationOptions& options) {
        std::vector<ListEntry> entries;
        for (std::size_t i = 0; i < samples.size(); ++i) {
            const std::filesystem::path file = folder / ("s" + std::to_string(i) + ".npy");
            write_npy(file, samples[i].view());
            entries.push_back({i + 1, {file}});
        }
        const Model model = read_onnx_file(folder / "model.onnx");
        const SampleReader reader(input_specs(*model.graph), {});
        NoProgress progress;
        Remarks remarks;
        result =
            calibrate(model, reader, select_samples(entries, {}), options, folder / name, progress, remarks);
        return read_text_file(folder / name);
    }

    TemporaryFolder folder;
    std::vector<Tensor> samples;
    CalibrationResult result;
};

// Checks that the file is the same with and without derivation; answers the elements derived.
std::uint64_t check_same_file(OnnxModel& model, CalibrationOptions options = {}) {
    Scene scene(model);
    options.jobs = 2;
    const std::string derived = scene.run("derived.qstats", options);
    const CountedElements elements = scene.result.elements;
    options.derive = false;
    const std::string counted = scene.run("counted.qstats", options);
    CHECK(derived == counted);
    CHECK(scene.result.elements.derived == 0);
    CHECK(scene.result.elements.counted == elements.counted + elements.derived);
    return elements.derived;
}

OnnxModel model_of_input() {
    OnnxModel model;
    model.graph.input("x", {"n", 4, 2, 2});
    return model;
}

std::uint64_t elements_of_samples() {
    OnnxModel model = model_of_input();
    model.graph.output("y").node("Neg", {"x"}, {"y"});
    const Scene scene(model);
    std::uint64_t elements = 0;
    for (const Tensor& sample : scene.samples) elements += sample.view().elements();
    return elements;
}

}  // namespace

TEST_CASE("Relu, views and permutations are always derived, to the same file") {
    const std::uint64_t all = elements_of_samples();
    const std::vector<std::string> plain = {"Relu", "Identity", "Dropout", "Transpose", "Flatten"};
    for (const std::string& op_type : plain) {
        CAPTURE(op_type);
        OnnxModel model = model_of_input();
        model.graph.output("y").node(op_type, {"x"}, {"y"});
        CHECK(check_same_file(model) == all);
    }
    OnnxModel reshape = model_of_input();
    reshape.graph.output("y").initializer("shape", {2}, std::vector<std::int64_t>{0, -1});
    reshape.graph.node("Reshape", {"x", "shape"}, {"y"});
    CHECK(check_same_file(reshape) == all);
    OnnxModel depth = model_of_input();
    depth.graph.output("y");
    depth.graph.node("DepthToSpace", {"x"}, {"d"}, {{"blocksize", 2}});
    depth.graph.node("SpaceToDepth", {"d"}, {"y"}, {{"blocksize", 2}});
    CHECK(check_same_file(depth) == 2 * all);
}

TEST_CASE(
    "Concat, also with constants and of one value twice, Tile and Expand are derived to the same file") {
    const std::uint64_t all = elements_of_samples();
    OnnxModel concat = model_of_input();
    concat.graph.output("y").node("Neg", {"x"}, {"n"});
    concat.graph.node("Concat", {"x", "n", "x"}, {"y"}, {{"axis", 1}});
    CHECK(check_same_file(concat) == 3 * all);

    OnnxModel constant;
    constant.graph.input("x", {"n", 4, 2, 2})
        .output("y")
        .initializer("c", random_tensor({2, 4, 2, 2}, 5, -9, 9));
    constant.graph.node("Concat", {"c", "x"}, {"y"}, {{"axis", 0}});
    CHECK(check_same_file(constant) == all + 10 * 32);

    OnnxModel tile = model_of_input();
    tile.graph.output("y").initializer("repeats", {4}, std::vector<std::int64_t>{1, 2, 1, 3});
    tile.graph.node("Tile", {"x", "repeats"}, {"y"});
    CHECK(check_same_file(tile) == 6 * all);

    OnnxModel expand = model_of_input();
    expand.graph.output("y").initializer("shape", {5}, std::vector<std::int64_t>{3, 1, 4, 2, 2});
    expand.graph.node("Expand", {"x", "shape"}, {"y"});
    CHECK(check_same_file(expand) == 3 * all);
}

TEST_CASE(
    "Clip, and multiplication and division by a power of two, are derived where counting gives the same") {
    const std::uint64_t all = elements_of_samples();
    for (const std::vector<float>& bounds :
         std::vector<std::vector<float>>{{0, 6}, {-1, 1}, {-4, 128}, {0.5, 2}}) {
        CAPTURE(bounds[0]);
        OnnxModel model = model_of_input();
        model.graph.output("y").initializer("low", {}, std::vector<float>{bounds[0]});
        model.graph.initializer("high", {}, std::vector<float>{bounds[1]});
        model.graph.node("Clip", {"x", "low", "high"}, {"y"});
        const std::uint64_t derived = check_same_file(model);
        CHECK(derived < all);
        CHECK((derived > 0) == (bounds[0] <= 0));
    }
    for (const float factor : {0.125F, 8.0F, 1.0F, 3.0F, -2.0F, 0.0F}) {
        CAPTURE(factor);
        OnnxModel model = model_of_input();
        model.graph.output("y").initializer("f", {}, std::vector<float>{factor});
        model.graph.initializer("raised", {1, 1, 1, 1, 1}, std::vector<float>{factor});
        model.graph.node("Mul", {"x", "f"}, {"m"})
            .node("Mul", {"f", "x"}, {"w"})
            .node("Div", {"x", "f"}, {"d"});
        model.graph.node("Div", {"f", "x"}, {"not"}).node("Mul", {"x", "raised"}, {"y"});
        CHECK((check_same_file(model) > 0) == (factor == 0.125F || factor == 8.0F || factor == 1.0F));
    }
}

TEST_CASE("a chain of derivations is as good as one, and a value may have several") {
    OnnxModel model = model_of_input();
    model.graph.output("y").initializer("half", {}, std::vector<float>{0.5F});
    model.graph.node("Neg", {"x"}, {"n"}).node("Relu", {"n"}, {"r"}).node("Identity", {"r"}, {"i"});
    model.graph.node("Mul", {"i", "half"}, {"h"}).node("Transpose", {"h"}, {"t"}).node("Relu", {"t"}, {"s"});
    model.graph.node("Concat", {"r", "i", "h"}, {"c"}, {{"axis", 1}}).node("Neg", {"c"}, {"y"});
    model.graph.node("Identity", {"x"}, {"x2"}).node("Identity", {"x2"}, {"x3"}).node("Relu", {"x2"}, {"x4"});
    CHECK(check_same_file(model) > 0);
}

TEST_CASE("Relu and views of half types are derived") {
    for (const DataType type : {DataType::float16, DataType::bfloat16}) {
        OnnxModel model;
        model.graph.input("x", {"n", 4, 2, 2}, type).output("y", {2, 2, 4, "n"}, type);
        model.graph.node("Relu", {"x"}, {"r"}).node("Transpose", {"r"}, {"y"});
        CHECK(check_same_file(model) == 2 * elements_of_samples());
    }
}

TEST_CASE("masks below a limit and extremes alone are derived to the same file") {
    OnnxModel model = model_of_input();
    model.graph.output("y")
        .initializer("low", {}, std::vector<float>{-1.0F})
        .initializer("two", {}, std::vector<float>{2});
    model.graph.node("Relu", {"x"}, {"r"}).node("Clip", {"x", "low"}, {"c"}).node("Mul", {"x", "two"}, {"m"});
    model.graph.node("Concat", {"x", "r", "c", "m"}, {"a"}, {{"axis", 1}}).node("Flatten", {"a"}, {"y"});
    CalibrationOptions options;
    options.counter.mask_below = -1.25;
    CHECK(check_same_file(model, options) > 0);
    options.counter.extremes_only = true;
    CHECK(check_same_file(model, options) == 8 * elements_of_samples());
}

TEST_CASE("tensors that are not asked for are not in the file, and what follows from them is counted") {
    OnnxModel model = model_of_input();
    model.graph.output("y")
        .node("Neg", {"x"}, {"n"})
        .node("Relu", {"n"}, {"r"})
        .node("Transpose", {"r"}, {"y"});
    CalibrationOptions options;
    options.tensors = TensorNames::value_type{"r", "y"};
    CHECK(check_same_file(model, options) == elements_of_samples());
    Scene scene(model);
    scene.run("some.qstats", options);
    const StatisticsFile file(scene.folder / "some.qstats");
    CHECK(file.header().tensors == std::vector<TensorInfo>{{"r", false}, {"y", false}});
    Scene whole(model);
    whole.run("all.qstats", {});
    const StatisticsFile everything(whole.folder / "all.qstats");
    for (const std::string name : {"r", "y"}) {
        CHECK(file.tensor(*file.find(name)) == everything.tensor(*everything.find(name)));
        CHECK(file.entry(2, *file.find(name)) == everything.entry(2, *everything.find(name)));
    }
}

TEST_CASE("what a body makes several times in a sample is one entry of its row, over all of them") {
    OnnxModel model = model_of_input();
    model.graph.output("y").initializer("n", {}, std::vector<std::int64_t>{3});
    OnnxGraph body;
    body.input("i", {}, DataType::int64).input("go", {}, DataType::boolean).input("s", {"n", 4, 2, 2});
    body.node("Identity", {"go"}, {"on"}).node("Add", {"s", "s"}, {"d"}).node("Relu", {"d"}, {"positive"});
    body.node("Identity", {"d"}, {"next"});
    body.output("on", {}, DataType::boolean).output("next");
    model.graph.node("Loop", {"n", "", "x"}, {"y"}, {{"body", body}});
    check_same_file(model);
    Scene scene(model);
    scene.run("loop.qstats", {});
    const StatisticsFile file(scene.folder / "loop.qstats");
    Counter counter;
    for (std::size_t sample = 0; sample < scene.samples.size(); ++sample) {
        CAPTURE(sample);
        const std::span<const float> elements = scene.samples[sample].view().as<float>();
        std::vector<float> made;
        for (const float factor : {2.0F, 4.0F, 8.0F}) {
            for (const float element : elements) {
                made.push_back(std::fabs(element) < 0x1p-126F ? 0.0F : factor * element);
            }
        }
        CHECK(file.entry(sample, *file.find("d")) == summarize(counter.count(made)));
        for (float& element : made) element = element < 0 ? 0 : element;
        CHECK(file.entry(sample, *file.find("positive")) == summarize(counter.count(made)));
    }
}
