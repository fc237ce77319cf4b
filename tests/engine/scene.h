#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "engine/calibration.h"
#include "engine/model_inputs.h"
#include "graph/onnx_file.h"
#include "support/onnx_builder.h"
#include "support/operator_harness.h"
#include "support/temporary_folder.h"
#include "tensor/npy.h"

namespace qcalib::test {

class SilentProgress : public Progress {
  public:
    void advance(std::size_t done, std::size_t total, std::string_view current) override {
        ++calls;
        last_done = done;
        last_total = total;
        last_file = current;
    }
    std::size_t calls = 0;
    std::size_t last_done = 0;
    std::size_t last_total = 0;
    std::string last_file;
};

// A small network with a dynamic batch, and random samples for it in a temporary folder.
class Scene {
  public:
    explicit Scene(std::size_t samples) {
        OnnxModel model;
        model.graph.input("x", {"n", 3, 6, 6}).output("y");
        model.graph.initializer("w", random_tensor({4, 3, 3, 3}, 1));
        model.graph.initializer("shift", random_tensor({1, 4, 1, 1}, 2));
        model.graph.initializer("unused", {1}, std::vector<float>{7});
        model.graph.node("Conv", {"x", "w"}, {"c"}).node("Relu", {"c"}, {"r"});
        model.graph.node("Neg", {"shift"}, {"folded"}).node("Add", {"r", "folded"}, {"a"});
        model.graph.node("GlobalAveragePool", {"a"}, {"p"}).node("Flatten", {"p"}, {"y"});
        model.save(folder / "model.onnx");
        for (std::size_t i = 0; i < samples; ++i) {
            const Tensor sample = random_tensor({1, 3, 6, 6}, 100 + i, -1.0 - static_cast<double>(i), 2);
            files.push_back(folder / ("s" + std::to_string(i) + ".npy"));
            write_npy(files.back(), sample.view());
        }
    }

    SelectedSamples select(const Selection& selection = {}) const {
        std::vector<ListEntry> entries;
        for (std::size_t i = 0; i < files.size(); ++i) entries.push_back({i + 1, {files[i]}});
        return select_samples(entries, selection);
    }

    CalibrationResult run(const std::filesystem::path& output, unsigned jobs, const Selection& selection = {},
                          Progress* watcher = nullptr) {
        CalibrationOptions chosen = options;
        chosen.jobs = jobs;
        chosen.shard = selection.shard;
        chosen.shards = selection.shards;
        const Model model = read_onnx_file(folder / "model.onnx");
        const SampleReader reader(input_specs(*model.graph), {});
        return calibrate(model, reader, select(selection), chosen, output,
                         watcher != nullptr ? *watcher : progress, remarks);
    }

    std::string bytes(const std::string& name) const { return read_text_file(folder / name); }

    TemporaryFolder folder;
    std::vector<std::filesystem::path> files;
    CalibrationOptions options;
    SilentProgress progress;
    Remarks remarks;
};

}  // namespace qcalib::test
