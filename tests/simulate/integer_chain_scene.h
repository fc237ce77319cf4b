#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/onnx_file.h"
#include "runtime/frame.h"
#include "simulate/integer_chain.h"
#include "simulate/simulator.h"
#include "support/onnx_builder.h"
#include "support/operator_harness.h"
#include "support/temporary_folder.h"

namespace qcalib::test {

// TIDL's grid: a range up to `limit` on so many bits, with or without a sign.
inline Encoding chain_grid(double limit, bool is_signed = false, int bits = 8) {
    Encoding grid;
    grid.bits = bits;
    grid.symmetric = true;
    const double half = std::ldexp(1.0, bits - 1);
    grid.scale = limit / (is_signed ? half : 2 * half);
    grid.offset = is_signed ? -static_cast<std::int64_t>(half) : 0;
    grid.min = static_cast<double>(grid.offset) * grid.scale;
    grid.max = grid.min + grid.scale * (2 * half - 1);
    return grid;
}

// A small model run in the integer chain, sample by sample.
class ChainScene {
  public:
    explicit ChainScene(const OnnxModel& file, const std::string& target = "tidl") {
        file.save(folder_ / "model.onnx");
        model_ = read_onnx_file(folder_ / "model.onnx");
        simulated_.emplace(model_.graph, load_target(target), ProgramOptions());
        switches = simulated_->target().simulation.switches;
    }

    void encode(const std::string& name, const Encoding& grid) {
        given_.by_value.insert_or_assign(value(name), TensorEncoding{name, {grid}, {}, "test"});
    }

    ValueId value(const std::string& name) const { return model_.graph->find(name); }
    const SimulatedModel& simulated() const { return *simulated_; }

    SimulatedEncodings encodings() const { return resolve_encodings(*simulated_, given_, switches, {}); }
    Quantization quantization() const {
        Remarks remarks;
        return make_quantization(*simulated_, encodings(), switches, remarks);
    }
    IntegerChain chain() const { return make_integer_chain(*simulated_, encodings(), switches); }
    ChainTensor codes(const std::string& name) const { return chain().tensors.at(value(name)); }

    // What a run makes of all float tensors, row-major.
    std::map<std::string, std::vector<float>> run(const std::vector<Tensor>& inputs) const {
        const std::size_t count = model_.graph->values.size();
        std::vector<bool> all(count, true);
        Simulator simulator(*simulated_, all, all);
        Capture capture(count);
        capture.begin(nullptr);
        Frame frame;
        const Quantization made = quantization();
        simulator.run(&made, &capture, inputs, 0, frame);
        std::map<std::string, std::vector<float>> values;
        for (ValueId id = 0; id < count; ++id) {
            if (capture.of(id).empty() || capture.of(id).back().type() != DataType::float32) continue;
            const Tensor& seen = capture.of(id).back();
            Tensor plain(TensorDescriptor{seen.type(), seen.shape(), MemoryOrder::row_major});
            copy_to_order(seen.view(), plain.mutable_view());
            const auto elements = plain.view().as<float>();
            values.emplace(model_.graph->values[id].name,
                           std::vector<float>(elements.begin(), elements.end()));
        }
        return values;
    }

    // The one output for one row of numbers of the input's shape [1, 1, 1, n] or the like.
    std::vector<float> output(const Shape& shape, const std::vector<float>& numbers) const {
        const std::string& name = model_.graph->values[model_.graph->outputs[0]].name;
        return run({Tensor::of<float>(shape, std::span<const float>(numbers))}).at(name);
    }

    SimulationSwitches switches;

  private:
    TemporaryFolder folder_;
    Model model_;
    std::optional<SimulatedModel> simulated_;
    GivenEncodings given_;
};

}  // namespace qcalib::test
