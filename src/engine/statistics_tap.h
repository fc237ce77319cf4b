#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tbb/enumerable_thread_specific.h>

#include "engine/derivation.h"
#include "runtime/plan.h"
#include "runtime/program.h"
#include "runtime/tap.h"
#include "statistics/counter.h"
#include "statistics/statistics_file.h"

namespace qcalib {

// The float tensors of a model whose statistics are kept, in graph order: graph inputs first, then node by
// node the constants it reads first and the values it makes. Only those in `names`, where given.
struct CountedTensors {
    std::vector<TensorInfo> infos;
    std::vector<ValueId> values;  // parallel to infos
};
using TensorNames = std::optional<std::set<std::string, std::less<>>>;
CountedTensors counted_tensors(const Program& program, const Plan& plan, const TensorNames& names);

// How many elements were counted, and of how many the statistics were derived.
struct CountedElements {
    std::uint64_t counted = 0;
    std::uint64_t derived = 0;
};

// Counts every float value of a run, or derives its statistics from those of other values, into a
// StatisticsSet and keeps the row of the sample in work, one a thread. A value that is made several times in
// a sample (in a body) has all of them in its row's entry.
class StatisticsTap : public Tap {
  public:
    explicit StatisticsTap(CounterSettings settings, TensorNames names = {});
    ~StatisticsTap() override;

    // To be called once, before the first sample: what to count and where, and what of it to derive.
    void start(const CountedTensors& tensors, const Graph& graph, StatisticsSet& set,
               DerivationTable derivations);

    // Around the run of one sample, on its thread.
    void begin_sample();
    Row end_sample(std::uint64_t number, double& seconds);

    TapRight right(const Graph& graph, ValueId value) const override;
    void on_value(ValueId value, std::uint64_t sample, MutableTensorView view) override;

    // Of all samples that have ended.
    CountedElements elements() const;

  private:
    struct Slot {
        std::size_t tensor = 0;  // index into the header's tensors
        std::size_t entry = 0;   // index into a row's entries
        bool constant = false;
        bool repeated = false;  // a body makes it
    };
    class Worker;

    CounterSettings settings_;
    TensorNames names_;
    std::vector<std::optional<Slot>> slots_;  // by value
    std::size_t row_entries_ = 0;
    StatisticsSet* set_ = nullptr;
    DerivationTable derivations_;
    tbb::enumerable_thread_specific<std::unique_ptr<Worker>> workers_;
};

}  // namespace qcalib
