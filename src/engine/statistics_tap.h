#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tbb/enumerable_thread_specific.h>

#include "runtime/plan.h"
#include "runtime/program.h"
#include "runtime/tap.h"
#include "statistics/counter.h"
#include "statistics/statistics_file.h"

namespace qcalib {

// The float tensors of a model whose statistics are kept, in graph order: graph inputs first, then node by
// node the constants it reads first and the values it makes.
struct CountedTensors {
    std::vector<TensorInfo> infos;
    std::vector<ValueId> values;  // parallel to infos
};
CountedTensors counted_tensors(const Program& program, const Plan& plan);

// Counts every float value of a run into a StatisticsSet and keeps the row of the sample in work, one a
// thread.
class StatisticsTap : public Tap {
  public:
    explicit StatisticsTap(CounterSettings settings);

    // To be called once, before the first sample: what to count and where.
    void start(const CountedTensors& tensors, std::size_t graph_values, StatisticsSet& set);

    // Around the run of one sample, on its thread.
    void begin_sample();
    Row end_sample(std::uint64_t number, double& seconds);

    TapRight right(const Graph& graph, ValueId value) const override;
    void on_value(ValueId value, std::uint64_t sample, MutableTensorView view) override;

  private:
    struct Slot {
        std::size_t tensor = 0;  // index into the header's tensors
        std::size_t entry = 0;   // index into a row's entries
    };
    struct Worker {
        explicit Worker(CounterSettings settings) : counter(settings) {}
        Counter counter;
        std::vector<SampleSummary> entries;
        double seconds = 0;
    };

    std::vector<std::optional<Slot>> slots_;  // by value
    std::size_t row_entries_ = 0;
    StatisticsSet* set_ = nullptr;
    tbb::enumerable_thread_specific<Worker> workers_;
};

}  // namespace qcalib
