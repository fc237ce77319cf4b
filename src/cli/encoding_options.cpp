#include "cli/encoding_options.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "runtime/kernel_registry.h"

namespace qcalib {

namespace {

void check_bits(const std::optional<int>& bits, std::string_view option) {
    if (bits && (*bits < 2 || *bits > 16)) fail("{}: expected 2 to 16 bits, found {}", option, *bits);
}

}  // namespace

void EncodingOptions::add_to(CLI::App& app, bool emit_required) {
    const std::string group = "Encodings";
    CLI::Option* emit =
        app.add_option("--emit", emit_, "Write for a target: TARGET[:FORMAT]; may be given again")
            ->group(group)
            ->allow_extra_args(false);
    if (emit_required) emit->required();
    app.add_option("--method", method_,
                   "How ranges are chosen, as minmax or ema:momentum=0.9 (default: the target's)")
        ->group(group);
    app.add_option("--act-bits", activation_bits_, "Width of activations (default: the target's)")
        ->group(group);
    app.add_option("--weight-bits", weight_bits_, "Width of weights (default: the target's)")->group(group);
    app.add_option("--weights", weights_, "per-tensor or per-channel (default: the target's)")->group(group);
    app.add_flag("--symmetric-weights", symmetric_weights_, "Symmetric encodings for weights")->group(group);
    app.add_flag("--symmetric-activations", symmetric_activations_, "Symmetric encodings for activations")
        ->group(group);
    app.add_option("--target-config", target_config_, "Use this YAML instead of the target's built-in rules")
        ->group(group);
}

std::vector<Emission> EncodingOptions::emissions(const std::filesystem::path& folder,
                                                 const std::string& stem) const {
    std::vector<Emission> emissions;
    for (const std::string& text : emit_) {
        const std::size_t colon = text.find(':');
        const std::string name = text.substr(0, colon);
        const std::optional<std::filesystem::path> replacement =
            target_config_.empty() ? std::nullopt : std::optional<std::filesystem::path>(target_config_);
        Emission& emission = emissions.emplace_back();
        emission.target = load_target(name, replacement);
        const bool other =
            colon != std::string::npos && text.substr(colon + 1) != emission.target.default_format;
        emission.format = &find_format(other ? text.substr(colon + 1) : emission.target.default_format);
        emission.file =
            folder / fmt::format("{}.{}{}{}", stem, name, other ? "." + emission.format->name() : "",
                                 emission.format->suffix());
        for (std::size_t i = 0; i + 1 < emissions.size(); ++i) {
            if (emissions[i].file == emission.file) fail("--emit: '{}' is given twice", printable(text));
        }
    }
    return emissions;
}

AssignmentOptions EncodingOptions::assignment() const {
    AssignmentOptions options;
    if (!method_.empty()) options.method = parse_method(method_);
    check_bits(activation_bits_, "--act-bits");
    check_bits(weight_bits_, "--weight-bits");
    options.activation_bits = activation_bits_;
    options.weight_bits = weight_bits_;
    if (!weights_.empty()) {
        const std::vector<std::string> choices = {"per-tensor", "per-channel"};
        if (weights_ != choices[0] && weights_ != choices[1]) {
            fail("--weights: expected per-tensor or per-channel, found '{}'{}", printable(weights_),
                 did_you_mean(weights_, choices));
        }
        options.per_channel_weights = weights_ == choices[1];
    }
    if (symmetric_weights_) options.symmetric_weights = true;
    if (symmetric_activations_) options.symmetric_activations = true;
    return options;
}

std::string EncodingOptions::describe(const Target& target) const {
    const AssignmentOptions options = assignment();
    const MethodChoice method = options.method ? *options.method : parse_method(target.default_method);
    const auto symmetry = [](bool symmetric) { return symmetric ? "symmetric" : "asymmetric"; };
    const bool per_channel = options.per_channel_weights.value_or(target.weights.per_channel);
    return fmt::format("{}: method {}, activations {} bit {}, weights {} bit {} {}", target.name,
                       to_string(method), options.activation_bits.value_or(target.activations.bits),
                       symmetry(options.symmetric_activations.value_or(target.activations.symmetric)),
                       options.weight_bits.value_or(target.weights.bits),
                       per_channel ? "per channel" : "per tensor",
                       symmetry(per_channel || options.symmetric_weights.value_or(target.weights.symmetric)));
}

void write_emissions(const std::vector<Emission>& emissions, const AssignmentOptions& options,
                     const Graph& graph, const StatisticsFile& statistics, Remarks& remarks) {
    if (emissions.empty()) return;
    const Program program(std::shared_ptr<const Graph>(std::shared_ptr<void>(), &graph), builtin_kernels(),
                          {});
    const auto constant = [&](ValueId value) { return program.constant(value); };
    for (const Emission& emission : emissions) {
        const EncodingSet encodings =
            assign_encodings(graph, constant, statistics, emission.target, options, remarks);
        write_file(emission.file, emission.format->emit(encodings));
    }
}

std::string output_stem(const std::filesystem::path& model) {
    return model.stem().string();
}

}  // namespace qcalib
