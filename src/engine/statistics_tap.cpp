#include "engine/statistics_tap.h"

#include <chrono>

namespace qcalib {

namespace {

using Clock = std::chrono::steady_clock;

class TensorCollector {
  public:
    TensorCollector(const Program& program, const Plan& plan) : program_(program), plan_(plan) {
        seen_.assign(program.graph().values.size(), false);
    }

    void add(ValueId value) {
        if (value == no_value || seen_[value]) return;
        seen_[value] = true;
        const Tensor* constant = program_.constant(value);
        const TensorDescriptor* descriptor =
            constant != nullptr ? &constant->descriptor() : plan_.descriptor(value);
        if (descriptor == nullptr || descriptor->type != DataType::float32) return;
        tensors_.infos.push_back({program_.graph().values[value].name, constant != nullptr});
        tensors_.values.push_back(value);
    }

    CountedTensors take() { return std::move(tensors_); }

  private:
    const Program& program_;
    const Plan& plan_;
    std::vector<bool> seen_;
    CountedTensors tensors_;
};

}  // namespace

CountedTensors counted_tensors(const Program& program, const Plan& plan) {
    TensorCollector collector(program, plan);
    for (const ValueId input : program.graph().inputs) collector.add(input);
    for (const Node& node : program.graph().nodes) {
        for (const ValueId input : node.inputs) collector.add(input);
        for (const ValueId output : node.outputs) collector.add(output);
    }
    return collector.take();
}

StatisticsTap::StatisticsTap(CounterSettings settings) : workers_([settings] { return Worker(settings); }) {}

void StatisticsTap::start(const CountedTensors& tensors, std::size_t graph_values, StatisticsSet& set) {
    slots_.assign(graph_values, std::nullopt);
    row_entries_ = 0;
    for (std::size_t i = 0; i < tensors.infos.size(); ++i) {
        if (!tensors.infos[i].constant) slots_[tensors.values[i]] = Slot{i, row_entries_++};
    }
    set_ = &set;
}

void StatisticsTap::begin_sample() {
    Worker& worker = workers_.local();
    worker.entries.assign(row_entries_, {});
    worker.seconds = 0;
}

Row StatisticsTap::end_sample(std::uint64_t number, double& seconds) {
    Worker& worker = workers_.local();
    seconds = worker.seconds;
    return {number, std::move(worker.entries)};
}

TapRight StatisticsTap::right(const Graph& graph, ValueId value) const {
    const DataType declared = graph.values[value].declared_type;
    return declared == DataType::undefined || is_floating(declared) ? TapRight::read : TapRight::ignore;
}

void StatisticsTap::on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) {
    if (!slots_[value]) return;
    const Clock::time_point start = Clock::now();
    Worker& worker = workers_.local();
    const TensorStatistics& counted = worker.counter.count(view.as<float>());
    worker.entries[slots_[value]->entry] = summarize(counted);
    set_->merge(slots_[value]->tensor, counted);
    worker.seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace qcalib
