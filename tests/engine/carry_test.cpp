#include "engine/carry.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
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

class NoProgress : public Progress {
  public:
    void advance(std::size_t done, std::size_t total, std::string_view /*current*/) override {
        last = {done, total};
    }
    std::pair<std::size_t, std::size_t> last;
};

// next = (x + state) / 2, y = Relu(x + state): with x = 1 and a zero state, next is 1/2, 3/4, 7/8, ...
OnnxModel averaging_model() {
    OnnxModel model;
    model.graph.input("x", {1, 2}).input("state", {"n", 2}).output("y", {1, 2}).output("next", {"n", 2});
    model.graph.initializer("half", {1}, std::vector<float>{0.5F});
    model.graph.node("Add", {"x", "state"}, {"sum"}).node("Relu", {"sum"}, {"y"});
    model.graph.node("Mul", {"sum", "half"}, {"next"});
    return model;
}

class Scene {
  public:
    explicit Scene(const OnnxModel& model = averaging_model()) { model.save(folder / "model.onnx"); }

    // A sequence of `steps` steps filled with `value` ("state" from a file where one is given).
    void add(std::int64_t steps, float value, const std::optional<Tensor>& state = {}) {
        const std::string name = std::to_string(entries.size());
        const std::vector<float> values(static_cast<std::size_t>(steps) * 2, value);
        write_npy(folder / (name + ".npy"), Tensor::of<float>({steps, 2}, std::span(values)).view());
        ListEntry& entry = entries.emplace_back();
        entry.line = entries.size();
        entry.files = {folder / (name + ".npy"), {}};
        if (!state) return;
        entry.files[1] = folder / (name + ".state.npy");
        write_npy(entry.files[1], state->view());
    }

    CalibrationResult run(const std::string& output, unsigned jobs, const Selection& selection = {},
                          const std::vector<std::string>& carries = {"next=state"}) {
        const Model model = read_onnx_file(folder / "model.onnx");
        std::vector<InputSpec> inputs = input_specs(*model.graph);
        options.carries = parse_carries(*model.graph, carries, inputs, remarks);
        options.jobs = jobs;
        options.shard = selection.shard;
        options.shards = selection.shards;
        const SampleReader reader(inputs, {});
        return calibrate(model, reader, select_samples(entries, selection), options, folder / output,
                         progress, remarks);
    }

    std::string bytes(const std::string& name) const { return read_text_file(folder / name); }

    TemporaryFolder folder;
    std::vector<ListEntry> entries;
    CalibrationOptions options;
    NoProgress progress;
    Remarks remarks;
};

// Least and greatest value of a tensor in a row.
std::pair<float, float> extremes(const StatisticsFile& file, std::size_t row, const std::string& tensor) {
    const SampleSummary entry = file.entry(row, *file.find(tensor));
    return {entry.min, entry.max};
}

// The message of parse_carries() for a model with inputs x [1,2], state [n,2] and rate, an int64.
std::string refusal(const std::vector<std::string>& options) {
    OnnxModel model = averaging_model();
    model.graph.input("rate", {2}, DataType::int64).output("wide", {1, 3}).output("sum", {2, 2});
    model.graph.node("Concat", {"x", "half"}, {"w"}, {{"axis", 1}}).node("Identity", {"w"}, {"wide"});
    const TemporaryFolder folder;
    model.save(folder / "model.onnx");
    const Model read = read_onnx_file(folder / "model.onnx");
    std::vector<InputSpec> inputs = input_specs(*read.graph);
    Remarks remarks;
    return message_of<Error>([&] { parse_carries(*read.graph, options, inputs, remarks); });
}

}  // namespace

TEST_CASE("each step of a sequence runs on the state of the step before, from zero") {
    Scene scene;
    scene.add(4, 1);
    scene.add(1, -2);
    const CalibrationResult result = scene.run("out.qstats", 1);
    CHECK(result.samples == 5);
    CHECK(result.sequences == 2);
    const StatisticsFile file(scene.folder / "out.qstats");
    REQUIRE(file.rows() == 5);
    CHECK(file.header().sequences);
    CHECK(file.header().selected == 2);
    for (std::size_t step = 0; step < 4; ++step) {
        CHECK(file.row_number(step) == step);
        const float next = 1 - std::ldexp(1.0F, -static_cast<int>(step) - 1);
        CHECK(extremes(file, step, "next") == std::pair{next, next});
        const float before = 2 * next - 1;
        CHECK(extremes(file, step, "state") == std::pair{before, before});
    }
    CHECK(file.row_number(4) == step_number(1, 0));
    CHECK(extremes(file, 4, "state") == std::pair{0.0F, 0.0F});
    CHECK(extremes(file, 4, "next") == std::pair{-1.0F, -1.0F});
    CHECK(file.tensor(*file.find("next")).elements() == 10);
}

TEST_CASE("a line or a value of the input gives another first state") {
    Scene scene;
    scene.add(2, 0, Tensor::of<float>({1, 2}, std::vector<float>{4, 8}));
    scene.run("out.qstats", 1);
    const StatisticsFile file(scene.folder / "out.qstats");
    CHECK(extremes(file, 0, "next") == std::pair{2.0F, 4.0F});
    CHECK(extremes(file, 1, "next") == std::pair{1.0F, 2.0F});
}

TEST_CASE("an open dimension of a zero state is taken as 1 with a remark, or as one of the same name") {
    Scene scene;
    scene.add(1, 1);
    scene.run("out.qstats", 1);
    REQUIRE(scene.remarks.all().size() == 1);
    CHECK(
        scene.remarks.all()[0] ==
        "--carry next=state: the zero state of input 'state' [?,2] is taken as [1,2]; --shape state=... says "
        "otherwise");
    OnnxModel model = averaging_model();
    model.graph.input("other", {"n"});
    model.save(scene.folder / "model.onnx");
    const Model read = read_onnx_file(scene.folder / "model.onnx");
    std::vector<InputSpec> inputs = input_specs(*read.graph);
    apply_shape(inputs, "other=3");
    Remarks remarks;
    parse_carries(*read.graph, std::vector<std::string>{"next=state"}, inputs, remarks);
    CHECK(inputs[1].otherwise->shape() == Shape{3, 2});
    CHECK(remarks.empty());
}

TEST_CASE("statistics of sequences are the same for any number of workers, and merged from shards") {
    Scene scene;
    for (std::int64_t i = 0; i < 13; ++i) scene.add(1 + i * 7 % 5, static_cast<float>(i) - 6);
    std::filesystem::remove(scene.entries[4].files[0]);
    const CalibrationResult result = scene.run("one.qstats", 1);
    REQUIRE(result.skipped.size() == 1);
    CHECK(result.skipped[0].number == 4);
    CHECK(scene.progress.last == std::pair<std::size_t, std::size_t>{13, 13});
    for (const unsigned jobs : {2U, 8U}) {
        scene.run("more.qstats", jobs);
        CHECK(scene.bytes("more.qstats") == scene.bytes("one.qstats"));
    }
    std::vector<std::filesystem::path> shards;
    for (std::uint32_t shard = 1; shard <= 3; ++shard) {
        Selection selection;
        selection.shard = shard;
        selection.shards = 3;
        const std::string name = "shard" + std::to_string(shard) + ".qstats";
        scene.run(name, 2, selection);
        shards.push_back(scene.folder / name);
    }
    std::swap(shards[0], shards[2]);
    merge_statistics(shards, scene.folder / "merged.qstats");
    CHECK(scene.bytes("merged.qstats") == scene.bytes("one.qstats"));
    CHECK(StatisticsFile(scene.folder / "merged.qstats").skipped() ==
          std::vector<std::uint64_t>{step_number(4, 0)});
}

TEST_CASE("incomplete steps are left out, and one remark counts the files") {
    Scene scene;
    const std::vector<float> values(7, 1.0F);
    for (const char* name : {"a.raw", "b.raw"}) {
        write_file(scene.folder / name, {reinterpret_cast<const char*>(values.data()), 28});
        scene.entries.push_back({scene.entries.size() + 1, {scene.folder / name, {}}});
    }
    CHECK(scene.run("out.qstats", 2).samples == 6);
    CHECK(scene.remarks.all().back() == "2 files end with an incomplete step, which is left out: " +
                                            (scene.folder / "a.raw").string() + " (4 of 8 bytes), ...");
}

TEST_CASE("what the model sees of each step can be dumped") {
    Scene scene;
    scene.add(2, 1);
    scene.options.dump_inputs = scene.folder.path();
    scene.run("out.qstats", 1);
    const Tensor state = read_npy(scene.folder / "000000.000001.state.npy");
    CHECK(numbers_of(state.view()) == std::vector<double>{0.5, 0.5});
    CHECK(numbers_of(read_npy(scene.folder / "000000.000000.state.npy").view()) == std::vector<double>{0, 0});
}

TEST_CASE("a state may grow from step to step where its input leaves that open") {
    OnnxModel model;
    model.graph.input("x", {1, 2}).input("past", {"t", 2}).output("all", {"u", 2});
    model.graph.node("Concat", {"past", "x"}, {"all"}, {{"axis", 0}});
    Scene scene(model);
    scene.add(3, 1);
    scene.run("out.qstats", 1, {}, {"all=past"});
    const StatisticsFile file(scene.folder / "out.qstats");
    CHECK(file.tensor(*file.find("all")).elements() == (2 + 3 + 4) * 2);
}

TEST_CASE("a state that its input does not take ends the run, naming file, step and the pair") {
    OnnxModel model;
    model.graph.input("x", {1, 2}).input("past", {1, 2}).output("all");
    model.graph.node("Concat", {"past", "x"}, {"all"}, {{"axis", 0}});
    Scene scene(model);
    scene.add(2, 1);
    CHECK(message_of<Error>([&] { scene.run("out.qstats", 1, {}, {"all=past"}); }) ==
          scene.entries[0].files[0].string() +
              ", step 1: --carry all=past: the output is float32 [2,2], which float32 input 'past' [1,2] "
              "does not "
              "take");
    CHECK_FALSE(std::filesystem::exists(scene.folder / "out.qstats"));
}

TEST_CASE("pairs are checked by name, type and shape, with the nearest name offered") {
    CHECK(refusal({"next"}) == "--carry next: expected OUTPUT=INPUT, found no '='");
    CHECK(refusal({"nex=state"}) == "--carry nex=state: no output 'nex' (did you mean 'next'?)");
    CHECK(refusal({"next=stat"}) == "--carry next=stat: no input 'stat' (did you mean 'state'?)");
    CHECK(refusal({"q=state"}).starts_with("--carry q=state: no output 'q' (the model's outputs: y, next, "));
    CHECK(refusal({"next=state", "y=state"}) == "--carry y=state: input 'state' is carried twice");
    CHECK(refusal({"next=rate"}) ==
          "--carry next=rate: output 'next' is float32, but input 'rate' [2] takes int64");
    CHECK(refusal({"wide=state"}) ==
          "--carry wide=state: output 'wide' has shape [1,3], which input 'state' [?,2] does not take");
    CHECK(refusal({"sum=x"}).find("output 'sum' has shape [2,2], which input 'x' [1,2] does not take") !=
          std::string::npos);
    CHECK(refusal({"next=state", "y=x"}).empty());
}
