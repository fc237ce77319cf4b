#include "engine/statistics_tap.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace qcalib {

namespace {

using Clock = std::chrono::steady_clock;

class TensorCollector {
  public:
    TensorCollector(const Program& program, const Plan& plan, const TensorNames& names)
        : program_(program), plan_(plan), names_(names) {
        seen_.assign(program.graph().values.size(), false);
    }

    void add(ValueId value) {
        if (value == no_value || seen_[value]) return;
        seen_[value] = true;
        const Tensor* constant = program_.constant(value);
        const std::string& name = program_.graph().values[value].name;
        if (!is_float(value, constant) || (names_ && !names_->contains(name))) return;
        tensors_.infos.push_back({name, constant != nullptr});
        tensors_.values.push_back(value);
    }

    CountedTensors take() { return std::move(tensors_); }

  private:
    // A body's values, and those whose shapes depend on data, are not in the plan: they are what the graph
    // declares.
    bool is_float(ValueId value, const Tensor* constant) const {
        const TensorDescriptor* descriptor =
            constant != nullptr ? &constant->descriptor() : plan_.descriptor(value);
        if (descriptor != nullptr) return descriptor->type == DataType::float32;
        return is_floating(program_.graph().values[value].declared_type);
    }

    const Program& program_;
    const Plan& plan_;
    const TensorNames& names_;
    std::vector<bool> seen_;
    CountedTensors tensors_;
};

// True for each value that is a body's own: it may be made any number of times in a sample.
std::vector<bool> values_of_bodies(const Graph& graph) {
    std::vector<bool> inside(graph.values.size(), false);
    const auto mark = [&](const std::vector<ValueId>& values) {
        for (const ValueId value : values) {
            if (value != no_value) inside[value] = true;
        }
    };
    for (const Node& node : graph.nodes) {
        if (node.owner != no_node) mark(node.outputs);
        for (const Body& body : node.bodies) mark(body.inputs);
    }
    return inside;
}

}  // namespace

CountedTensors counted_tensors(const Program& program, const Plan& plan, const TensorNames& names) {
    TensorCollector collector(program, plan, names);
    for (const ValueId input : program.graph().inputs) collector.add(input);
    for (const Node& node : program.graph().nodes) {
        for (const Body& body : node.bodies) {
            for (const ValueId input : body.inputs) collector.add(input);
        }
        for (const ValueId input : node.inputs) collector.add(input);
        for (const ValueId output : node.outputs) collector.add(output);
    }
    return collector.take();
}

// What one thread keeps: its counter, the row in work, and the statistics of this sample's values that others
// will be derived from. These are used again from sample to sample.
class StatisticsTap::Worker {
  public:
    explicit Worker(const StatisticsTap& tap) : tap_(tap), counter_(tap.settings_) {
        kept_of_.assign(tap.slots_.size(), nullptr);
        repeated_.resize(tap.slots_.size());
    }

    void begin_sample() {
        entries_.assign(tap_.row_entries_, {});
        seconds_ = 0;
        std::fill(kept_of_.begin(), kept_of_.end(), nullptr);
        free_.clear();
        for (const auto& kept : all_) free_.push_back(kept.get());
    }

    std::vector<SampleSummary> end_sample() {
        for (const ValueId value : made_repeatedly_) {
            TensorStatistics& statistics = *repeated_[value];
            const Slot& slot = *tap_.slots_[value];
            entries_[slot.entry] = summarize(statistics);
            tap_.set_->merge(slot.tensor, statistics);
            statistics.clear();
        }
        made_repeatedly_.clear();
        return std::move(entries_);
    }

    void take(ValueId value, const Slot& slot, std::span<const float> elements) {
        const Clock::time_point start = Clock::now();
        if (slot.repeated) {
            take_repeated(value, elements);
        } else {
            take_once(value, slot, elements);
        }
        seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
    }

    double seconds() const { return seconds_; }
    const CountedElements& elements() const { return elements_; }

  private:
    struct Kept {
        TensorStatistics statistics;
        SampleSummary summary;
        std::size_t uses = 0;  // derivations still to come
    };

    void take_repeated(ValueId value, std::span<const float> elements) {
        if (!repeated_[value]) repeated_[value] = std::make_unique<TensorStatistics>();
        if (std::find(made_repeatedly_.begin(), made_repeatedly_.end(), value) == made_repeatedly_.end()) {
            repeated_[value]->clear();
            made_repeatedly_.push_back(value);
        }
        repeated_[value]->merge(counter_.count(elements));
        elements_.counted += elements.size();
    }

    void take_once(ValueId value, const Slot& slot, std::span<const float> elements) {
        const Derivation* derivation = tap_.derivations_.of(value);
        Kept* kept = derivation != nullptr ? derived(*derivation, elements) : nullptr;
        if (kept == nullptr) {
            kept = counted(elements);
            elements_.counted += elements.size();
        } else {
            elements_.derived += elements.size();
        }
        entries_[slot.entry] = kept->summary;
        tap_.set_->merge(slot.tensor, kept->statistics);
        kept->uses += tap_.derivations_.uses(value);
        if (kept->uses > 0) kept_of_[value] = kept;
        if (derivation != nullptr) {
            for (const ValueId source : derivation->sources) release(source);
        }
        if (kept->uses == 0 && std::find(free_.begin(), free_.end(), kept) == free_.end())
            free_.push_back(kept);
    }

    Kept* unused() {
        if (free_.empty()) {
            all_.push_back(std::make_unique<Kept>());
            return all_.back().get();
        }
        Kept* kept = free_.back();
        free_.pop_back();
        return kept;
    }

    Kept* counted(std::span<const float> elements) {
        Kept* kept = unused();
        counter_.count(elements, kept->statistics);
        kept->summary = summarize(kept->statistics);
        kept->uses = 0;
        return kept;
    }

    // Nullptr where the value has to be counted.
    Kept* derived(const Derivation& derivation, std::span<const float> elements) {
        sources_.clear();
        for (const ValueId source : derivation.sources) {
            const Slot& slot = *tap_.slots_[source];
            if (!slot.constant && kept_of_[source] == nullptr) return nullptr;
            sources_.push_back(slot.constant ? &(*tap_.set_)[slot.tensor] : &kept_of_[source]->statistics);
        }
        if (derivation.rule == Derivation::Rule::same && !tap_.slots_[derivation.sources[0]]->constant) {
            return kept_of_[derivation.sources[0]];
        }
        Kept* kept = unused();
        if (!derive(derivation, sources_, elements, tap_.settings_, kept->statistics)) {
            free_.push_back(kept);
            return nullptr;
        }
        kept->summary = summarize(kept->statistics);
        kept->uses = 0;
        return kept;
    }

    void release(ValueId source) {
        Kept* kept = kept_of_[source];
        if (kept == nullptr) return;
        if (--kept->uses == 0) {
            free_.push_back(kept);
            kept_of_[source] = nullptr;
        }
    }

    const StatisticsTap& tap_;
    Counter counter_;
    std::vector<SampleSummary> entries_;
    double seconds_ = 0;
    CountedElements elements_;
    std::vector<std::unique_ptr<Kept>> all_;
    std::vector<Kept*> free_;
    std::vector<Kept*> kept_of_;  // by value
    std::vector<const TensorStatistics*> sources_;
    std::vector<std::unique_ptr<TensorStatistics>> repeated_;  // by value
    std::vector<ValueId> made_repeatedly_;                     // in this sample
};

StatisticsTap::StatisticsTap(CounterSettings settings, TensorNames names)
    : settings_(settings),
      names_(std::move(names)),
      workers_([this] { return std::make_unique<Worker>(*this); }) {}
StatisticsTap::~StatisticsTap() = default;

void StatisticsTap::start(const CountedTensors& tensors, const Graph& graph, StatisticsSet& set,
                          DerivationTable derivations) {
    slots_.assign(graph.values.size(), std::nullopt);
    row_entries_ = 0;
    const std::vector<bool> repeated = values_of_bodies(graph);
    for (std::size_t i = 0; i < tensors.infos.size(); ++i) {
        const bool constant = tensors.infos[i].constant;
        const ValueId value = tensors.values[i];
        slots_[value] = Slot{i, constant ? 0 : row_entries_++, constant, repeated[value]};
    }
    set_ = &set;
    derivations_ = std::move(derivations);
}

void StatisticsTap::begin_sample() {
    workers_.local()->begin_sample();
}

Row StatisticsTap::end_sample(std::uint64_t number, double& seconds) {
    Worker& worker = *workers_.local();
    Row row{number, worker.end_sample()};
    seconds = worker.seconds();
    return row;
}

CountedElements StatisticsTap::elements() const {
    CountedElements sum;
    for (const std::unique_ptr<Worker>& worker : workers_) {
        sum.counted += worker->elements().counted;
        sum.derived += worker->elements().derived;
    }
    return sum;
}

TapRight StatisticsTap::right(const Graph& graph, ValueId value) const {
    const Value& described = graph.values[value];
    if (names_ && !names_->contains(described.name)) return TapRight::ignore;
    const DataType declared = described.declared_type;
    return declared == DataType::undefined || is_floating(declared) ? TapRight::read : TapRight::ignore;
}

void StatisticsTap::on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) {
    const std::optional<Slot>& slot = slots_[value];
    if (slot && !slot->constant) workers_.local()->take(value, *slot, view.as<float>());
}

}  // namespace qcalib
