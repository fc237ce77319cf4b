// Activations paired by their values: fingerprints first, then element by element.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "mapping/mapping_state.h"

namespace qcalib {

namespace {

// What two implementations of one tensor may differ by, of its largest magnitude and of each value: far above
// rounding, far below what another tensor differs by.
constexpr double value_tolerance = 1e-3;
constexpr double same_multiset = 1e-5;
constexpr std::size_t least_multiset = 8;  // elements
constexpr double agreement = 3e-5;         // of the largest magnitude, beside 1e-4 of each value

// Candidates in portions whose ONNX tensors fit into the memory, each portion from `first` on.
std::vector<std::size_t> portions_of(const MappingState& state, std::span<const CandidatePair> candidates,
                                     std::uint64_t memory) {
    std::vector<std::size_t> ends;
    std::uint64_t bytes = 0;
    ValueId last = no_value;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i].onnx != last) {
            last = candidates[i].onnx;
            const std::uint64_t size = state.onnx.values[last].samples.front().elements * sizeof(float);
            if (bytes > 0 && bytes + size > memory) {
                ends.push_back(i);
                bytes = 0;
            }
            bytes += size;
        }
    }
    ends.push_back(candidates.size());
    return ends;
}

// Adds what one sample finds; takes out the maps it refutes.
void compare_one(CandidatePair& candidate, TensorView from, TensorView to,
                 const ElementTolerance& tolerance) {
    for (CandidateMap& one : candidate.maps) {
        const ElementDifference found = compare(from, to, one.map, tolerance);
        one.difference.largest = std::max(one.difference.largest, found.largest);
        one.difference.excess = std::max(one.difference.excess, found.excess);
        one.difference.squares += found.squares;
        one.difference.within = one.difference.within && found.within;
    }
    if (tolerance.to_the_end) return;
    std::erase_if(candidate.maps, [](const CandidateMap& one) { return !one.difference.within; });
}

// Activations of the Circle model and the ONNX model whose fingerprints agree in all samples.
std::vector<CandidatePair> find_candidates(const MappingState& state) {
    std::unordered_map<std::size_t, std::vector<ValueId>> by_size;
    const auto usable = [](const ProbedValue& value) {
        return value.seen() && !value.constant && !value.repeated && !value.poor;
    };
    for (ValueId id = 0; id < state.circle.values.size(); ++id) {
        const ProbedValue& value = state.circle.values[id];
        if (usable(value)) by_size[value.samples.front().elements].push_back(id);
    }
    std::vector<CandidatePair> candidates;
    for (ValueId id = 0; id < state.onnx.values.size(); ++id) {
        const ProbedValue& value = state.onnx.values[id];
        if (!usable(value)) continue;
        for (const ValueId circle : by_size[value.samples.front().elements]) {
            const ProbedValue& other = state.circle.values[circle];
            const bool agree = std::equal(
                value.samples.begin(), value.samples.end(), other.samples.begin(), other.samples.end(),
                [](const Fingerprint& a, const Fingerprint& b) { return alike(a, b, value_tolerance); });
            if (!agree) continue;
            CandidatePair candidate{circle, id, {}};
            for (AxisMap& map : possible_maps(value.shape, other.shape))
                candidate.maps.push_back({std::move(map), {}});
            candidates.push_back(std::move(candidate));
        }
    }
    return candidates;
}

bool same_values(const MappingState& state, const CandidatePair& candidate) {
    const auto& a = state.onnx.values[candidate.onnx].samples;
    const auto& b = state.circle.values[candidate.circle].samples;
    return a.front().elements >= least_multiset &&
           std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Fingerprint& x, const Fingerprint& y) { return alike(x, y, same_multiset); });
}

// Leaves those whose elements agree; where a Circle tensor has none such, those of the same values in another
// order; and of several those that do not differ far more than the nearest.
void leave_the_nearest(const MappingState& state, std::vector<CandidatePair>& candidates) {
    std::unordered_map<ValueId, double> least;  // by Circle value
    for (const CandidatePair& one : candidates) {
        if (one.maps.empty()) continue;
        const double difference = one.best().difference.largest;
        const auto [found, added] = least.emplace(one.circle, difference);
        if (!added) found->second = std::min(found->second, difference);
    }
    for (CandidatePair& one : candidates) {
        if (one.maps.empty() && !least.contains(one.circle) && same_values(state, one))
            one.maps.push_back({{AxisMap::Form::order, {}}, {}});
    }
    std::erase_if(candidates, [&](const CandidatePair& one) {
        if (one.maps.empty()) return true;
        const auto found = least.find(one.circle);
        const double allowed = agreement * static_cast<double>(state.onnx.values[one.onnx].largest);
        return found != least.end() && one.best().difference.largest > std::max(10 * found->second, allowed);
    });
}

// Candidates that hang together: tensors of the same values.
class ValueGroups {
  public:
    explicit ValueGroups(std::size_t count) : parent_(count) {
        std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    }
    std::size_t root(std::size_t i) {
        while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
        return i;
    }
    void unite(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

  private:
    std::vector<std::size_t> parent_;
};

// Chooses, for each Circle tensor of a group, its partner.
class GroupPairing {
  public:
    GroupPairing(MappingState& state, std::vector<const CandidatePair*> edges)
        : state_(state), edges_(std::move(edges)) {}

    void pair() {
        std::stable_sort(edges_.begin(), edges_.end(), [&](const CandidatePair* a, const CandidatePair* b) {
            return order_of(a->circle) < order_of(b->circle);
        });
        const std::size_t group = ++state_.groups;
        for (const CandidatePair* edge : edges_) {
            state_.circle_group[edge->circle] = group;
            state_.onnx_group[edge->onnx] = group;
        }
        std::map<ValueId, const CandidatePair*> chosen;  // by Circle value
        for (auto first = edges_.begin(); first != edges_.end();) {
            const auto last = std::find_if(first, edges_.end(), [&](const CandidatePair* edge) {
                return edge->circle != (*first)->circle;
            });
            const CandidatePair* best = *std::max_element(
                first, last,
                [&](const CandidatePair* a, const CandidatePair* b) { return rank(*a) < rank(*b); });
            ++uses_[best->onnx];
            chosen.emplace(best->circle, best);
            first = last;
        }
        std::map<ValueId, TensorPair> pairs;
        for (const auto& [circle, edge] : chosen) pairs.emplace(circle, pair_of(*edge));
        add_equals(pairs);
        for (auto& [circle, pair] : pairs) {
            if (!state_.pairs[circle]) state_.pair(std::move(pair));
        }
    }

  private:
    std::pair<std::size_t, ValueId> order_of(ValueId circle) const {
        return {state_.circle.position[circle], circle};
    }

    // The greater the better: what speaks for it, then a partner that no other tensor has, then the nearer
    // place.
    std::tuple<double, int, double> rank(const CandidatePair& edge) {
        const auto place = [](const MappedSide& side, ValueId value) {
            return static_cast<double>(side.position[value]) /
                   static_cast<double>(side.graph.nodes.size() + 1);
        };
        const double distance = std::abs(place(state_.circle, edge.circle) - place(state_.onnx, edge.onnx));
        return {pair_score(state_, edge.circle, edge.onnx), -uses_[edge.onnx], -distance};
    }

    TensorPair pair_of(const CandidatePair& edge) const {
        const CandidateMap& best = edge.best();
        TensorPair pair;
        pair.circle = edge.circle;
        pair.onnx = edge.onnx;
        pair.axes = best.map;
        pair.difference = best.difference.largest;
        pair.largest = state_.onnx.values[edge.onnx].largest;
        pair.agrees = best.difference.excess <= agreement * pair.largest;
        return pair;
    }

    // ONNX tensors that no Circle tensor chose stand beside the one that they fit best.
    void add_equals(std::map<ValueId, TensorPair>& pairs) {
        std::map<ValueId, const CandidatePair*> left;
        for (const CandidatePair* edge : edges_) {
            const bool taken = std::any_of(pairs.begin(), pairs.end(),
                                           [&](const auto& one) { return one.second.onnx == edge->onnx; });
            if (taken || state_.is_paired_onnx(edge->onnx)) continue;
            const auto found = left.find(edge->onnx);
            if (found == left.end() || rank(*edge) > rank(*found->second)) left[edge->onnx] = edge;
        }
        for (const auto& [onnx, edge] : left) {
            if (state_.pairs[edge->circle]) {
                state_.pairs[edge->circle]->also.push_back(onnx);
                state_.partners[onnx].push_back(edge->circle);
            } else {
                pairs.at(edge->circle).also.push_back(onnx);
            }
        }
    }

    MappingState& state_;
    std::vector<const CandidatePair*> edges_;
    std::map<ValueId, int> uses_;
};

}  // namespace

void compare_candidates(MappingState& state, std::vector<CandidatePair>& candidates,
                        const ElementTolerance& tolerance, std::uint64_t memory) {
    std::size_t first = 0;
    for (const std::size_t end : portions_of(state, candidates, memory)) {
        std::unordered_map<ValueId, std::vector<CandidatePair*>> by_circle;
        std::unordered_map<ValueId, Tensor> kept;
        for (std::size_t i = first; i < end; ++i) {
            by_circle[candidates[i].circle].push_back(&candidates[i]);
            kept.emplace(candidates[i].onnx, Tensor());
        }
        first = end;
        if (by_circle.empty()) continue;
        for (std::size_t sample = 0; sample < state.onnx.samples.size(); ++sample) {
            state.onnx.probe.run(state.onnx.samples[sample], [&](ValueId value, TensorView view) {
                const auto found = kept.find(value);
                if (found != kept.end())
                    found->second = Tensor::of<float>(view.descriptor->shape, view.as<float>());
            });
            state.circle.probe.run(state.circle.samples[sample], [&](ValueId value, TensorView view) {
                const auto found = by_circle.find(value);
                if (found == by_circle.end()) return;
                for (CandidatePair* candidate : found->second) {
                    ElementTolerance scaled = tolerance;
                    scaled.absolute *= static_cast<double>(state.onnx.values[candidate->onnx].largest);
                    compare_one(*candidate, kept.at(candidate->onnx).view(), view, scaled);
                }
            });
        }
    }
}

void pair_by_value(MappingState& state, std::uint64_t memory) {
    std::vector<CandidatePair> candidates = find_candidates(state);
    compare_candidates(state, candidates, {value_tolerance, value_tolerance, false}, memory);
    leave_the_nearest(state, candidates);
    const std::size_t circle_values = state.circle.values.size();
    ValueGroups groups(circle_values + state.onnx.values.size());
    for (const CandidatePair& one : candidates) groups.unite(one.circle, circle_values + one.onnx);
    std::map<std::size_t, std::vector<const CandidatePair*>> by_group;
    for (const CandidatePair& one : candidates) by_group[groups.root(one.circle)].push_back(&one);
    for (auto& [root, edges] : by_group) GroupPairing(state, std::move(edges)).pair();
}

}  // namespace qcalib
