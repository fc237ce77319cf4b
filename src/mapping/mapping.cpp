#include "mapping/mapping.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "mapping/mapping_samples.h"
#include "mapping/mapping_state.h"

namespace qcalib {

namespace {

constexpr std::size_t most_layouts = 16;  // of the inputs together, tried where shapes leave them open
constexpr double scales[] = {1, 0.25, 4};

DataType fed_type(const Value& value) {
    return is_floating(value.declared_type) || value.declared_type == DataType::undefined
               ? DataType::float32
               : value.declared_type;
}

AxisMap inverse_of(const AxisMap& map, const Shape& from, const Shape& to) {
    if (map.form != AxisMap::Form::axes) return possible_maps(to, from).front();
    AxisMap inverse{AxisMap::Form::axes, std::vector<std::size_t>(map.axes.size())};
    for (std::size_t i = 0; i < map.axes.size(); ++i) inverse.axes[map.axes[i]] = i;
    return inverse;
}

class Mapper {
  public:
    explicit Mapper(const MappingRequest& request)
        : request_(request),
          state_{MappedSide(request.circle, request.circle_label),
                 MappedSide(request.onnx, request.onnx_label),
                 {},
                 {},
                 {},
                 {},
                 {},
                 0} {
        mapping_.circle = request.circle;
        mapping_.onnx = request.onnx;
        mapping_.circle_label = request.circle_label;
        mapping_.onnx_label = request.onnx_label;
        state_.circle.index();
        state_.onnx.index();
        state_.pairs.resize(request.circle->values.size());
        state_.partners.resize(request.onnx->values.size());
        state_.circle_group.assign(request.circle->values.size(), 0);
        state_.onnx_group.assign(request.onnx->values.size(), 0);
    }

    TensorMapping map() {
        bind();
        make_circle_samples();
        state_.circle.values = state_.circle.probe.take_fingerprints(state_.circle.samples);
        decide_layouts();
        state_.onnx.values = state_.onnx.probe.take_fingerprints(state_.onnx.samples);
        state_.derived = derive_constants(state_.onnx);
        pair_inputs();
        pair_by_value(state_, request_.memory);
        pair_constants(state_);
        pair_by_structure(state_);
        if (has_lone_output()) {
            pair_nearest(state_, request_.memory);
            pair_constants(state_);
            pair_by_structure(state_);
        }
        take_pairs();
        explain_lone(state_, mapping_);
        look_at_outputs();
        return std::move(mapping_);
    }

  private:
    const Value& circle_input(const BoundInput& bound) const {
        return request_.circle->values[request_.circle->inputs[bound.circle]];
    }
    const Value& onnx_input(std::size_t i) const { return request_.onnx->values[request_.onnx->inputs[i]]; }

    void bind() {
        BindingRequest binding;
        binding.circle_label = request_.circle_label;
        binding.onnx_label = request_.onnx_label;
        binding.circle_shapes = request_.circle_shapes.empty()
                                    ? declared_input_shapes(*request_.circle, request_.circle_label)
                                    : request_.circle_shapes;
        binding.onnx_shapes = request_.onnx_shapes.empty()
                                  ? declared_input_shapes(*request_.onnx, request_.onnx_label)
                                  : request_.onnx_shapes;
        binding.given = request_.bind;
        mapping_.inputs = bind_inputs(*request_.circle, *request_.onnx, binding);
        onnx_shapes_ = std::move(binding.onnx_shapes);
    }

    void make_circle_samples() {
        for (const std::vector<Tensor>& given : request_.samples) {
            for (const BoundInput& bound : mapping_.inputs) {
                if (given[bound.circle].shape() == bound.circle_shape) continue;
                fail("input '{}': expected data of shape {}, found {}", printable(circle_input(bound).name),
                     to_string(bound.circle_shape), to_string(given[bound.circle].shape()));
            }
            state_.circle.samples.push_back(given);
        }
        for (std::size_t i = 0; i < request_.random_samples; ++i) {
            std::vector<Tensor> sample(mapping_.inputs.size());
            for (const BoundInput& bound : mapping_.inputs) {
                sample[bound.circle] =
                    random_input(fed_type(circle_input(bound)), bound.circle_shape,
                                 1000 * i + bound.circle + 1, scales[i % std::size(scales)]);
            }
            state_.circle.samples.push_back(std::move(sample));
        }
        mapping_.samples = state_.circle.samples.size();
    }

    // The samples as the ONNX model takes them, with one map of each bound input.
    std::vector<std::vector<Tensor>> onnx_samples(const std::vector<std::size_t>& maps,
                                                  std::size_t most) const {
        std::vector<std::vector<Tensor>> samples;
        for (std::size_t s = 0; s < std::min(most, state_.circle.samples.size()); ++s) {
            std::vector<Tensor> sample(request_.onnx->inputs.size());
            for (std::size_t i = 0; i < mapping_.inputs.size(); ++i) {
                const BoundInput& bound = mapping_.inputs[i];
                const Value& value = onnx_input(bound.onnx);
                sample[bound.onnx] = laid_out(state_.circle.samples[s][bound.circle], bound.maps[maps[i]],
                                              bound.onnx_shape, fed_type(value), value.name);
            }
            for (std::size_t i = 0; i < sample.size(); ++i) {
                if (sample[i].data() == nullptr) sample[i] = left_over_input(i, s);
            }
            samples.push_back(std::move(sample));
        }
        return samples;
    }

    Tensor left_over_input(std::size_t i, std::size_t sample) const {
        Shape shape;
        for (const auto& size : onnx_shapes_[i]) shape.push_back(size.value_or(1));
        return random_input(fed_type(onnx_input(i)), shape, 777 + 1000 * sample + i, 1);
    }

    // Where equal sides leave a layout open, the one with which the most tensors of the models agree.
    void decide_layouts() {
        std::vector<std::size_t> chosen(mapping_.inputs.size(), 0);
        std::vector<std::size_t> tried = chosen;
        std::size_t combinations = 1;
        for (const BoundInput& bound : mapping_.inputs) combinations *= bound.maps.size();
        if (combinations > 1) {
            std::size_t most = 0;
            for (std::size_t i = 0; i < std::min(combinations, most_layouts); ++i) {
                const std::size_t agreeing = agreement_with(tried);
                if (i == 0 || agreeing > most) {
                    most = agreeing;
                    chosen = tried;
                }
                for (std::size_t k = 0; k < tried.size() && ++tried[k] == mapping_.inputs[k].maps.size(); ++k)
                    tried[k] = 0;
            }
        }
        for (std::size_t i = 0; i < mapping_.inputs.size(); ++i) {
            BoundInput& bound = mapping_.inputs[i];
            if (bound.maps.size() > 1) {
                mapping_.remarks.push_back(fmt::format(
                    "input '{}' {}: its shape leaves open which axes are which; by the tensors' values the "
                    "ONNX model takes it as {}",
                    printable(circle_input(bound).name), to_string(bound.circle_shape),
                    to_string(bound.maps[chosen[i]])));
            }
            bound.maps = {bound.maps[chosen[i]]};
        }
        state_.onnx.samples = onnx_samples(std::vector<std::size_t>(mapping_.inputs.size(), 0), SIZE_MAX);
        for (std::size_t i = 0; i < request_.onnx->inputs.size(); ++i) {
            const bool bound = std::any_of(mapping_.inputs.begin(), mapping_.inputs.end(),
                                           [&](const BoundInput& one) { return one.onnx == i; });
            if (!bound) {
                mapping_.remarks.push_back(
                    fmt::format("input '{}' of {} has no partner and is given random data",
                                printable(onnx_input(i).name), request_.onnx_label));
            }
        }
    }

    std::size_t agreement_with(const std::vector<std::size_t>& maps) {
        const auto values = state_.onnx.probe.take_fingerprints(onnx_samples(maps, 1));
        std::size_t agreeing = 0;
        for (ValueId id = 0; id < state_.circle.values.size(); ++id) {
            const ProbedValue& value = state_.circle.values[id];
            if (!state_.circle.is_activation(id) || value.poor || state_.circle.producer(id) == nullptr)
                continue;
            agreeing += std::any_of(values.begin(), values.end(), [&](const ProbedValue& other) {
                return other.seen() && !other.constant && !other.poor &&
                       alike(other.samples.front(), value.samples.front(), 1e-3);
            });
        }
        return agreeing;
    }

    void pair_inputs() {
        for (const BoundInput& bound : mapping_.inputs) {
            const ValueId circle = request_.circle->inputs[bound.circle];
            const ValueId onnx = request_.onnx->inputs[bound.onnx];
            if (!state_.circle.values[circle].seen() || !state_.onnx.values[onnx].seen()) continue;
            TensorPair pair;
            pair.circle = circle;
            pair.onnx = onnx;
            pair.axes = inverse_of(bound.maps.front(), bound.circle_shape, bound.onnx_shape);
            pair.evidence = PairEvidence::input;
            pair.largest = state_.onnx.values[onnx].largest;
            state_.pair(std::move(pair));
        }
    }

    bool has_lone_output() const {
        return std::any_of(
            request_.circle->outputs.begin(), request_.circle->outputs.end(),
            [&](ValueId output) { return state_.circle.is_activation(output) && !state_.pairs[output]; });
    }

    // Where a tensor stands: a constant before its first reader.
    std::size_t place_of(ValueId circle) const {
        const bool made = state_.circle.producer(circle) != nullptr;
        const std::vector<NodeIndex>& readers = state_.circle.consumers[circle];
        if (made || !state_.circle.is_constant(circle) || readers.empty())
            return 2 * state_.circle.position[circle];
        return 2 * readers.front() + 1;
    }

    void take_pairs() {
        mapping_.onnx_groups = state_.onnx_group;
        for (const std::optional<TensorPair>& pair : state_.pairs) {
            if (!pair) continue;
            mapping_.pairs.push_back(*pair);
            mapping_.pairs.back().group = state_.circle_group[pair->circle];
        }
        std::stable_sort(mapping_.pairs.begin(), mapping_.pairs.end(),
                         [&](const TensorPair& a, const TensorPair& b) {
                             return place_of(a.circle) < place_of(b.circle);
                         });
        for (std::size_t i = 0; i < mapping_.pairs.size() && !mapping_.first_change; ++i) {
            if (!mapping_.pairs[i].agrees && state_.circle.is_activation(mapping_.pairs[i].circle))
                mapping_.first_change = i;
        }
    }

    void look_at_outputs() {
        const std::vector<ValueId>& there = request_.onnx->outputs;
        for (std::size_t i = 0; i < request_.circle->outputs.size(); ++i) {
            const ValueId output = request_.circle->outputs[i];
            const TensorPair* pair = mapping_.of_circle(output);
            if (pair == nullptr) continue;
            auto found = std::find(there.begin(), there.end(), pair->onnx);
            for (const ValueId equal : pair->also) {
                if (found == there.end()) found = std::find(there.begin(), there.end(), equal);
            }
            if (found == there.end()) continue;
            const auto j = static_cast<std::size_t>(found - there.begin());
            if (j == i) continue;
            mapping_.remarks.push_back(
                fmt::format("outputs are in another order: output {} '{}' of {} is output {} '{}' of {}", i,
                            printable(request_.circle->values[output].name), request_.circle_label, j,
                            printable(request_.onnx->values[*found].name), request_.onnx_label));
        }
    }

    const MappingRequest& request_;
    MappingState state_;
    TensorMapping mapping_;
    InputShapes onnx_shapes_;
};

}  // namespace

std::string_view name_of(PairEvidence evidence) {
    switch (evidence) {
        case PairEvidence::input:
            return "input";
        case PairEvidence::value:
            return "value";
        case PairEvidence::constant:
            return "constant";
        case PairEvidence::derived:
            return "derived";
        case PairEvidence::structure:
            return "structure";
        case PairEvidence::near_value:
            break;
    }
    return "near";
}

const TensorPair* TensorMapping::of_circle(ValueId circle_value) const {
    const auto found = std::find_if(pairs.begin(), pairs.end(),
                                    [&](const TensorPair& pair) { return pair.circle == circle_value; });
    return found == pairs.end() ? nullptr : &*found;
}

std::vector<const TensorPair*> TensorMapping::of_onnx(ValueId onnx_value) const {
    std::vector<const TensorPair*> named;
    std::vector<const TensorPair*> equal;
    for (const TensorPair& pair : pairs) {
        if (pair.onnx == onnx_value) named.push_back(&pair);
        if (std::find(pair.also.begin(), pair.also.end(), onnx_value) != pair.also.end())
            equal.push_back(&pair);
    }
    return named.empty() ? equal : named;
}

std::vector<const TensorPair*> TensorMapping::of_equals(ValueId onnx_value) const {
    std::vector<const TensorPair*> equals;
    const std::size_t group = onnx_groups[onnx_value];
    const std::vector<const TensorPair*> own = of_onnx(onnx_value);
    for (const TensorPair& pair : pairs) {
        if (group != 0 && pair.group == group && std::find(own.begin(), own.end(), &pair) == own.end())
            equals.push_back(&pair);
    }
    return equals;
}

const LoneTensor* TensorMapping::lone_onnx(ValueId onnx_value) const {
    const auto found = std::find_if(onnx_alone.begin(), onnx_alone.end(),
                                    [&](const LoneTensor& lone) { return lone.value == onnx_value; });
    return found == onnx_alone.end() ? nullptr : &*found;
}

TensorMapping map_tensors(const MappingRequest& request) {
    return Mapper(request).map();
}

}  // namespace qcalib
