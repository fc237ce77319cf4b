#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model_inputs.h"
#include "graph/onnx_file.h"
#include "simulate/bits_search.h"
#include "simulate/diagnosis.h"
#include "simulate/simulation.h"
#include "support/onnx_builder.h"
#include "support/operator_harness.h"
#include "support/temporary_folder.h"
#include "tensor/npy.h"

namespace qcalib::test {

class NoProgress : public Progress {
  public:
    void advance(std::size_t /*done*/, std::size_t /*total*/, std::string_view /*current*/) override {}
};

// A small classifier with a residual and biases, samples for it, and encodings: the extremes of its
// activations and of its weights.
class SimulationScene {
  public:
    explicit SimulationScene(std::size_t samples = 6) {
        OnnxModel file;
        file.graph.input("x", {1, 3, 8, 8}).output("y");
        file.graph.initializer("w1", random_tensor({8, 3, 3, 3}, 1)).initializer("b1", random_tensor({8}, 2));
        file.graph.initializer("w2", random_tensor({8, 8, 3, 3}, 3, -2, 1))
            .initializer("b2", random_tensor({8}, 4));
        file.graph.initializer("w3", random_tensor({8, 10}, 5)).initializer("b3", random_tensor({10}, 6));
        const OnnxInts pads{1, 1, 1, 1};
        file.graph.node("Conv", {"x", "w1", "b1"}, {"c1"}, {{"pads", pads}}).node("Relu", {"c1"}, {"r1"});
        file.graph.node("Conv", {"r1", "w2", "b2"}, {"c2"}, {{"pads", pads}})
            .node("Add", {"c2", "r1"}, {"a"});
        file.graph.node("Relu", {"a"}, {"r2"}).node("GlobalAveragePool", {"r2"}, {"p"});
        file.graph.node("Flatten", {"p"}, {"f"}).node("Gemm", {"f", "w3", "b3"}, {"y"});
        file.save(folder / "model.onnx");
        model = read_onnx_file(folder / "model.onnx");
        std::vector<ListEntry> entries;
        for (std::size_t i = 0; i < samples; ++i) {
            const auto path = folder / ("s" + std::to_string(i) + ".npy");
            write_npy(path, random_tensor({1, 3, 8, 8}, 100 + i, -1, 1.5).view());
            entries.push_back({i + 1, {path}});
        }
        selected = select_samples(std::move(entries), {});
        reader.emplace(input_specs(*model.graph), Preprocessing());
        simulated.emplace(model.graph, load_target("snpe"), ProgramOptions());
        encode();
    }

    void encode() {
        const MeasuredRanges ranges = measure_ranges(*simulated, *reader, selected, {}, progress, remarks);
        const GivenEncodings none = match_encodings(*simulated, {}, remarks);
        for (const SimulatedEncoding& one : resolve_encodings(*simulated, none, {}, ranges))
            given.by_value.emplace(one.value, one.encoding);
    }

    ValueId value(const std::string& name) const { return model.graph->find(name); }

    SimulationRun run(unsigned jobs = 1) {
        SampleRunOptions options;
        options.jobs = jobs;
        return {*simulated, given, measured, switches, *reader, selected, options, {}, progress, remarks};
    }

    // Dumps the graph's outputs, or all, simulated under these switches.
    std::filesystem::path plant(const SimulationSwitches& planted, bool all = false) {
        const auto place = folder / ("planted" + std::to_string(planted_runs_++));
        SimulationRun other = run();
        other.switches = planted;
        DumpSettings dumps;
        dumps.folder = place;
        dumps.all = all;
        simulate(other, dumps);
        return place;
    }

    DumpFolder dumps(const std::filesystem::path& place) {
        return DumpFolder(place, *model.graph, selected.samples.size(), remarks);
    }

    TemporaryFolder folder;
    Model model;
    SelectedSamples selected;
    NoProgress progress;
    Remarks remarks;
    std::optional<SampleReader> reader;
    std::optional<SimulatedModel> simulated;
    GivenEncodings given;
    MeasuredRanges measured;
    SimulationSwitches switches;

  private:
    int planted_runs_ = 0;
};

inline const SimulatedTensor& tensor_of(const SimulationResult& result, const std::string& name) {
    for (const SimulatedTensor& tensor : result.tensors) {
        if (tensor.name == name) return tensor;
    }
    throw Error("no tensor " + name);
}

}  // namespace qcalib::test
