#include "target/tidl_findings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "target/tidl_rules.h"
#include "target/tidl_scales.h"

namespace qcalib {

namespace {

class TidlFindings {
  public:
    TidlFindings(const TidlRun& run, std::vector<Decision>& decisions, Remarks& remarks)
        : run_(run), decisions_(decisions), remarks_(remarks) {
        for (Decision& decision : decisions_) decision_of_.emplace(decision.tensor, &decision);
        for (const auto* section : {&run.set.activations, &run.set.parameters}) {
            for (const TensorEncoding& one : *section) entries_.emplace(one.tensor, &one);
        }
    }

    void run() {
        look_at_scales();
        look_at_concats();
        look_at_weights();
    }

  private:
    const TidlLayer& layer(std::size_t index) const { return run_.tensors.layers().at(index); }
    const std::string& name(std::size_t index) const { return run_.graph.values[layer(index).output()].name; }
    std::string named(std::size_t index) const { return fmt::format("'{}'", printable(name(index))); }

    void note(std::size_t index, std::string text) {
        const auto found = decision_of_.find(name(index));
        if (found != decision_of_.end()) found->second->notes.push_back(std::move(text));
    }

    void look_at_scales() {
        const std::vector<TidlScale> scales =
            tidl_scales(run_.graph, run_.constant, run_.tensors, run_.set, run_.target);
        std::vector<const TidlScale*> coarser;
        for (const TidlScale& scale : scales) {
            if (scale.bits_lost() > 0) {
                coarser.push_back(&scale);
                note(scale.layer, fmt::format("TIDL comes to scale {:.9g}, {:.2f} bits coarser: {}",
                                              scale.used, scale.bits_lost(), scale.why));
            }
            look_at_guards(scale);
        }
        remark_coarser(std::move(coarser), scales.size());
        remark_guards();
    }

    // The worst by name, all by number: without powers of two nearly every layer loses a part of a bit.
    void remark_coarser(std::vector<const TidlScale*> coarser, std::size_t all) {
        if (coarser.empty()) return;
        constexpr std::size_t most = 3;
        std::stable_sort(coarser.begin(), coarser.end(), [](const TidlScale* a, const TidlScale* b) {
            return a->bits_lost() > b->bits_lost();
        });
        std::vector<std::string> shown;
        for (const TidlScale* scale : std::span(coarser).first(std::min(most, coarser.size()))) {
            shown.push_back(fmt::format("{}: {:.2f} bits, scale {:.6g} where its range asks for {:.6g} ({})",
                                        named(scale->layer), scale->bits_lost(), scale->used, scale->given,
                                        scale->why));
        }
        remarks_.add(fmt::format(
            "TIDL's own scale is coarser than the range for {} of {} layers: {}{}; a Clip behind a "
            "convolution or an inner product, as the tidl-onnx form has, keeps the range's scale",
            coarser.size(), all, join(shown, "; "),
            coarser.size() > most ? "; --explain TENSOR tells the others" : ""));
    }

    void look_at_guards(const TidlScale& scale) {
        if (scale.guard_bits > 0) {
            const std::string text =
                fmt::format("{} by {} bit{} for the biases of {}", named(scale.layer), scale.guard_bits,
                            scale.guard_bits == 1 ? "" : "s", scale.guarded);
            note(scale.layer, "unless accuracy_level is 0 or bias_clipping is 1, TIDL coarsens " + text);
            guarded_.push_back(text);
        }
        if (!scale.weight_cap) return;
        const std::string text = fmt::format("{}: {:.4g} in place of {:.4g}", named(scale.layer),
                                             *scale.weight_cap, *scale.weights);
        note(scale.layer,
             "unless accuracy_level is 0 or bias_clipping is 1, TIDL caps its weights' scale: " + text);
        capped_.push_back(text);
    }

    void remark_guards() {
        constexpr std::string_view when =
            "at accuracy_level 1, or 9 without bias_clipping (the options written say 0, which keeps them)";
        if (!guarded_.empty()) {
            remarks_.add(fmt::format("TIDL coarsens ranges so that the biases behind them fit, {}: {}", when,
                                     shortened(guarded_)));
        }
        if (!capped_.empty()) {
            remarks_.add(
                fmt::format("TIDL caps the scale of weights so that the layer's biases fit (\"Weight Scale "
                            "Clipped\"), {}: {}",
                            when, shortened(capped_)));
        }
    }

    static std::string shortened(const std::vector<std::string>& texts) {
        constexpr std::size_t most = 3;
        const std::string shown = join(std::span(texts).first(std::min(most, texts.size())), "; ");
        return texts.size() > most ? fmt::format("{}; and {} more", shown, texts.size() - most) : shown;
    }

    // Inputs whose values need less than a 16th of what the concatenation's codes reach.
    void look_at_concats() {
        constexpr double mixed = 16;
        for (std::size_t i = 0; i < run_.tensors.layers().all().size(); ++i) {
            if (layer(i).type != "TIDL_ConcatLayer") continue;
            const Encoding* whole = encoding_of(name(i));
            if (whole == nullptr) continue;
            const double step = whole->scale;
            std::vector<std::string> fine;
            for (const std::size_t input : layer(i).inputs) {
                const Encoding* part = encoding_of(name(input));
                if (part == nullptr || step / part->scale < mixed) continue;
                const double codes = std::max(std::abs(part->min), std::abs(part->max)) / step;
                fine.push_back(fmt::format("{} needs a step of {:.3g} and reaches {:.0f} codes of {:.3g}",
                                           named(input), part->scale, std::floor(codes), step));
            }
            if (fine.empty()) continue;
            const std::string text = fmt::format("{} has one scale for inputs of very different ranges: {}",
                                                 run_.tensors.describe(i), join(fine, "; "));
            note(i, text);
            remarks_.add(
                fmt::format("{}: {}: give it 16 bits (--override '{}: {{bits: 16}}'), or scale the "
                            "inputs alike in the model, or make them outputs of their own",
                            named(i), text, printable(name(i))));
        }
    }

    const Encoding* encoding_of(const std::string& tensor) const {
        const auto found = entries_.find(tensor);
        const bool one = found != entries_.end() && found->second->encodings.size() == 1;
        return one ? &found->second->encodings.front() : nullptr;
    }

    // Weights that TIDL's own weight clipping would cut.
    void look_at_weights() {
        std::vector<std::string> clipped;
        for (std::size_t i = 0; i < run_.tensors.layers().all().size(); ++i) {
            const ValueId weight = layer(i).weight;
            const Tensor* tensor = weight == no_value ? nullptr : run_.constant(weight);
            if (tensor == nullptr || layer(i).type == "TIDL_BatchNormLayer") continue;
            const std::optional<Tensor> folded = run_.tensors.folded(weight);
            std::vector<double> magnitudes = numbers_of(folded ? folded->view() : tensor->view());
            for (double& one : magnitudes) one = std::abs(one);
            const std::optional<double> limit =
                tidl_clipped_weights(std::move(magnitudes), run_.target.weights.bits);
            if (!limit) continue;
            clipped.push_back(
                fmt::format("'{}' to {:.6g}", printable(run_.graph.values[weight].name), *limit));
        }
        if (clipped.empty()) return;
        remarks_.add(
            fmt::format("TIDL clips weights far above the median at accuracy_level 1, or 9 with "
                        "weight_clipping (the options written say 0, which does not): {}",
                        shortened(clipped)));
    }

    const TidlRun& run_;
    std::vector<Decision>& decisions_;
    Remarks& remarks_;
    std::map<std::string, Decision*> decision_of_;
    std::map<std::string, const TensorEncoding*> entries_;
    std::vector<std::string> guarded_;
    std::vector<std::string> capped_;
};

}  // namespace

std::string tidl_names(std::span<const std::string> names) {
    constexpr std::size_t most = 5;
    std::vector<std::string> shown;
    for (const std::string& name : names.first(std::min(most, names.size())))
        shown.push_back(fmt::format("'{}'", printable(name)));
    const std::string text = join(shown, ", ");
    return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

void add_tidl_findings(const TidlRun& run, std::vector<Decision>& decisions, Remarks& remarks) {
    TidlFindings(run, decisions, remarks).run();
    add_tidl_clip_findings(run, decisions, remarks);
}

}  // namespace qcalib
