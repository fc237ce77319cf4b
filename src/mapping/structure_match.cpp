// What values cannot decide: tensors of all zeros and saturated ones, constants of one number, by their place
// in the graphs; and tensors that the conversion changed, by their place and the nearest values.
#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "mapping/mapping_state.h"
#include "mapping/operator_kind.h"

namespace qcalib {

namespace {

constexpr double poor_tolerance = 1e-3;
constexpr double most_distance = 0.5;   // root mean square of the difference, of that of the tensor
constexpr double clearly_nearer = 0.7;  // of the next candidate's distance

// The groups of values that a tensor is made of: the first tensors with a partner on the way back.
template <typename GroupOf>
std::set<std::size_t> source_groups(const MappedSide& side, ValueId value, GroupOf group_of) {
    std::set<std::size_t> groups;
    std::set<ValueId> met;
    std::deque<ValueId> open_values = {value};
    while (!open_values.empty()) {
        const ValueId at = open_values.front();
        open_values.pop_front();
        const Node* node = side.producer(at);
        if (node == nullptr) continue;
        for (const ValueId input : node->inputs) {
            if (input == no_value || side.is_constant(input) || !met.insert(input).second) continue;
            if (const std::size_t group = group_of(input)) {
                groups.insert(group);
            } else {
                open_values.push_back(input);
            }
        }
    }
    return groups;
}

class StructurePairing {
  public:
    explicit StructurePairing(MappingState& state) : state_(state) {}

    bool pair_poor_activations() {
        bool changed = false;
        for (const ValueId circle : in_order(state_.circle)) {
            if (state_.pairs[circle] || !is_poor_activation(state_.circle, circle)) continue;
            const std::set<std::size_t> sources = circle_sources(circle);
            if (sources.empty()) continue;
            ValueId best = no_value;
            double best_score = -1;
            for (const ValueId onnx : in_order(state_.onnx)) {
                if (state_.is_paired_onnx(onnx) || !is_poor_activation(state_.onnx, onnx)) continue;
                if (!same_values(circle, onnx) || onnx_sources(onnx) != sources) continue;
                const double score = pair_score(state_, circle, onnx);
                if (score > best_score) {
                    best = onnx;
                    best_score = score;
                }
            }
            if (best == no_value) continue;
            take(circle, best);
            changed = true;
        }
        return changed;
    }

    bool pair_poor_constants() {
        bool changed = false;
        for (ValueId circle = 0; circle < state_.circle.values.size(); ++circle) {
            if (state_.pairs[circle] || !state_.circle.is_constant(circle)) continue;
            for (const NodeIndex reader : state_.circle.consumers[circle]) {
                const FoundConstant found = constant_beside(circle, state_.circle.graph.nodes[reader]);
                if (found.onnx == no_value) continue;
                take(circle, found.onnx);
                if (found.derived != nullptr) {
                    state_.pairs[circle]->evidence = PairEvidence::derived;
                    state_.pairs[circle]->how = found.derived->how;
                    state_.pairs[circle]->difference = 0;
                }
                changed = true;
                break;
            }
        }
        return changed;
    }

  private:
    static bool is_poor_activation(const MappedSide& side, ValueId value) {
        const ProbedValue& probed = side.values[value];
        return probed.seen() && !probed.constant && !probed.repeated && probed.poor;
    }

    static std::vector<ValueId> in_order(const MappedSide& side) {
        std::vector<ValueId> values(side.graph.values.size());
        for (ValueId id = 0; id < values.size(); ++id) values[id] = id;
        std::stable_sort(values.begin(), values.end(),
                         [&](ValueId a, ValueId b) { return side.position[a] < side.position[b]; });
        return values;
    }

    std::set<std::size_t> circle_sources(ValueId value) const {
        return source_groups(state_.circle, value, [&](ValueId id) { return state_.circle_group[id]; });
    }
    std::set<std::size_t> onnx_sources(ValueId value) const {
        return source_groups(state_.onnx, value, [&](ValueId id) { return state_.onnx_group[id]; });
    }

    bool same_values(ValueId circle, ValueId onnx) const {
        const auto& a = state_.circle.values[circle].samples;
        const auto& b = state_.onnx.values[onnx].samples;
        return std::equal(
            a.begin(), a.end(), b.begin(), b.end(),
            [](const Fingerprint& x, const Fingerprint& y) { return alike(x, y, poor_tolerance); });
    }

    void take(ValueId circle, ValueId onnx) {
        TensorPair pair;
        pair.circle = circle;
        pair.onnx = onnx;
        const std::vector<AxisMap> maps =
            possible_maps(state_.onnx.values[onnx].shape, state_.circle.values[circle].shape);
        pair.axes = maps.empty() ? AxisMap{AxisMap::Form::order, {}} : maps.front();
        pair.evidence = PairEvidence::structure;
        pair.largest = state_.onnx.values[onnx].largest;
        const float other = state_.circle.values[circle].largest;
        pair.difference = std::abs(pair.largest - static_cast<double>(other));
        state_.pair(std::move(pair));
    }

    // A constant of the ONNX model with the values of one of the Circle model, or what it became.
    struct FoundConstant {
        ValueId onnx = no_value;
        const DerivedConstant* derived = nullptr;
        int score = -1;
    };

    // What follows from constants that an ONNX operator reads, with the values of a Circle constant.
    const DerivedConstant* derived_like(ValueId circle, ValueId onnx) const {
        const Fingerprint& here = state_.circle.values[circle].samples.front();
        for (const DerivedConstant& one : state_.derived) {
            if (one.from == onnx && alike(one.print, here, poor_tolerance)) return &one;
        }
        return nullptr;
    }

    // The constant of one value that the ONNX operators read where `reader` reads this one.
    FoundConstant constant_beside(ValueId circle, const Node& reader) const {
        const auto place = static_cast<std::size_t>(
            std::find(reader.inputs.begin(), reader.inputs.end(), circle) - reader.inputs.begin());
        FoundConstant best;
        for (const ValueId output : reader.outputs) {
            const ValueId paired = output == no_value ? no_value : state_.paired_behind(output);
            if (paired == no_value) continue;
            for (const NodeIndex index : state_.region_of(paired)) {
                const Node& node = state_.onnx.graph.nodes[index];
                for (std::size_t i = 0; i < node.inputs.size(); ++i) {
                    const ValueId onnx = node.inputs[i];
                    if (onnx == no_value || !state_.onnx.is_constant(onnx)) continue;
                    const bool same = same_values(circle, onnx);
                    const DerivedConstant* derived = same ? nullptr : derived_like(circle, onnx);
                    if (!same && derived == nullptr) continue;
                    const int score = (operator_kind(node) == operator_kind(reader) ? 2 : 0) +
                                      (i == place ? 2 : 0) + (state_.is_paired_onnx(onnx) ? 0 : 1) +
                                      (same ? 4 : 0);
                    if (score > best.score) best = {onnx, derived, score};
                }
            }
        }
        return best;
    }

    MappingState& state_;
};

// Activations without a partner that the conversion may have changed.
std::vector<CandidatePair> distant_candidates(const MappingState& state) {
    const auto usable = [](const ProbedValue& value) {
        return value.seen() && !value.constant && !value.repeated && !value.poor;
    };
    std::vector<CandidatePair> candidates;
    for (ValueId onnx = 0; onnx < state.onnx.values.size(); ++onnx) {
        const ProbedValue& there = state.onnx.values[onnx];
        if (!usable(there) || state.is_paired_onnx(onnx)) continue;
        for (ValueId circle = 0; circle < state.circle.values.size(); ++circle) {
            const ProbedValue& here = state.circle.values[circle];
            if (!usable(here) || state.pairs[circle]) continue;
            if (here.samples.front().elements != there.samples.front().elements) continue;
            CandidatePair candidate{circle, onnx, {}};
            for (AxisMap& map : possible_maps(there.shape, here.shape)) {
                if (map.form == AxisMap::Form::axes || map.axes.size() == here.shape.size())
                    candidate.maps.push_back({std::move(map), {}});
            }
            if (!candidate.maps.empty()) candidates.push_back(std::move(candidate));
        }
    }
    return candidates;
}

// Pairs two constants that stand at one place, if they are near.
void pair_near_constant(MappingState& state, ValueId circle, ValueId onnx) {
    if (onnx == no_value || !state.onnx.is_constant(onnx) || state.is_paired_onnx(onnx) ||
        state.pairs[circle])
        return;
    const Tensor& from = *state.onnx.probe.constant(onnx);
    const Tensor& to = *state.circle.probe.constant(circle);
    const double squares = state.onnx.values[onnx].samples.front().squares;
    TensorPair pair;
    double least = most_distance;
    for (const AxisMap& map : possible_maps(from.shape(), to.shape())) {
        const ElementDifference found = compare(from.view(), to.view(), map, {0, 0, true});
        const double distance = squares > 0 ? std::sqrt(found.squares / squares) : 1;
        if (distance >= least) continue;
        least = distance;
        pair.axes = map;
        pair.difference = found.largest;
    }
    if (least >= most_distance) return;
    pair.circle = circle;
    pair.onnx = onnx;
    pair.evidence = PairEvidence::near_value;
    pair.largest = state.onnx.values[onnx].largest;
    pair.agrees = false;
    state.pair(std::move(pair));
}

// Constants without a partner that stand at one place of the same operator in both models.
void pair_near_constants(MappingState& state) {
    for (ValueId circle = 0; circle < state.circle.values.size(); ++circle) {
        if (!state.circle.is_constant(circle) || state.pairs[circle] || state.circle.values[circle].poor)
            continue;
        for (const NodeIndex reader : state.circle.consumers[circle]) {
            const Node& here = state.circle.graph.nodes[reader];
            const ValueId paired = state.paired_behind(here.outputs.front());
            if (paired == no_value || state.pairs[circle]) continue;
            const auto place =
                std::find(here.inputs.begin(), here.inputs.end(), circle) - here.inputs.begin();
            for (const NodeIndex index : state.region_of(paired)) {
                const Node& there = state.onnx.graph.nodes[index];
                if (operator_kind(there) != operator_kind(here) ||
                    static_cast<std::size_t>(place) >= there.inputs.size())
                    continue;
                pair_near_constant(state, circle, there.inputs[static_cast<std::size_t>(place)]);
            }
        }
    }
}

// A candidate with its best map.
struct Distance {
    const CandidatePair* candidate = nullptr;
    const CandidateMap* map = nullptr;
    double value = 0;  // relative root mean square
    double score = 0;
};

Distance distance_of(const MappingState& state, const CandidatePair& candidate) {
    Distance distance{&candidate, &candidate.maps.front(), 0, 0};
    for (const CandidateMap& one : candidate.maps) {
        if (one.difference.squares < distance.map->difference.squares) distance.map = &one;
    }
    double squares = 0;
    for (const Fingerprint& print : state.onnx.values[candidate.onnx].samples) squares += print.squares;
    distance.value = squares > 0 ? std::sqrt(distance.map->difference.squares / squares) : 1;
    distance.score = pair_score(state, candidate.circle, candidate.onnx);
    return distance;
}

// The one of some candidates that is clearly nearest, or by its operator among those that are as near.
const Distance* nearest(std::vector<Distance*>& all) {
    if (all.empty()) return nullptr;
    std::sort(all.begin(), all.end(),
              [](const Distance* a, const Distance* b) { return a->value < b->value; });
    const Distance* best = all.front();
    for (const Distance* one : all) {
        if (one->value * clearly_nearer > all.front()->value) break;
        if (one->score > best->score) best = one;
    }
    return best->value < most_distance ? best : nullptr;
}

}  // namespace

void pair_by_structure(MappingState& state) {
    StructurePairing pairing(state);
    bool changed = true;
    while (changed) {
        changed = pairing.pair_poor_activations();
        changed = pairing.pair_poor_constants() || changed;
    }
}

void pair_nearest(MappingState& state, std::uint64_t memory) {
    std::vector<CandidatePair> candidates = distant_candidates(state);
    compare_candidates(state, candidates, {0, 0, true}, memory);
    std::vector<Distance> distances;
    for (const CandidatePair& one : candidates) distances.push_back(distance_of(state, one));
    std::vector<ValueId> order;
    for (ValueId id = 0; id < state.circle.values.size(); ++id) order.push_back(id);
    std::stable_sort(order.begin(), order.end(), [&](ValueId a, ValueId b) {
        return state.circle.position[a] < state.circle.position[b];
    });
    for (const ValueId circle : order) {
        std::vector<Distance*> here;
        for (Distance& one : distances) {
            if (one.candidate->circle == circle && !state.is_paired_onnx(one.candidate->onnx))
                here.push_back(&one);
        }
        const Distance* best = nearest(here);
        if (best == nullptr) continue;
        // The ONNX tensor must have no nearer Circle tensor.
        const bool taken_elsewhere =
            std::any_of(distances.begin(), distances.end(), [&](const Distance& one) {
                return one.candidate->onnx == best->candidate->onnx && !state.pairs[one.candidate->circle] &&
                       one.value < best->value * clearly_nearer;
            });
        if (taken_elsewhere) continue;
        TensorPair pair;
        pair.circle = circle;
        pair.onnx = best->candidate->onnx;
        pair.axes = best->map->map;
        pair.evidence = PairEvidence::near_value;
        pair.difference = best->map->difference.largest;
        pair.largest = state.onnx.values[pair.onnx].largest;
        pair.agrees = false;
        state.pair(std::move(pair));
    }
    pair_near_constants(state);
}

}  // namespace qcalib
