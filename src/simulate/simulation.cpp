#include "simulate/simulation.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "simulate/chain_layers.h"
#include "simulate/element_kernels.h"
#include "simulate/isolated.h"

namespace qcalib {

namespace {

constexpr std::uint64_t program_memory = std::uint64_t{1} << 30;  // that programs kept side by side may take
constexpr std::size_t most_programs = 48;

std::vector<bool> marks(const SimulatedModel& model, bool value = false) {
    return std::vector<bool>(model.graph()->values.size(), value);
}

// The values that some variant quantizes.
std::vector<bool> quantized_by(const SimulatedModel& model, std::span<const Variant> variants) {
    std::vector<bool> quantized = marks(model);
    for (const Variant& variant : variants) {
        for (ValueId value = 0; value < quantized.size(); ++value) {
            if (variant.quantization.quantizes(value)) quantized[value] = true;
        }
    }
    return quantized;
}

std::uint64_t constant_bytes(const SimulatedModel& model) {
    std::uint64_t bytes = 0;
    for (const Value& value : model.graph()->values) {
        if (value.initializer) bytes += value.initializer->descriptor().bytes();
    }
    return std::max<std::uint64_t>(bytes, 1);
}

std::size_t programs_at_once(const SimulatedModel& model) {
    return std::clamp<std::size_t>(program_memory / constant_bytes(model), 1, most_programs);
}

// A range of values as runs show them.
class RangeObserver : public ValueObserver {
  public:
    explicit RangeObserver(MeasuredRanges& ranges) : ranges_(ranges) {}
    void see(ValueId value, TensorView view, const QuantizationSums* /*sums*/) override {
        if (view.descriptor->type != DataType::float32) return;
        for (const float element : view.as<float>()) {
            const auto number = static_cast<double>(element);
            if (!(number > -greatest_compared && number < greatest_compared)) continue;
            const auto [place, fresh] = ranges_.try_emplace(value, Range{number, number});
            place->second = {std::min(place->second.min, number), std::max(place->second.max, number)};
        }
    }

  private:
    MeasuredRanges& ranges_;
};

class MeasureTask : public SampleTask {
  public:
    explicit MeasureTask(Simulator& simulator) : simulator_(simulator) {}

    void prepare(const SampleStep& step) override { simulator_.program(nullptr).plan(step.inputs); }
    std::uint64_t worker_bytes(const SampleStep& step) override {
        const auto plan = simulator_.program(nullptr).plan(step.inputs);
        return plan->arena_bytes() + plan->scratch_bytes();
    }
    std::unique_ptr<StepResult> run(SampleStep& step) override {
        auto result = std::make_unique<Result>();
        RangeObserver observer(result->ranges);
        simulator_.run(nullptr, &observer, step.inputs, step.number, frames_.local());
        return result;
    }
    void take(std::unique_ptr<StepResult> result) override {
        for (const auto& [value, range] : static_cast<const Result&>(*result).ranges) {
            const auto [place, fresh] = ranges_.try_emplace(value, range);
            place->second = {std::min(place->second.min, range.min), std::max(place->second.max, range.max)};
        }
    }

    MeasuredRanges ranges() { return std::move(ranges_); }

  private:
    struct Result : StepResult {
        MeasuredRanges ranges;
    };
    Simulator& simulator_;
    tbb::enumerable_thread_specific<Frame> frames_;
    MeasuredRanges ranges_;
};

std::string_view name_of(SimulatedEncoding::Kind kind) {
    switch (kind) {
        case SimulatedEncoding::Kind::activation:
            return "activation";
        case SimulatedEncoding::Kind::weight:
            return "weight";
        case SimulatedEncoding::Kind::constant:
            return "constant";
    }
    return "";
}

// Puts what variants and constants say of each tensor into rows.
class RowMaker {
  public:
    RowMaker(const SimulationRun& run, const SimulatedEncodings& encodings, const Quantization& quantization,
             const VariantErrors& errors)
        : graph_(*run.model.graph()), quantization_(quantization), errors_(errors) {
        for (const SimulatedEncoding& one : encodings) encoding_of_.emplace(one.value, &one);
        for (const auto& [value, constant] : quantization.constants) constants_.push_back(value);
        std::ranges::sort(constants_);
        for (const ValueId value : run.model.order()) {
            add_constants_of(graph_.values[value].producer);
            if (run.model.is_activation(value)) add_activation(value);
        }
    }
    std::vector<SimulatedTensor> rows() { return std::move(rows_); }

  private:
    // What the node reads that was quantized before.
    void add_constants_of(NodeIndex producer) {
        if (producer == no_node) return;
        for (const ValueId input : graph_.nodes[producer].inputs) {
            const auto found = quantization_.constants.find(input);
            if (found == quantization_.constants.end() || std::erase(constants_, input) == 0) continue;
            SimulatedTensor row = row_of(input);
            if (row.kind.empty()) row.kind = "bias";
            row.step = found->second.step;
            row.error = found->second.error;
            row.quantized = found->second.sums;
            rows_.push_back(std::move(row));
        }
    }

    void add_activation(ValueId value) {
        const ValueErrors& errors = errors_.values[value];
        const auto output = std::find(graph_.outputs.begin(), graph_.outputs.end(), value);
        const bool is_output = output != graph_.outputs.end();
        if (errors.error.elements + errors.error.left_out + errors.misfits == 0) return;
        SimulatedTensor row = row_of(value);
        if (row.kind.empty()) row.kind = "activation";
        const TensorQuantizer* quantizer = quantization_.activations[value].get();
        row.step = quantizer == nullptr ? 0 : quantizer->step();
        if (quantization_.chain != nullptr) add_codes(row, value);
        row.error = errors.error;
        row.quantized = errors.quantized;
        row.misfits = errors.misfits;
        row.output = is_output;
        if (is_output) {
            const TopAgreement& top = errors_.tops[static_cast<std::size_t>(output - graph_.outputs.begin())];
            if (top.rows > 0) row.top = top;
        }
        if (!errors_.dumps.empty() && errors_.dumps[value].elements > 0) row.dump = errors_.dumps[value];
        rows_.push_back(std::move(row));
    }

    // What the chain made of the value, whatever its encoding says.
    void add_codes(SimulatedTensor& row, ValueId value) const {
        const auto found = quantization_.chain->tensors.find(value);
        row.bits = found == quantization_.chain->tensors.end() ? 0 : found->second.bits;
        if (row.bits == 0) return;
        row.chain = found->second;
        row.step = 1 / found->second.scale;
        if (row.origin.empty()) row.origin = "of the integer chain";
    }

    SimulatedTensor row_of(ValueId value) const {
        SimulatedTensor row;
        row.name = graph_.values[value].name;
        const auto found = encoding_of_.find(value);
        if (found == encoding_of_.end()) return row;
        row.kind = name_of(found->second->kind);
        row.origin = found->second->encoding.origin;
        row.bits = found->second->encoding.width();
        return row;
    }

    const Graph& graph_;
    const Quantization& quantization_;
    const VariantErrors& errors_;
    std::unordered_map<ValueId, const SimulatedEncoding*> encoding_of_;
    std::vector<ValueId> constants_;  // not yet in a row
    std::vector<SimulatedTensor> rows_;
};

bool fits_any(const std::vector<std::string>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return glob_match(pattern, name); });
}

}  // namespace

std::vector<double> steps_of(const SimulatedModel& model, const SimulatedEncodings& encodings,
                             const IntegerChain* chain) {
    std::vector<double> steps(model.graph()->values.size());
    if (chain != nullptr) {
        for (const auto& [value, tensor] : chain->tensors) steps[value] = 1 / tensor.scale;
        return steps;
    }
    for (const SimulatedEncoding& one : encodings) {
        const std::vector<Encoding>& grids = one.encoding.encodings;
        for (const Encoding& grid : grids) steps[one.value] += grid.scale / static_cast<double>(grids.size());
    }
    return steps;
}

MeasuredRanges measure_ranges(const SimulatedModel& model, const SampleReader& reader,
                              const SelectedSamples& samples, const SampleRunOptions& options,
                              Progress& progress, Remarks& remarks) {
    std::vector<bool> seen = marks(model);
    for (ValueId value = 0; value < seen.size(); ++value) seen[value] = model.is_activation(value);
    Simulator simulator(model, marks(model), std::move(seen));
    MeasureTask task(simulator);
    const SampleRunSummary summary = run_samples(reader, samples, options, task, progress, remarks);
    for (const std::string& skipped : summary.skipped) remarks.add("skipped: " + skipped);
    return task.ranges();
}

SimulationResult simulate(const SimulationRun& run, const DumpSettings& dumps) {
    const Graph& graph = *run.model.graph();
    SimulatedEncodings encodings;
    if (!dumps.float_only) encodings = resolve_encodings(run.model, run.given, run.switches, run.measured);
    std::vector<Variant> variants(1);
    SimulationSwitches switches = run.switches;
    if (dumps.float_only) switches.arithmetic = Arithmetic::fake;  // of nothing
    variants[0].quantization = make_quantization(run.model, encodings, switches, run.remarks);
    const IntegerChain* chain = variants[0].quantization.chain.get();
    VariantSettings settings;
    settings.compared = quantized_by(run.model, variants);
    if (dumps.all) {
        for (ValueId value = 0; value < settings.compared.size(); ++value) {
            if (run.model.is_activation(value)) settings.compared[value] = true;
        }
    }
    settings.against = dumps.against;
    settings.steps = steps_of(run.model, encodings, chain);
    settings.carries = run.carries;
    settings.dump_all = dumps.all;
    std::optional<DumpWriter> simulated;
    std::optional<DumpWriter> floats;
    if (dumps.folder) settings.dump = &simulated.emplace(*dumps.folder, graph);
    if (dumps.float_folder) settings.dump_float = &floats.emplace(*dumps.float_folder, graph);
    SimulationResult result;
    const std::vector<VariantErrors> errors = run_variants(run, variants, settings, &result.run);
    result.tensors = RowMaker(run, encodings, variants[0].quantization, errors[0]).rows();
    result.cost = errors[0].cost(graph);
    if (chain != nullptr) result.notes = chain->notes;
    const std::size_t clips = run.model.target().simulation.has_chain ? range_clips(run.model) : 0;
    if (clips > 0) {
        result.notes.push_back(fmt::format(
            "a Clip-only model: {} Clip{} carr{} ranges and nothing in it rounds, so that its outputs "
            "in a float runtime are not those of quantization-aware training",
            clips, clips == 1 ? "" : "s", clips == 1 ? "ies" : "y"));
    }
    for (const SimulatedTensor& tensor : result.tensors) {
        if (!result.first_parting && tensor.dump && tensor.dump->beyond > 0)
            result.first_parting = tensor.name;
    }
    return result;
}

std::vector<VariantErrors> run_variants(const SimulationRun& run, const std::vector<Variant>& variants,
                                        VariantSettings settings, SampleRunSummary* summary) {
    const Graph& graph = *run.model.graph();
    std::vector<bool> seen = settings.compared;
    for (const ValueId output : graph.outputs) seen[output] = true;
    if (settings.against != nullptr) {
        for (ValueId value = 0; value < seen.size(); ++value) {
            if (settings.against->values()[value]) seen[value] = true;
        }
    }
    Simulator simulator(run.model, quantized_by(run.model, variants), seen);
    const std::size_t references = settings.references.size();
    const std::size_t at_once = std::max<std::size_t>(references + 1, programs_at_once(run.model));
    std::vector<VariantErrors> errors(variants.size());
    for (std::size_t done = references; done < std::max<std::size_t>(variants.size(), references + 1);) {
        const std::size_t count = std::min(at_once - references, variants.size() - done);
        std::vector<Variant> batch(variants.begin(),
                                   variants.begin() + static_cast<std::ptrdiff_t>(references));
        const auto first = variants.begin() + static_cast<std::ptrdiff_t>(done);
        batch.insert(batch.end(), first, first + static_cast<std::ptrdiff_t>(count));
        VariantTask task(simulator, batch, settings);
        const SampleRunSummary ran =
            run_samples(run.reader, run.samples, run.options, task, run.progress, run.remarks);
        for (std::size_t i = 0; i < batch.size(); ++i)
            errors[i < references ? i : done + i - references] = task.errors()[i];
        simulator.forget_programs();
        if (summary != nullptr) *summary = ran;
        done += std::max<std::size_t>(count, 1);
    }
    return errors;
}

std::vector<IsolatedCost> isolated_costs(const SimulationRun& run, const std::vector<std::string>& patterns,
                                         bool& whole) {
    const SimulatedEncodings all = resolve_encodings(run.model, run.given, run.switches, run.measured);
    const Graph& graph = *run.model.graph();
    std::vector<IsolatedCost> costs;
    std::vector<std::string> names;
    std::vector<bool> quantized = marks(run.model);
    for (const SimulatedEncoding& one : all) {
        names.push_back(graph.values[one.value].name);
        if (one.kind == SimulatedEncoding::Kind::activation) quantized[one.value] = true;
        if (fits_any(patterns, names.back())) costs.push_back({names.back(), one, 0});
    }
    for (const std::string& pattern : patterns) {
        if (!std::any_of(names.begin(), names.end(),
                         [&](const auto& name) { return glob_match(pattern, name); }))
            fail("--isolated {}: fits no encoded tensor{}", printable(pattern), did_you_mean(pattern, names));
    }
    Simulator simulator(run.model, quantized, marks(run.model, true));
    const std::size_t at_once = programs_at_once(run.model);
    for (std::size_t done = 0; done < costs.size(); done += at_once) {
        const std::size_t end = std::min(done + at_once, costs.size());
        std::vector<ValueId> values;
        std::vector<Quantization> quantizations;
        for (std::size_t i = done; i < end; ++i) {
            values.push_back(costs[i].encoding.value);
            quantizations.push_back(make_quantization(run.model, {costs[i].encoding}, run.switches.rounding,
                                                      BiasForm::floating, run.remarks));
        }
        IsolatedTask task(simulator, values, quantizations, run.carries);
        run_samples(run.reader, run.samples, run.options, task, run.progress, run.remarks);
        for (std::size_t i = done; i < end; ++i) costs[i].cost = output_cost(task.errors()[i - done].outputs);
        whole = task.runs_whole();
        simulator.forget_programs();
    }
    std::ranges::stable_sort(costs, [](const auto& a, const auto& b) { return a.cost > b.cost; });
    return costs;
}

}  // namespace qcalib
