#include "engine/calibration.h"

#include <cmath>
#include <fstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/scene.h"

using namespace qcalib;
using namespace qcalib::test;

TEST_CASE("the statistics file is the same for 1, 2 and 8 workers") {
    Scene scene(40);
    scene.run(scene.folder / "one.qstats", 1);
    scene.run(scene.folder / "two.qstats", 2);
    scene.run(scene.folder / "eight.qstats", 8);
    CHECK(scene.bytes("one.qstats") == scene.bytes("two.qstats"));
    CHECK(scene.bytes("one.qstats") == scene.bytes("eight.qstats"));
    CHECK(scene.progress.last_done == 40);
    CHECK(scene.progress.last_total == 40);
}

TEST_CASE("three shards merge to the file of the whole run") {
    Scene scene(20);
    std::filesystem::remove(scene.files[4]);
    scene.run(scene.folder / "whole.qstats", 2);
    std::vector<std::filesystem::path> shards;
    for (std::uint32_t shard = 1; shard <= 3; ++shard) {
        Selection selection;
        selection.shard = shard;
        selection.shards = 3;
        shards.push_back(scene.folder / ("shard" + std::to_string(shard) + ".qstats"));
        scene.run(shards.back(), 2, selection);
    }
    std::swap(shards[0], shards[2]);
    merge_statistics(shards, scene.folder / "merged.qstats");
    CHECK(scene.bytes("merged.qstats") == scene.bytes("whole.qstats"));
}

TEST_CASE("every float tensor is counted, inputs and constants included, in graph order") {
    Scene scene(3);
    scene.run(scene.folder / "out.qstats", 2);
    const StatisticsFile file(scene.folder / "out.qstats");
    const std::vector<TensorInfo> expected = {{"x", false}, {"w", true},     {"c", false},
                                              {"r", false}, {"shift", true}, {"folded", true},
                                              {"a", false}, {"p", false},    {"y", false}};
    CHECK(file.header().tensors == expected);
    CHECK(file.rows() == 3);
    CHECK(file.tensor(*file.find("x")).elements() == 3 * 108);
    CHECK(file.tensor(*file.find("w")).elements() == 108);
    CHECK(file.tensor(*file.find("r")).extremes->min >= 0);
    CHECK(file.header().model_hash == read_onnx_file(scene.folder / "model.onnx").hash);
}

TEST_CASE("a row holds its own sample's extremes") {
    Scene scene(5);
    scene.run(scene.folder / "out.qstats", 2);
    const StatisticsFile file(scene.folder / "out.qstats");
    for (std::size_t i = 0; i < 5; ++i) {
        const std::vector<double> values = numbers_of(read_npy(scene.files[i]).view());
        const SampleSummary entry = file.entry(i, 0);
        CHECK(entry.min == doctest::Approx(*std::min_element(values.begin(), values.end())));
        CHECK(entry.max == doctest::Approx(*std::max_element(values.begin(), values.end())));
        CHECK(file.row_number(i) == i);
    }
}

TEST_CASE("samples that cannot be read or do not fit are skipped, named, and keep their numbers") {
    Scene scene(6);
    std::filesystem::remove(scene.files[0]);
    write_npy(scene.files[3], random_tensor({1, 3, 5, 6}, 1).view());
    const CalibrationResult result = scene.run(scene.folder / "out.qstats", 2);
    CHECK(result.samples == 4);
    REQUIRE(result.skipped.size() == 2);
    CHECK(result.skipped[0].reason.starts_with(scene.files[0].string()));
    CHECK(result.skipped[1].reason.starts_with(scene.files[3].string()));
    const StatisticsFile file(scene.folder / "out.qstats");
    CHECK(file.skipped() == std::vector<std::uint64_t>{0, 3});
    CHECK(file.row_number(0) == 1);
    CHECK(file.row_number(2) == 4);
}

TEST_CASE("a sample whose size the model cannot take is skipped by the name of its file") {
    Scene scene(0);
    OnnxModel model;
    model.graph.input("x", {"n"}).output("y");
    model.graph.initializer("square", {2}, std::vector<std::int64_t>{2, 2});
    model.graph.node("Reshape", {"x", "square"}, {"y"});
    model.save(scene.folder / "model.onnx");
    for (const std::int64_t elements : {5, 4, 3}) {
        scene.files.push_back(scene.folder / (std::to_string(elements) + ".npy"));
        write_npy(scene.files.back(), random_tensor({elements}, 1).view());
    }
    const CalibrationResult result = scene.run(scene.folder / "out.qstats", 1);
    CHECK(result.samples == 1);
    REQUIRE(result.skipped.size() == 2);
    CHECK(result.skipped[0].reason.starts_with(scene.files[0].string() + ": Reshape"));
    CHECK(result.skipped[1].reason.starts_with(scene.files[2].string() + ": Reshape"));
}

TEST_CASE("under strict the first unreadable sample ends the run and leaves no file") {
    Scene scene(6);
    std::filesystem::remove(scene.files[2]);
    scene.options.strict = true;
    const std::string message = message_of<Error>([&] { scene.run(scene.folder / "out.qstats", 2); });
    CHECK(message.starts_with(scene.files[2].string()));
    CHECK_FALSE(std::filesystem::exists(scene.folder / "out.qstats"));
    CHECK_FALSE(std::filesystem::exists(scene.folder / "out.qstats.part"));
}

TEST_CASE("a run without any usable sample says why") {
    Scene scene(2);
    for (const auto& file : scene.files) std::filesystem::remove(file);
    const std::string message = message_of<Error>([&] { scene.run(scene.folder / "out.qstats", 1); });
    CHECK(message.starts_with("none of the 2 samples can be used:"));
    CHECK(message.find(scene.files[1].string()) != std::string::npos);
    Scene none(0);
    CHECK(
        message_of<Error>([&] { none.run(none.folder / "out.qstats", 1); }).starts_with("no samples to run"));
}

TEST_CASE("fewer workers run where memory is short, and the run says so") {
    Scene scene(4);
    scene.options.memory = 40000;
    const CalibrationResult result = scene.run(scene.folder / "out.qstats", 64);
    CHECK(result.jobs < 64);
    CHECK(result.jobs >= 1);
    REQUIRE(scene.remarks.all().size() == 1);
    CHECK(scene.remarks.all()[0].find("instead of 64 workers") != std::string::npos);
}

TEST_CASE("an interrupted run leaves no file") {
    Scene scene(4);
    const std::atomic<bool> interrupted = true;
    scene.options.interrupted = &interrupted;
    CHECK_THROWS_AS(scene.run(scene.folder / "out.qstats", 2), Interrupted);
    CHECK_FALSE(std::filesystem::exists(scene.folder / "out.qstats"));
    CHECK_FALSE(std::filesystem::exists(scene.folder / "out.qstats.part"));
}

TEST_CASE("double and half inputs are fed as float32") {
    Graph graph;
    for (const DataType type : {DataType::float64, DataType::float16, DataType::int64}) {
        graph.values.push_back(
            {"v" + std::to_string(graph.values.size()), type, std::vector<Dimension>{{2, ""}, {}}, {}, {}});
        graph.inputs.push_back(static_cast<ValueId>(graph.values.size() - 1));
    }
    const std::vector<InputSpec> specs = input_specs(graph);
    CHECK(specs[0].type == DataType::float32);
    CHECK(specs[1].type == DataType::float32);
    CHECK(specs[2].type == DataType::int64);
    CHECK(to_string(specs[0].shape) == "[2,?]");
}
