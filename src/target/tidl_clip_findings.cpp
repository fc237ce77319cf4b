#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "target/step_grid.h"
#include "target/tidl_findings.h"
#include "target/tidl_rules.h"

namespace qcalib {

namespace {

double greatest_end(Range range) {
    return std::max(std::abs(range.min), std::abs(range.max));
}

class ClipFindings {
  public:
    ClipFindings(const TidlRun& run, std::span<const Decision> decisions, Remarks& remarks)
        : run_(run), remarks_(remarks) {
        for (const Decision& decision : decisions) decision_of_.emplace(decision.tensor, &decision);
        for (const TensorEncoding& one : run.set.parameters) weights_.emplace(one.tensor, &one);
        const std::vector<TensorInfo>& counted = run.statistics.header().tensors;
        for (std::size_t i = 0; i < counted.size(); ++i) places_.emplace(counted[i].name, i);
    }

    void run() {
        refused_clips();
        const bool trained = has_trained_clips();
        if (!trained && !run_.options.base) return;
        layers_without_clip();
        ranges_off_powers();
        shared_ranges();
        leading_clips();
        if (!trained) return;
        weights_off_grid();
        wide_codes();
    }

  private:
    const std::vector<TidlLayer>& layers() const { return run_.tensors.layers().all(); }
    const std::string& name(const TidlLayer& layer) const { return run_.graph.values[layer.output()].name; }
    std::string named(const TidlLayer& layer) const { return fmt::format("'{}'", printable(name(layer))); }
    const Decision* decision(const TidlLayer& layer) const {
        const auto found = decision_of_.find(name(layer));
        return found == decision_of_.end() ? nullptr : found->second;
    }

    // A Clip other than Relu6, which float models have as well.
    bool has_trained_clips() const {
        return std::any_of(layers().begin(), layers().end(), [](const TidlLayer& layer) {
            return layer.activation.kind == TidlActivation::Kind::clip && layer.activation.has_range();
        });
    }

    void refused_clips() {
        for (const TidlLayer& layer : layers()) {
            for (const NodeIndex index : layer.refused) {
                const Node& node = run_.graph.nodes[index];
                const Range bounds = *clip_bounds(node, run_.constant);
                remarks_.add(
                    fmt::format("{}: TIDL refuses a Clip from {:.6g} to {:.6g} (expected one from 0 or less "
                                "to more than 0) and "
                                "leaves it to the ARM, which cuts the network in two: the "
                                "quantization-parameter file needs "
                                "one network; widen it to {:.6g} to {:.6g}, or shift the values before it",
                                label(run_.graph, node), bounds.min, bounds.max, std::min(bounds.min, 0.0),
                                bounds.max > 0 ? bounds.max : -bounds.min));
            }
        }
    }

    // By TIDL's own rule; one such layer is enough for it to collect statistics.
    void layers_without_clip() {
        std::vector<std::string> open;
        std::size_t passing = 0;
        std::size_t all = 0;
        for (const TidlLayer& layer : layers()) {
            const Decision* made = decision(layer);
            const bool ranged = layer.activation.has_range() || (made != nullptr && made->origin == "base");
            all += layer.is_data() ? 0 : 1;
            if (!layer.lacks_range() || ranged) continue;
            if (layer.passes_scale) {
                ++passing;
            } else {
                open.push_back(fmt::format("{} ({})", named(layer), layer.type.empty() ? "ARM" : layer.type));
            }
        }
        if (open.empty() && passing == 0) return;
        if (!open.empty()) {
            constexpr std::size_t most = 8;
            const std::size_t shown = std::min(most, open.size());
            remarks_.add(
                fmt::format("{} of {} layers have no Clip: {}{}: TIDL would collect statistics of its own "
                            "for them; they get "
                            "ranges from the data here, and a Clip each in the tidl-onnx form",
                            open.size(), all, join(std::span(open).first(shown), ", "),
                            open.size() > shown ? fmt::format(" and {} more", open.size() - shown) : ""));
        }
    }

    void ranges_off_powers() {
        if (run_.target.tidl->style != TidlRules::Style::power_of_two) return;
        std::vector<std::string> odd;
        for (const TidlLayer& layer : layers()) {
            const Decision* made = decision(layer);
            const bool carried = made != nullptr && (made->origin == "clip" || made->method == "base") &&
                                 made->by_rules && made->ranges.size() == 1;
            if (!carried || layer.passes_scale) continue;
            const double end = greatest_end(made->ranges.front());
            if (end <= 0 || power_of_two_above(end) <= end * (1 + 1e-6)) continue;
            odd.push_back(fmt::format("{} {:.6g} to {:.6g} (becomes {:.6g})", named(layer),
                                      made->ranges.front().min, made->ranges.front().max,
                                      power_of_two_above(end)));
        }
        if (odd.empty()) return;
        constexpr std::size_t most = 5;
        const std::size_t shown = std::min(most, odd.size());
        remarks_.add(fmt::format(
            "ranges of the model that are no powers of two: {}{}: TIDL takes the next one, so that training "
            "saw "
            "other codes than the device has; train with power-of-two ranges, or emit for 'tidl-np2'",
            join(std::span(odd).first(shown), ", "),
            odd.size() > shown ? fmt::format(" and {} more", odd.size() - shown) : ""));
    }

    std::optional<double> observed_end(const TidlLayer& layer) const {
        const auto place = places_.find(name(layer));
        if (place == places_.end()) return std::nullopt;
        const TensorSamples samples(run_.statistics, place->second);
        const std::optional<Range>& extremes = samples.statistics().extremes;
        return extremes ? std::optional(greatest_end(*extremes)) : std::nullopt;
    }

    // A module that training used several times has one range for all its uses.
    void shared_ranges() {
        constexpr double very_different = 8;
        std::map<std::pair<double, double>, std::vector<std::pair<double, const TidlLayer*>>> groups;
        for (const TidlLayer& layer : layers()) {
            if (!layer.activation.has_range()) continue;
            const std::optional<double> end = observed_end(layer);
            if (end && *end > 0) {
                const Range& bounds = layer.activation.bounds;
                groups[{bounds.min, bounds.max}].emplace_back(*end, &layer);
            }
        }
        for (const auto& [bounds, users] : groups) {
            const auto [least, greatest] = std::minmax_element(
                users.begin(), users.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
            if (greatest->first < very_different * least->first) continue;
            remarks_.add(fmt::format(
                "{} layers have the one range {:.6g} to {:.6g}, though {} reaches {:.4g} and {} only {:.4g}, "
                "which "
                "costs it {:.0f} bits: a module that was used several times in training has one range for "
                "all; "
                "give each use a module of its own, or --override '{}: {{range: [{:.6g}, {:.6g}]}}'",
                users.size(), bounds.first, bounds.second, named(*greatest->second), greatest->first,
                named(*least->second), least->first,
                std::floor(std::log2(std::max(std::abs(bounds.first), bounds.second) / least->first)),
                printable(name(*least->second)), bounds.first < 0 ? -power_of_two_above(least->first) : 0.0,
                power_of_two_above(least->first)));
        }
    }

    void leading_clips() {
        for (const TidlLayer& layer : layers()) {
            if (!layer.stands_alone || layer.inputs.empty() || !layers()[layer.inputs.front()].is_data())
                continue;
            const Decision* input = decision(layers()[layer.inputs.front()]);
            const std::string scales = input_scale(input, layer);
            remarks_.add(
                fmt::format("{}: a {} on the network's input becomes a layer of its own, a batch norm whose "
                            "weight 1 is stored "
                            "as 127/128 in 8 bits: all values behind it come out 0.78 % low{}; drop it "
                            "(quantize_in=False in "
                            "training)",
                            named(layer), run_.graph.nodes[layer.nodes.front()].op_type, scales));
        }
    }

    std::string input_scale(const Decision* input, const TidlLayer& layer) const {
        const Decision* own = decision(layer);
        if (input == nullptr || own == nullptr || input->ranges.empty() || own->ranges.empty()) return "";
        const Encoding in = encode(input->ranges.front(), input->rules);
        const Encoding out = encode(own->ranges.front(), own->rules);
        if (in.scale == out.scale) return "";
        return fmt::format(", and the input has scale {:.6g}, signed, where the Clip has {:.6g}",
                           1 / in.scale, 1 / out.scale);
    }

    // As training saves them: it rounds weights as it goes, and keeps the unrounded ones.
    void weights_off_grid() {
        constexpr double rounding_noise = 1e-3;  // of a step
        std::set<ValueId> off;
        double worst = 0;
        std::string worst_name;
        for (const TidlLayer& layer : layers()) {
            const Tensor* tensor = layer.weight == no_value ? nullptr : run_.constant(layer.weight);
            const auto entry =
                tensor == nullptr ? weights_.end() : weights_.find(run_.graph.values[layer.weight].name);
            if (entry == weights_.end() || entry->second->encodings.size() != 1) continue;
            const double step = entry->second->encodings.front().scale;
            double error = 0;
            for (const double weight : numbers_of(tensor->view()))
                error = std::max(error, std::abs(weight / step - std::round(weight / step)));
            if (error <= rounding_noise) continue;
            off.insert(layer.weight);
            if (error <= worst) continue;
            worst = error;
            worst_name = run_.graph.values[layer.weight].name;
        }
        if (off.empty()) return;
        remarks_.add(fmt::format(
            "weights off their grids: {}, most of all '{}', by up to {:.2f} of a step: PACT2 training saves "
            "them unrounded, so a float run of this model is not what the device computes; `qcalib "
            "simulate` is closer",
            off.size(), printable(worst_name), worst));
    }

    void wide_codes() {
        constexpr int trained_bits = 8;
        std::size_t wide = 0;
        for (const TensorEncoding& one : run_.set.activations) wide += one.width() > trained_bits ? 1 : 0;
        if (wide == 0) return;
        remarks_.add(fmt::format(
            "16 bits for {} of {} tensors, but the model's Clips were trained for 8: TI says that such a "
            "model does badly in 16 bits (users saw an error of 0.2 where 8 bits had 0.04); calibrate "
            "the float model for 16 bits",
            wide, run_.set.activations.size()));
    }

    const TidlRun& run_;
    Remarks& remarks_;
    std::unordered_map<std::string, const Decision*> decision_of_;
    std::unordered_map<std::string, const TensorEncoding*> weights_;
    std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

void add_tidl_clip_findings(const TidlRun& run, std::span<const Decision> decisions, Remarks& remarks) {
    ClipFindings(run, decisions, remarks).run();
}

}  // namespace qcalib
