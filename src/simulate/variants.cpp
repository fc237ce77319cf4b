#include "simulate/variants.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simulate/element_kernels.h"
#include "simulate/grid_walk.h"

namespace qcalib {

namespace {

constexpr double part_of_greatest = 1e-4;  // the step of a value that has none
constexpr double tolerance = 1e-3;         // of a step, for numbers printed with few digits

void mark_outputs(const Graph& graph, std::vector<bool>& marks) {
    for (const ValueId output : graph.outputs) marks[output] = true;
}

double greatest_magnitude(std::span<const float> elements) {
    double greatest = 0;
    for (const float element : elements) {
        const double magnitude = std::abs(static_cast<double>(element));
        if (magnitude < greatest_compared) greatest = std::max(greatest, magnitude);
    }
    return greatest;
}

DumpErrors compare_dump(TensorView dumped, TensorView made, double step) {
    DumpErrors errors;
    Tensor moved;
    if (dumped.descriptor->order != made.descriptor->order) {
        moved = Tensor(*dumped.descriptor);
        copy_to_order(made, moved.mutable_view());
        made = moved.view();
    }
    const std::span<const float> expected = dumped.as<float>();
    const std::span<const float> found = made.as<float>();
    if (step <= 0) step = std::max(1e-30, part_of_greatest * greatest_magnitude(expected));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double x = static_cast<double>(expected[i]);
        const double y = static_cast<double>(found[i]);
        if (!(std::abs(x) < greatest_compared) || !(std::abs(y) < greatest_compared)) continue;
        const double steps = std::abs(x - y) / step;
        ++errors.elements;
        errors.different += steps >= 0.5 ? 1 : 0;
        errors.beyond += steps > 1 + tolerance ? 1 : 0;
        errors.squared_steps += steps * steps;
        errors.greatest_steps = std::max(errors.greatest_steps, steps);
    }
    return errors;
}

template <typename T>
void add_each(std::vector<T>& sums, const std::vector<T>& next) {
    if (sums.empty()) sums.resize(next.size());
    for (std::size_t i = 0; i < next.size(); ++i) sums[i].add(next[i]);
}

}  // namespace

void DumpErrors::add(const DumpErrors& next) {
    elements += next.elements;
    different += next.different;
    beyond += next.beyond;
    squared_steps += next.squared_steps;
    greatest_steps = std::max(greatest_steps, next.greatest_steps);
}

void VariantErrors::add(const VariantErrors& next) {
    if (values.empty()) values.resize(next.values.size());
    for (std::size_t i = 0; i < next.values.size(); ++i) {
        values[i].error.add(next.values[i].error);
        values[i].quantized.add(next.values[i].quantized);
        values[i].misfits += next.values[i].misfits;
    }
    add_each(tops, next.tops);
    add_each(dumps, next.dumps);
    add_each(from_references, next.from_references);
}

double output_cost(std::span<const ErrorSums> outputs) {
    double cost = 0;
    std::size_t count = 0;
    for (const ErrorSums& output : outputs) {
        if (output.empty()) continue;
        ++count;
        cost += output.signal == 0 ? (output.squared_error > 0 ? 1 : 0) : output.relative_error();
    }
    return count == 0 ? 0 : cost / static_cast<double>(count);
}

double cost_decibels(double cost) {
    return cost > 0 ? -10 * std::log10(cost) : std::numeric_limits<double>::infinity();
}

double VariantErrors::cost(const Graph& graph) const {
    std::vector<ErrorSums> outputs;
    for (const ValueId output : graph.outputs) outputs.push_back(values[output].error);
    return output_cost(outputs);
}

VariantTask::VariantTask(Simulator& simulator, const std::vector<Variant>& variants,
                         const VariantSettings& settings)
    : simulator_(simulator),
      variants_(variants),
      settings_(settings),
      kept_(settings.compared),
      watched_(settings.compared.size()),
      errors_(variants.size()) {
    const Graph& graph = *simulator.model().graph();
    mark_outputs(graph, kept_);
    mark_outputs(graph, watched_);
    if (settings.against != nullptr) {
        for (ValueId value = 0; value < watched_.size(); ++value) {
            if (settings.against->values()[value]) watched_[value] = true;
        }
    }
}

VariantTask::Worker& VariantTask::worker() {
    std::unique_ptr<Worker>& worker = workers_.local();
    if (worker == nullptr) {
        worker =
            std::make_unique<Worker>(simulator_.model().graph()->values.size(), std::span(settings_.carries));
    }
    return *worker;
}

void VariantTask::prepare(const SampleStep& step) {
    simulator_.program(nullptr).plan(step.inputs);
}

std::uint64_t VariantTask::worker_bytes(const SampleStep& step) {
    const std::shared_ptr<const Plan> plan = simulator_.program(nullptr).plan(step.inputs);
    std::uint64_t variant_bytes = plan->arena_bytes() + plan->scratch_bytes();
    for (const Variant& variant : variants_) {
        if (variant.quantization.chain == nullptr) continue;
        const std::shared_ptr<const Plan> chain = simulator_.program(&variant.quantization).plan(step.inputs);
        variant_bytes = std::max<std::uint64_t>(variant_bytes, chain->arena_bytes() + chain->scratch_bytes());
    }
    std::uint64_t bytes = plan->arena_bytes() + plan->scratch_bytes() + variant_bytes;
    for (ValueId value = 0; value < kept_.size(); ++value) {
        const TensorDescriptor* descriptor = plan->descriptor(value);
        if (descriptor == nullptr) continue;
        bytes += (kept_[value] ? descriptor->bytes() : 0) + (watched_[value] ? descriptor->bytes() : 0);
    }
    return bytes;
}

std::unique_ptr<StepResult> VariantTask::run(SampleStep& step) {
    Worker& mine = worker();
    run_float(mine, step);
    auto result = std::make_unique<Result>();
    mine.outputs.assign(settings_.references.size(), {});
    for (std::size_t i = 0; i < variants_.size(); ++i) result->variants.push_back(run_variant(mine, step, i));
    return result;
}

void VariantTask::run_float(Worker& worker, const SampleStep& step) {
    std::vector<Tensor> inputs = step.inputs;
    worker.carried.feed(0, step, inputs);
    worker.reference.begin(&kept_);
    simulator_.run(nullptr, &worker.reference, inputs, step.number, worker.float_frame);
    worker.carried.keep(0, worker.reference, simulator_);
    if (settings_.dump_float == nullptr) return;
    const Graph& graph = *simulator_.model().graph();
    std::vector<bool> wanted(kept_.size(), settings_.dump_all);
    mark_outputs(graph, wanted);
    for (ValueId value = 0; value < wanted.size(); ++value) {
        const std::span<const Tensor> made = worker.reference.of(value);
        if (wanted[value] && !made.empty()) settings_.dump_float->write(step, value, made.back().view());
    }
}

// Writes what it sees, quantized, as far as it is wanted.
class DumpingObserver : public ValueObserver {
  public:
    DumpingObserver(const DumpWriter* writer, const SampleStep& step, bool all, const Graph& graph,
                    ValueObserver& next)
        : writer_(writer), step_(step), wanted_(graph.values.size(), all), next_(next) {
        mark_outputs(graph, wanted_);
    }
    void see(ValueId value, TensorView view, const QuantizationSums* sums) override {
        if (writer_ != nullptr && wanted_[value] && view.descriptor->type == DataType::float32)
            writer_->write(step_, value, view);
        next_.see(value, view, sums);
    }

  private:
    const DumpWriter* writer_;
    const SampleStep& step_;
    std::vector<bool> wanted_;
    ValueObserver& next_;
};

VariantErrors VariantTask::run_variant(Worker& worker, const SampleStep& step, std::size_t index) {
    const Graph& graph = *simulator_.model().graph();
    VariantErrors errors;
    errors.values.resize(kept_.size());
    std::vector<Tensor> inputs = step.inputs;
    worker.carried.feed(index + 1, step, inputs);
    worker.capture.begin(&watched_);
    Comparer comparer(worker.reference, errors.values, &worker.capture);
    DumpingObserver dumping(index == 0 ? settings_.dump : nullptr, step, settings_.dump_all, graph, comparer);
    simulator_.run(&variants_[index].quantization, &dumping, inputs, step.number, worker.frame);
    worker.carried.keep(index + 1, worker.capture, simulator_);
    for (const ValueId output : graph.outputs) {
        const std::span<const Tensor> before = worker.reference.of(output);
        const std::span<const Tensor> after = worker.capture.of(output);
        const bool both = !before.empty() && !after.empty() && before.back().shape() == after.back().shape();
        errors.tops.push_back(both ? compare_tops(before.back().view(), after.back().view())
                                   : TopAgreement{});
    }
    if (settings_.against != nullptr) compare_dumps(worker, step, errors);
    compare_outputs(worker, index, errors);
    return errors;
}

void VariantTask::compare_dumps(const Worker& worker, const SampleStep& step, VariantErrors& errors) const {
    errors.dumps.resize(watched_.size());
    for (ValueId value = 0; value < watched_.size(); ++value) {
        if (!settings_.against->values()[value]) continue;
        const std::span<const Tensor> made = worker.capture.of(value);
        if (made.empty() || made.back().type() != DataType::float32) continue;
        const std::optional<Tensor> dumped = settings_.against->read(step.number, value, made.back().view());
        if (dumped) {
            errors.dumps[value] = compare_dump(dumped->view(), made.back().view(), settings_.steps[value]);
        }
    }
}

void VariantTask::compare_outputs(Worker& worker, std::size_t index, VariantErrors& errors) const {
    const Graph& graph = *simulator_.model().graph();
    errors.from_references.resize(settings_.references.size() * graph.outputs.size());
    for (std::size_t k = 0; k < settings_.references.size(); ++k) {
        std::vector<Tensor>& kept = worker.outputs[k];
        const bool is_reference = settings_.references[k] == index;
        for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
            const std::span<const Tensor> made = worker.capture.of(graph.outputs[i]);
            if (is_reference) {
                kept.emplace_back();
                if (!made.empty()) kept.back() = copy_of(made.back());
            } else if (i < kept.size() && !made.empty() && kept[i].shape() == made.back().shape() &&
                       made.back().type() == DataType::float32) {
                errors.from_references[k * graph.outputs.size() + i].add(
                    compare(kept[i].view(), made.back().view()));
            }
        }
    }
}

void VariantTask::take(std::unique_ptr<StepResult> result) {
    const auto& one = static_cast<const Result&>(*result);
    for (std::size_t i = 0; i < errors_.size(); ++i) errors_[i].add(one.variants[i]);
}

}  // namespace qcalib
