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

// Whether the text is the second of two choices; nothing where it is empty.
std::optional<bool> second_of(const std::string& text, const std::string& first, const std::string& second,
                              std::string_view option) {
    if (text.empty()) return std::nullopt;
    const std::vector<std::string> choices = {first, second};
    if (text != first && text != second) {
        fail("{}: expected {} or {}, found '{}'{}", option, first, second, printable(text),
             did_you_mean(text, choices));
    }
    return text == second;
}

std::optional<ValuePolicy> policy_of(const std::string& text, std::string_view option) {
    const std::optional<bool> fails = second_of(text, "skip", "fail", option);
    if (!fails) return std::nullopt;
    return *fails ? ValuePolicy::fail : ValuePolicy::skip;
}

}  // namespace

void EncodingOptions::add_to(CLI::App& app, bool emit_required) {
    const std::string group = "Encodings";
    CLI::Option* emit =
        app.add_option("--emit", emit_, "Write for a target: TARGET[:FORMAT]; may be given again")
            ->group(group)
            ->allow_extra_args(false);
    if (emit_required) emit->required();
    app.add_option(
           "--method", methods_,
           "How ranges are chosen, as minmax or percentile:p=99.9 (default: the target's); with a name or "
           "pattern before it, as 'conv*=mse', for these tensors alone; may be given again")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option("--weight-method", weight_methods_,
                   "The same for weights (default: the target's, minmax where it has none)")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option("--act-bits", activation_bits_, "Width of activations (default: the target's)")
        ->group(group);
    app.add_option("--weight-bits", weight_bits_, "Width of weights (default: the target's)")->group(group);
    app.add_option("--weights", weights_, "per-tensor or per-channel (default: the target's)")->group(group);
    app.add_flag("--symmetric-weights", symmetric_weights_, "Symmetric encodings for weights")->group(group);
    app.add_flag("--symmetric-activations", symmetric_activations_, "Symmetric encodings for activations")
        ->group(group);
    app.add_flag("--unsigned-symmetric", unsigned_symmetric_,
                 "Symmetric activations without negative values use all codes")
        ->group(group);
    app.add_option("--power-of-two", power_of_two_,
                   "yes: every step is a power of two (default: the target's)")
        ->group(group);
    app.add_option("--include-zero", include_zero_,
                   "no: asymmetric ranges need not contain zero (default: the target's)")
        ->group(group);
    app.add_option("--least-range", least_range_,
                   "Width that a narrower range is widened to (default: the target's)")
        ->group(group);
    app.add_option("--nonfinite", nonfinite_,
                   "NaN and infinities: skip (left out and counted) or fail (default: the target's)")
        ->group(group);
    app.add_option("--masks", masks_, "Masks: skip (left out and counted) or fail (default: the target's)")
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
    for (const std::string& text : methods_) options.methods.push_back(parse_method_rule(text));
    for (const std::string& text : weight_methods_) options.weight_methods.push_back(parse_method_rule(text));
    check_bits(activation_bits_, "--act-bits");
    check_bits(weight_bits_, "--weight-bits");
    options.activation_bits = activation_bits_;
    options.weight_bits = weight_bits_;
    options.per_channel_weights = second_of(weights_, "per-tensor", "per-channel", "--weights");
    options.power_of_two = second_of(power_of_two_, "no", "yes", "--power-of-two");
    options.include_zero = second_of(include_zero_, "no", "yes", "--include-zero");
    if (symmetric_weights_) options.symmetric_weights = true;
    if (symmetric_activations_) options.symmetric_activations = true;
    if (unsigned_symmetric_) options.unsigned_symmetric = true;
    if (least_range_ && !(*least_range_ > 0 && *least_range_ < 1e30)) {
        fail("--least-range: expected a number above 0 and below 1e30, found {}", *least_range_);
    }
    options.least_range = least_range_;
    options.nonfinite = policy_of(nonfinite_, "--nonfinite");
    options.masks = policy_of(masks_, "--masks");
    return options;
}

std::string EncodingOptions::describe(const Target& target) const {
    const AssignmentOptions options = assignment();
    const auto symmetry = [](bool symmetric) { return symmetric ? "symmetric" : "asymmetric"; };
    const bool per_channel = options.per_channel_weights.value_or(target.weights.per_channel);
    std::string text = fmt::format(
        "{}: method {}, activations {} bit {}, weights {} bit {} {}", target.name,
        activation_methods(options, target).describe(),
        options.activation_bits.value_or(target.activations.bits),
        symmetry(options.symmetric_activations.value_or(target.activations.symmetric)),
        options.weight_bits.value_or(target.weights.bits), per_channel ? "per channel" : "per tensor",
        symmetry(per_channel || options.symmetric_weights.value_or(target.weights.symmetric)));
    const std::string weight_method = weight_methods(options, target).describe();
    if (weight_method != "minmax") text += " by " + weight_method;
    if (options.power_of_two.value_or(target.power_of_two)) text += ", steps powers of two";
    if (!options.include_zero.value_or(target.include_zero)) text += ", ranges without zero";
    return text;
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
