// Constants paired element by element, those that converters compute among them.
#include <algorithm>
#include <set>

#include "mapping/mapping_state.h"

namespace qcalib {

namespace {

constexpr double exact = 1e-5;    // of the largest magnitude: computed in another order
constexpr double rounded = 1e-3;  // stored as float16

// An ONNX constant, as it is or derived, that has the Circle constant's values.
struct ConstantCandidate {
    ValueId onnx = no_value;
    const DerivedConstant* derived = nullptr;
    AxisMap map;
    ElementDifference difference;
    double largest = 0;
    double score = 0;
};

class ConstantPairing {
  public:
    explicit ConstantPairing(MappingState& state) : state_(state) {}

    void pair_all() {
        std::vector<std::pair<ValueId, std::vector<ConstantCandidate>>> found;
        for (ValueId id = 0; id < state_.circle.values.size(); ++id) {
            if (!state_.circle.is_constant(id) || state_.pairs[id]) continue;
            if (state_.circle.values[id].poor) continue;
            found.emplace_back(id, candidates_of(id));
        }
        // Those that leave no choice first: what they take is a weaker choice for others.
        std::stable_sort(found.begin(), found.end(),
                         [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
        for (auto& [circle, candidates] : found) choose(circle, candidates);
        for (const auto& [circle, candidates] : found) add_equals(circle, candidates);
    }

  private:
    std::vector<ConstantCandidate> candidates_of(ValueId circle) const {
        std::vector<ConstantCandidate> candidates;
        const Tensor& tensor = *state_.circle.probe.constant(circle);
        for (const double tolerance : {exact, rounded}) {
            for (ValueId id = 0; id < state_.onnx.values.size(); ++id) {
                if (!state_.onnx.is_constant(id)) continue;
                add_if_equal(candidates, tensor, circle, *state_.onnx.probe.constant(id),
                             state_.onnx.values[id].samples.front(), tolerance, id, nullptr);
            }
            for (const DerivedConstant& one : state_.derived)
                add_if_equal(candidates, tensor, circle, one.tensor, one.print, tolerance, one.from, &one);
            if (!candidates.empty()) break;
        }
        return candidates;
    }

    void add_if_equal(std::vector<ConstantCandidate>& candidates, const Tensor& circle_tensor, ValueId circle,
                      const Tensor& onnx_tensor, const Fingerprint& print, double tolerance, ValueId onnx,
                      const DerivedConstant* derived) const {
        const Fingerprint& here = state_.circle.values[circle].samples.front();
        if (!alike(print, here, tolerance)) return;
        const double largest = print.largest();
        for (const AxisMap& map : possible_maps(onnx_tensor.shape(), circle_tensor.shape())) {
            const ElementDifference found = compare(onnx_tensor.view(), circle_tensor.view(), map,
                                                    {tolerance * largest, tolerance, false});
            if (!found.within) continue;
            candidates.push_back({onnx, derived, map, found, largest, 0});
            return;
        }
    }

    // The constants that the ONNX operators read which do what the Circle constant's readers do.
    std::set<ValueId> near_constants(ValueId circle) const {
        std::set<ValueId> near;
        for (const NodeIndex reader : state_.circle.consumers[circle]) {
            for (const ValueId output : state_.circle.graph.nodes[reader].outputs) {
                const ValueId paired = output == no_value ? no_value : state_.paired_behind(output);
                if (paired == no_value) continue;
                for (const NodeIndex node : state_.region_of(paired)) {
                    for (const ValueId input : state_.onnx.graph.nodes[node].inputs) {
                        if (input != no_value) near.insert(input);
                    }
                }
            }
        }
        return near;
    }

    void choose(ValueId circle, std::vector<ConstantCandidate>& candidates) {
        if (candidates.empty()) return;
        const std::set<ValueId> near = near_constants(circle);
        double least = candidates.front().difference.largest;
        for (const auto& one : candidates) least = std::min(least, one.difference.largest);
        for (ConstantCandidate& one : candidates) {
            if (near.contains(one.onnx)) one.score += 8;
            if (one.difference.largest <= 10 * least + exact * 1e-2 * one.largest) one.score += 4;
            if (one.derived == nullptr) one.score += 2;
            one.score += 0.5 * name_votes(state_.circle.name(circle), state_.onnx.name(one.onnx), "");
            if (state_.partners[one.onnx].empty()) one.score += 1;
        }
        const ConstantCandidate& best = *std::max_element(
            candidates.begin(), candidates.end(),
            [](const ConstantCandidate& a, const ConstantCandidate& b) { return a.score < b.score; });
        TensorPair pair;
        pair.circle = circle;
        pair.onnx = best.onnx;
        pair.axes = best.map;
        pair.difference = best.difference.largest;
        pair.largest = best.largest;
        pair.agrees = best.difference.largest <= exact * best.largest;
        pair.evidence = best.derived != nullptr ? PairEvidence::derived : PairEvidence::constant;
        if (best.derived != nullptr) pair.how = best.derived->how;
        state_.pair(std::move(pair));
    }

    // ONNX constants of the same values that nothing else took (copies by Identity, folded transposes).
    void add_equals(ValueId circle, const std::vector<ConstantCandidate>& candidates) {
        if (!state_.pairs[circle]) return;
        for (const ConstantCandidate& one : candidates) {
            if (one.derived != nullptr || state_.is_paired_onnx(one.onnx)) continue;
            state_.pairs[circle]->also.push_back(one.onnx);
            state_.partners[one.onnx].push_back(circle);
            state_.onnx_group[one.onnx] = state_.circle_group[circle];
        }
    }

    MappingState& state_;
};

}  // namespace

void pair_constants(MappingState& state) {
    ConstantPairing(state).pair_all();
}

}  // namespace qcalib
