#include "cli/encoding_options.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/base_file.h"
#include "cli/onnx_names.h"
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

// Overrides for targets that nothing is written for.
void look_at_targets(std::span<const Override> overrides, std::span<const Emission> emissions,
                     Remarks& remarks) {
    std::vector<std::string> emitted;
    for (const Emission& emission : emissions) emitted.push_back(emission.target.name);
    std::vector<std::string> known = builtin_target_names();
    known.insert(known.end(), emitted.begin(), emitted.end());
    const auto among = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const Override& one : overrides) {
        if (!one.target || among(emitted, *one.target)) continue;
        const std::string label = fmt::format("{} '{}'", one.place, printable(one.pattern));
        if (!among(known, *one.target)) {
            fail("{}: target: expected one of {}, found '{}'{}", label, join(known, ", "),
                 printable(*one.target), did_you_mean(*one.target, known));
        }
        remarks.add(fmt::format("{} changed nothing: it is for target '{}', which --emit does not name",
                                label, *one.target));
    }
}

// A flag that says nothing where it is not given: CLI11 would set an optional bool to false then.
void add_choice(CLI::App& app, const std::string& name, std::optional<bool>& value,
                const std::string& description, const std::string& group) {
    app.add_flag_function(
           name, [&value](std::int64_t count) { value = count > 0; }, description)
        ->group(group);
}

std::string rules_in(const std::string& config) {
    return parse_target(read_text_file(config), config).name;
}

// The file with rules in place of the built-in ones of that target. Where one target is emitted it is the one
// that is given, whatever it holds.
std::optional<std::filesystem::path> config_for(const std::string& target, const EncodingSettings& settings) {
    const std::vector<std::string>& configs = settings.target_configs;
    if (configs.size() == 1 && settings.emit.size() == 1) return configs.front();
    const auto found = std::find_if(configs.begin(), configs.end(),
                                    [&](const std::string& config) { return rules_in(config) == target; });
    return found == configs.end() ? std::nullopt : std::optional<std::filesystem::path>(*found);
}

// Rules that no target of --emit takes would change nothing.
void check_configs(const EncodingSettings& settings) {
    if (settings.target_configs.size() == 1 && settings.emit.size() == 1) return;
    for (const std::string& config : settings.target_configs) {
        const std::string target = rules_in(config);
        const auto is_it = [&](const std::string& text) { return text.substr(0, text.find(':')) == target; };
        if (std::any_of(settings.emit.begin(), settings.emit.end(), is_it)) continue;
        fail("{}: holds the rules of target '{}', which --emit does not name", printable(config), target);
    }
}

// The default formats of a target are told apart by their suffixes; others have their names in the file's.
EmissionFile emission_file(const Target& target, const std::string& format,
                           const std::filesystem::path& stem) {
    EmissionFile file;
    file.format = &find_format(format);
    const std::vector<std::string>& usual = target.default_formats;
    const bool is_usual = std::find(usual.begin(), usual.end(), format) != usual.end();
    file.path = fmt::format("{}.{}{}{}", stem.string(), target.name, is_usual ? "" : "." + format,
                            file.format->suffix());
    return file;
}

void check_given_once(std::span<const Emission> emissions) {
    std::vector<std::filesystem::path> paths;
    for (const Emission& emission : emissions) {
        for (const EmissionFile& file : emission.files) {
            if (std::find(paths.begin(), paths.end(), file.path) != paths.end()) {
                fail("--emit: '{}:{}' is given twice", emission.target.name, file.format->name());
            }
            paths.push_back(file.path);
        }
    }
}

// Writes what a format makes of a model's encodings; answers the files, or the first where they fill a folder
// of their own ("<stem>.circle/qparam.json").
std::vector<std::filesystem::path> write_format(const EmissionFile& file, const EncodingSet& encodings,
                                                const EmittedModel& model, Remarks& remarks) {
    std::vector<std::filesystem::path> written;
    const std::filesystem::path folder = file.path.parent_path();
    for (const FormattedFile& one : file.format->files(encodings, model, file.path.filename(), remarks)) {
        written.push_back(folder / one.path);
        if (!written.back().parent_path().empty()) prepare_output_folder(written.back().parent_path());
        write_file(written.back(), one.bytes);
    }
    if (file.format->suffix().starts_with('/')) written.resize(1);
    return written;
}

}  // namespace

void set_least_range(const std::string& text, EncodingSettings& settings) {
    const bool number = !text.empty() && text.find_first_not_of("+-.0123456789eE") == std::string::npos;
    if (number) {
        settings.least_range = parse_real(text, "--least-range");
    } else {
        settings.least_range_name = text;
    }
}

void EncodingOptions::add_to(CLI::App& app, bool emit_required) {
    const std::string group = "Encodings";
    CLI::Option* emit =
        app.add_option("--emit", settings_.emit, "Write for a target: TARGET[:FORMAT]; may be given again")
            ->group(group)
            ->allow_extra_args(false);
    if (emit_required) emit->required();
    app.add_option(
           "--method", settings_.methods,
           "How ranges are chosen, as minmax or percentile:p=99.9 (default: the target's); with a name or "
           "pattern before it, as 'conv*=mse', for these tensors alone; may be given again")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option("--weight-method", settings_.weight_methods,
                   "The same for weights (default: the target's, minmax where it has none)")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option("--act-bits", settings_.activation_bits, "Width of activations (default: the target's)")
        ->group(group);
    app.add_option("--weight-bits", settings_.weight_bits, "Width of weights (default: the target's)")
        ->group(group);
    app.add_option("--weights", settings_.weights, "per-tensor or per-channel (default: the target's)")
        ->group(group);
    add_choice(app, "--symmetric-weights", settings_.symmetric_weights, "Symmetric encodings for weights",
               group);
    add_choice(app, "--symmetric-activations", settings_.symmetric_activations,
               "Symmetric encodings for activations", group);
    add_choice(app, "--unsigned-symmetric", settings_.unsigned_symmetric,
               "Symmetric activations without negative values use all codes", group);
    app.add_option("--power-of-two", settings_.power_of_two,
                   "yes: every step is a power of two (default: the target's)")
        ->group(group);
    app.add_option("--include-zero", settings_.include_zero,
                   "no: asymmetric ranges need not contain zero (default: the target's)")
        ->group(group);
    app.add_option_function<std::string>(
           "--least-range", [this](const std::string& text) { set_least_range(text, settings_); },
           "Width that a narrower range is widened to, or a name that the target's rules have for one, as "
           "classic (0.01) and current (0.0001) (default: the target's)")
        ->group(group);
    app.add_option(
           "--bias-bits", settings_.bias_bits,
           "Write entries for biases, of this width; 32: at the scale of input times weight (default: "
           "none)")
        ->group(group);
    app.add_option("--override", settings_.override_flags,
                   "Settings for one tensor, or for those that a glob matches, as 'conv1: {step: 0.125}': "
                   "range, step, bits, symmetric, skip, copy; may be given again")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option(
           "--base", settings_.base,
           "Keep the encodings of this file (any format of 'qcalib list formats', or an ONNX model with "
           "Clip or QuantizeLinear nodes) and fill in what it lacks")
        ->group(group);
    app.add_option("--patch", settings_.patch,
                   "A file of the compiler's own whose numbers are replaced, where the format can do that "
                   "(tidl-prototxt); all else in it stays as it is")
        ->group(group);
    app.add_option("--onnx", settings_.onnx,
                   "The ONNX model that a .circle or .tflite model was converted from: --override and --base "
                   "may use its names (qcalib map shows which tensor is which)")
        ->group(group);
    app.add_option("--nonfinite", settings_.nonfinite,
                   "NaN and infinities: skip (left out and counted) or fail (default: the target's)")
        ->group(group);
    app.add_option("--masks", settings_.masks,
                   "Masks: skip (left out and counted) or fail (default: the target's)")
        ->group(group);
    app.add_option(
           "--target-config", settings_.target_configs,
           "Use this YAML instead of the built-in rules of the target whose name it has; may be given "
           "again")
        ->group(group)
        ->allow_extra_args(false);
}

std::vector<Emission> EncodingOptions::emissions(const std::filesystem::path& folder,
                                                 const std::string& stem) const {
    check_configs(settings_);
    std::vector<Emission> emissions;
    for (const std::string& text : settings_.emit) {
        const std::size_t colon = text.find(':');
        const std::string name = text.substr(0, colon);
        Emission& emission = emissions.emplace_back();
        emission.target = load_target(name, config_for(name, settings_));
        std::vector<std::string> formats = emission.target.default_formats;
        if (colon != std::string::npos) formats = {text.substr(colon + 1)};
        for (const std::string& format : formats)
            emission.files.push_back(emission_file(emission.target, format, folder / stem));
    }
    check_given_once(emissions);
    return emissions;
}

AssignmentOptions EncodingOptions::assignment() const {
    AssignmentOptions options;
    for (const std::string& text : settings_.methods) options.methods.push_back(parse_method_rule(text));
    for (const std::string& text : settings_.weight_methods)
        options.weight_methods.push_back(parse_method_rule(text));
    check_bits(settings_.activation_bits, "--act-bits");
    check_bits(settings_.weight_bits, "--weight-bits");
    options.activation_bits = settings_.activation_bits;
    options.weight_bits = settings_.weight_bits;
    options.per_channel_weights = second_of(settings_.weights, "per-tensor", "per-channel", "--weights");
    options.power_of_two = second_of(settings_.power_of_two, "no", "yes", "--power-of-two");
    options.include_zero = second_of(settings_.include_zero, "no", "yes", "--include-zero");
    options.symmetric_weights = settings_.symmetric_weights;
    options.symmetric_activations = settings_.symmetric_activations;
    options.unsigned_symmetric = settings_.unsigned_symmetric;
    if (settings_.least_range && !(*settings_.least_range > 0 && *settings_.least_range < 1e30)) {
        fail("--least-range: expected a number above 0 and below 1e30, found {}", *settings_.least_range);
    }
    options.least_range = settings_.least_range;
    options.least_range_name = settings_.least_range_name;
    options.bias_bits = settings_.bias_bits;
    options.overrides = settings_.overrides;
    for (const std::string& text : settings_.override_flags) {
        const std::vector<Override> parsed = parse_override(text);
        options.overrides.insert(options.overrides.end(), parsed.begin(), parsed.end());
    }
    options.nonfinite = policy_of(settings_.nonfinite, "--nonfinite");
    options.masks = policy_of(settings_.masks, "--masks");
    return options;
}

void EncodingOptions::complete(AssignmentOptions& options, const Graph& graph,
                               std::span<const Emission> emissions, Remarks& remarks) const {
    if (emissions.empty()) {
        if (!options.overrides.empty())
            fail("--override: expected --emit to say for which target, found none");
        if (!settings_.base.empty()) fail("--base: expected --emit to say for which target, found none");
        return;
    }
    look_at_targets(options.overrides, emissions, remarks);
    if (!settings_.onnx.empty())
        take_onnx_names(settings_.onnx, settings_.base, graph, emissions, options, remarks);
    std::vector<std::string> names;
    for (const Value& value : graph.values) names.push_back(value.name);
    for (const Emission& emission : emissions) {
        const Target& target = emission.target;
        OverrideTable(options.overrides, target.name, target.scale_is_multiplier).check_names(names);
    }
    if (!settings_.base.empty() && settings_.onnx.empty())
        options.base = read_base(settings_.base, graph, remarks);
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
    if (options.bias_bits) text += fmt::format(", biases {} bit", *options.bias_bits);
    if (!settings_.base.empty()) text += ", on the base of " + printable(settings_.base);
    return text;
}

std::vector<EmittedEncodings> write_emissions(const std::vector<Emission>& emissions,
                                              const AssignmentOptions& options,
                                              const std::filesystem::path& patch, const Model& model,
                                              const StatisticsFile& statistics, Remarks& remarks) {
    std::vector<EmittedEncodings> emitted;
    if (emissions.empty()) return emitted;
    const Program program(model.graph, builtin_kernels(), {});
    const auto constant = [&](ValueId value) { return program.constant(value); };
    for (const Emission& emission : emissions) {
        EmittedEncodings& one = emitted.emplace_back();
        one.encodings = assign_encodings(*model.graph, constant, statistics, emission.target, options,
                                         remarks, &one.decisions);
        const EmittedModel emitted_model{model, constant, emission.target, one.decisions, patch};
        for (const EmissionFile& file : emission.files) {
            for (std::filesystem::path& path : write_format(file, one.encodings, emitted_model, remarks))
                one.written.push_back(std::move(path));
        }
    }
    return emitted;
}

void add_written(std::span<const EmittedEncodings> emitted, std::vector<std::filesystem::path>& written) {
    for (const EmittedEncodings& one : emitted)
        written.insert(written.end(), one.written.begin(), one.written.end());
}

std::string output_stem(const std::filesystem::path& model) {
    return model.stem().string();
}

}  // namespace qcalib
