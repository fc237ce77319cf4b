#include "audit/causes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "audit/evidence.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr std::string_view own_list = "the converter measured it on its own input list";

std::string number(double value) {
    return fmt::format("{:.7g}", value);
}

std::string quoted_name(std::string_view name) {
    return fmt::format("'{}'", printable(name));
}

bool all_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "Conv" of "Conv_24", "/stem/Conv" or "/stem/Conv_24"; "Hswish" of "Add_11_Hswish"; else "".
std::string operator_in(std::string_view layer) {
    constexpr std::string_view hswish = "_Hswish";
    if (layer.ends_with(hswish)) return std::string(hswish.substr(1));
    if (const std::size_t slash = layer.rfind('/'); slash != std::string_view::npos)
        layer.remove_prefix(slash + 1);
    const std::size_t underscore = layer.rfind('_');
    if (underscore != std::string_view::npos && all_digits(layer.substr(underscore + 1)))
        layer = layer.substr(0, underscore);
    return std::string(layer);
}

bool is_activation_function(std::string_view op) {
    return op == "Relu" || op == "Clip" || op == "Relu6" || op == "LeakyRelu" || op == "PRelu";
}

bool has_weights(std::string_view op) {
    return op == "Conv" || op == "ConvTranspose" || op == "Gemm" || op == "MatMul" ||
           op == "FullyConnected" || op == "BatchNormalization";
}

// What the operator's output cannot exceed if its input does not: it hands on, averages or shrinks.
bool never_grows(std::string_view op) {
    constexpr std::array<std::string_view, 7> operators = {
        "Hswish", "Relu", "Clip", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"};
    return std::find(operators.begin(), operators.end(), op) != operators.end();
}

const FoundEncoding* encoding_of(const Match& match) {
    return match.found->encodings.empty() ? nullptr : &match.found->encodings.front();
}

// "layer 'Add_11_Hswish', " where the result names one.
std::string layer_text(const Match& match) {
    return match.found->layer.empty() ? "" : fmt::format("layer {}", quoted_name(match.found->layer));
}

// Whether the operator has that encoding whatever the data.
bool is_fixed(const AuditContext& context, const std::string& op, const FoundEncoding& found) {
    const FixedRule* rule = context.input.target->fixed_rule(op);
    if (rule == nullptr) return false;
    for (const bool symmetric : {false, true}) {
        const FixedRule::Grid* grid = rule->grid(found.bits, symmetric);
        if (grid == nullptr) continue;
        const double min = grid->step * static_cast<double>(grid->offset);
        const double max = min + grid->step * (std::ldexp(1.0, grid->bits) - 1);
        if (equal_as_printed(min, found.min, max) && equal_as_printed(max, found.max, max)) return true;
    }
    return false;
}

// Whether the operator hands its input's encoding on, and the result has it so.
bool is_shared(const AuditContext& context, const Match& match, const std::string& op) {
    const Match* source = context.source_of(match);
    if (source == nullptr || encoding_of(*source) == nullptr || encoding_of(match) == nullptr) return false;
    return context.input.target->sharing_rule(op) != nullptr && *encoding_of(*source) == *encoding_of(match);
}

// Whether the converter made one activation function of several operators to get the tensor. Layers with
// weights take their entries whatever is fused into them.
bool is_fused(const AuditContext& context, const Match& match) {
    if (operator_in(match.found->layer) == "Hswish") return true;
    const Fusion* fusion = context.model ? context.model->fusion_making(match.name) : nullptr;
    return fusion != nullptr && !has_weights(context.model->graph().nodes[fusion->nodes.front()].op_type);
}

// "; its maximum 17.9791 is above the producer's 12.27105 ('1572'), so it was measured on unclipped data", or
// "".
std::string beyond_producer(const AuditContext& context, const Match& match, const std::string& op) {
    const Match* source = context.source_of(match);
    if (!never_grows(op) || source == nullptr || encoding_of(*source) == nullptr) return "";
    const FoundEncoding& found = *encoding_of(match);
    const FoundEncoding& before = *encoding_of(*source);
    if (!(found.max.value > before.max.value + 2 * before.step())) return "";
    return fmt::format(
        "; its maximum {} is above the producer's maximum {} ({}), which {} cannot exceed: it was "
        "measured on unclipped data",
        number(found.max.value), number(before.max.value), quoted_name(source->name),
        op == "Hswish" ? "HardSwish" : op);
}

std::string statistics_text(const AuditContext& context, const Match& match,
                            const std::optional<ShownEncoding>& given) {
    const StatisticsFile* statistics = context.input.statistics;
    const FoundEncoding* found = encoding_of(match);
    if (statistics == nullptr || found == nullptr || !fault_of(*found).empty()) return "";
    const auto evidence = measured(*statistics, match.name, *found, *context.input.target);
    if (!evidence) return "";
    return "; " + evidence->text + clipping_text(*statistics, match.name, *found, given);
}

void explain_reason(const AuditContext& context, const Match& match, const Comparison& comparison,
                    Finding& finding) {
    const bool parameter = match.found->kind == FoundTensor::Kind::parameter;
    const std::string widened_to = finding.found ? range_text(*finding.found) : "";
    switch (comparison.reason) {
        case Comparison::Reason::width:
            finding.cause = comparison.detail;
            finding.advice = fmt::format(
                "give the quantizer --{}_bitwidth {} (and --override_params), or change the "
                "entry",
                parameter ? "weights" : "act", comparison.given.bits);
            return;
        case Comparison::Reason::floating:
            finding.cause = comparison.detail;
            finding.advice =
                "see which operator does not take this type, and give all its inputs and outputs one";
            return;
        case Comparison::Reason::channels:
            finding.cause = comparison.detail;
            finding.advice =
                "give as many encodings as the weight has output channels, or one, and the converter's "
                "flag for encodings per channel";
            return;
        case Comparison::Reason::widened:
        case Comparison::Reason::symmetric:
            finding.cause = fmt::format("the entry was taken, but {} by the rule of {}", comparison.detail,
                                        context.input.target->name);
            finding.advice = fmt::format("give {}", widened_to);
            return;
        case Comparison::Reason::none:
            return;
    }
}

void explain_own_range(const AuditContext& context, const Match& match, Finding& finding) {
    const std::string op = context.operator_of(match);
    const FoundEncoding& found = *encoding_of(match);
    if (context.input.files_only) {
        finding.cause = "the two files differ";
    } else if (match.found->kind == FoundTensor::Kind::parameter) {
        finding.cause = "the converter derived the encoding from the weights anew";
        finding.advice =
            "give the quantizer --override_params; clip the weights to the ends given where it derives "
            "encodings itself";
        constexpr double known_deviation = 3e-4;
        const double larger = std::max(std::abs(found.min.value), std::abs(found.max.value));
        if (finding.given && std::abs(finding.given->max - found.max.value) <= known_deviation * larger)
            finding.cause += "; its symmetric scales are known to differ by up to 0.03 %";
    } else if (is_fixed(context, op, found)) {
        finding.cause =
            fmt::format("{} has a fixed encoding in {}, whatever is given", op, context.input.target->name);
        finding.advice = fmt::format("give {}, so that a simulation uses it too", range_text(*finding.found));
    } else if (is_shared(context, match, op)) {
        const std::string source = quoted_name(context.source_of(match)->name);
        finding.cause = fmt::format("{} hands the encoding of {} on", op, source);
        finding.advice = fmt::format("give this tensor and {} one range that holds both", source);
    } else if (is_fused(context, match)) {
        const std::string layer = layer_text(match);
        finding.cause =
            fmt::format("the converter fused {}{} and dropped the entry of its output{}",
                        op == "Hswish" ? "HardSwish" : op, layer.empty() ? "" : " (" + layer + ")",
                        beyond_producer(context, match, op));
        finding.advice =
            "use the range found when you simulate or train, or write the activation so that the converter "
            "does not fuse it";
    } else {
        const std::string layer = layer_text(match);
        finding.cause =
            fmt::format("the entry was not used: {}{}{}", own_list, layer.empty() ? "" : " (" + layer + ")",
                        beyond_producer(context, match, op));
        finding.advice =
            context.entries_taken || context.input.found->override_params
                ? "other entries were taken: see what the converter made of the operator, and whether it "
                  "takes overrides"
                : "give --quantization_overrides to the converter and --override_params to the quantizer";
    }
}

// The tensor that an activation function makes of this one alone, or nullptr.
const Match* behind_activation(const AuditContext& context, const Match& match) {
    if (context.model && context.model->has(match.name)) {
        const std::vector<const Node*> readers = context.model->readers(match.name);
        if (readers.size() != 1 || !is_activation_function(readers.front()->op_type)) return nullptr;
        return context.find(context.model->output_of(*readers.front()));
    }
    const Match* next = &match + 1;
    if (next == context.matches.data() + context.matches.size()) return nullptr;
    const bool chain =
        has_weights(context.operator_of(match)) && is_activation_function(context.operator_of(*next));
    return chain ? next : nullptr;
}

void explain_before_activation(const AuditContext& context, const Match& next, Finding& finding) {
    const std::string op = context.operator_of(next);
    finding.cause =
        fmt::format("it is the value before {} {}, which {}; {}", op.empty() ? "the activation" : op,
                    quoted_name(next.name), next.entry ? "has an entry" : "has none either", own_list);
    finding.advice = "complete the file: qcalib emit --base FILE fills what is missing";
    if (const FoundEncoding* used = encoding_of(next)) {
        finding.advice += fmt::format("; only {} to {} of it is used behind {}", number(used->min.value),
                                      number(used->max.value), op.empty() ? "the activation" : op);
    }
}

// Without a model: the layers of inputs come first and have the names of their buffers. Where all layers
// have, only the first one is known for an input.
bool is_input(const AuditContext& context, const Match& match) {
    if (context.model) return context.model->is_input(match.name);
    const auto named_alike = [](const Match& one) { return one.found->layer == one.found->name; };
    const auto others = std::find_if_not(context.matches.begin(), context.matches.end(), named_alike);
    const auto inputs = others == context.matches.end()
                            ? std::min<std::ptrdiff_t>(1, others - context.matches.begin())
                            : others - context.matches.begin();
    return &match - context.matches.data() < inputs;
}

// The layer of the result into which a tensor of numbers for names went: between the tensors before and
// after.
const Match* fused_by_number(const AuditContext& context, const std::string& tensor) {
    if (!all_digits(tensor)) return nullptr;
    const auto below = [&](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    };
    for (std::size_t i = 1; i < context.matches.size(); ++i) {
        const std::string& before = context.matches[i - 1].name;
        const std::string& after = context.matches[i].name;
        if (context.operator_of(context.matches[i]) != "Hswish" || !all_digits(before) || !all_digits(after))
            continue;
        if (below(before, tensor) && below(tensor, after)) return &context.matches[i];
    }
    return nullptr;
}

// The fused layer whose first operator makes the tensor: '/act/Add_output_0' and layer '/act/Add_Hswish'.
const Match* fused_by_layer(const AuditContext& context, const std::string& tensor) {
    constexpr std::string_view suffix = "_Hswish";
    for (const Match& match : context.matches) {
        std::string_view layer = match.found->layer;
        if (!layer.ends_with(suffix)) continue;
        layer.remove_suffix(suffix.size());
        const std::string_view name = tensor;
        if (name.starts_with(layer) && (name.size() == layer.size() || name[layer.size()] == '_'))
            return &match;
    }
    return nullptr;
}

void explain_fused(const AuditContext& context, const Match& into, Finding& finding) {
    const std::string op = context.operator_of(into);
    const std::string layer = layer_text(into);
    finding.cause = fmt::format("fused into {}{} ({}): the converter keeps no tensor of that name",
                                op.empty() ? "the operator" : op, layer.empty() ? "" : ", " + layer,
                                "output " + quoted_name(into.name));
    finding.advice = fmt::format("drop the entry; what counts is that of {}", quoted_name(into.name));
}

// Why a tensor that the model has is not in the result.
void explain_vanished(const AuditContext& context, const std::string& tensor, Finding& finding) {
    const ModelView& model = *context.model;
    if (model.is_constant(tensor)) {
        finding.cause = "folded: it hangs on constants alone, and the converter computes it";
        finding.advice = "drop the entry";
        return;
    }
    if (!model.reaches_output(tensor)) {
        finding.cause = "no output of the model hangs on it: the converter removes what makes it";
        finding.advice = "drop the entry";
        return;
    }
    if (model.is_integer(tensor)) {
        finding.cause = "it is no float tensor: it has no encoding";
        finding.advice = "drop the entry";
        return;
    }
    if (const Fusion* fusion = model.fusion_around(tensor)) {
        const std::string& output = model.graph().values[fusion->output].name;
        finding.cause = fmt::format("fused: it lies inside {}, of which only the output {} is kept",
                                    fusion->pattern->name, quoted_name(output));
        finding.advice = fmt::format("drop the entry; what counts is that of {}", quoted_name(output));
        return;
    }
    const auto kept = [&](const std::string& name) { return context.find(name) != nullptr; };
    const std::vector<std::string> into = model.next(tensor, kept);
    if (!into.empty()) return explain_fused(context, *context.find(into.front()), finding);
    finding.cause = "the model has it, the result does not: fused, or removed by the converter";
    finding.advice = "see what the converter made of the node that makes it";
}

std::vector<std::string> names_without_entry(const AuditContext& context) {
    std::vector<std::string> names;
    for (const Match& match : context.matches) {
        if (!match.entry) names.push_back(match.name);
    }
    return names;
}

void explain_wrong_name(const AuditContext& context, const std::string& tensor, Finding& finding) {
    const std::vector<std::string> candidates = names_without_entry(context);
    std::string_view bare = tensor;
    for (std::string_view next = without_converter_suffix(bare); next != bare;
         next = without_converter_suffix(bare)) {
        bare = next;
        const bool there = context.find(bare) != nullptr || (context.model && context.model->has(bare));
        if (!there) continue;
        finding.cause = fmt::format(
            "wrong name: no tensor of the model is called so; converters add {} to names, and "
            "look entries up by the model's own",
            quoted_name(std::string_view(tensor).substr(bare.size())));
        finding.advice = fmt::format("call it {}", quoted_name(bare));
        return;
    }
    const std::string nearest = nearest_name(tensor, candidates);
    finding.cause = context.model
                        ? "wrong name: neither the model nor the result has it"
                        : "wrong name, or a tensor the converter does not keep: the result does not have it";
    if (!nearest.empty()) finding.cause += fmt::format("; {} has no entry", quoted_name(nearest));
    finding.advice = nearest.empty() ? "take the names of the model's tensors (qcalib emit writes them)"
                                     : fmt::format("did you mean {}?", quoted_name(nearest));
}

// The tensor that the layer or node of that name makes, or "".
std::string output_of_node(const AuditContext& context, const std::string& name) {
    for (const Match& match : context.matches) {
        if (match.found->layer == name && match.name != name) return match.name;
    }
    if (!context.model || context.model->has(name)) return "";
    const Node* node = context.model->node(name);
    return node == nullptr ? "" : context.model->output_of(*node);
}

}  // namespace

std::string AuditContext::operator_of(const Match& match) const {
    const std::string by_layer = operator_in(match.found->layer);
    if (by_layer == "Hswish" || !model) return by_layer;
    if (const Fusion* fusion = model->fusion_making(match.name)) return fusion->pattern->name;
    const Node* node = model->producer(match.name);
    return node != nullptr ? node->op_type : by_layer;
}

const Match* AuditContext::find(std::string_view name) const {
    const auto place =
        std::find_if(matches.begin(), matches.end(), [&](const Match& match) { return match.name == name; });
    return place == matches.end() ? nullptr : &*place;
}

const Match* AuditContext::source_of(const Match& match) const {
    if (model && model->has(match.name)) {
        constexpr int most_steps = 16;
        std::string name = match.name;
        for (int i = 0; i < most_steps; ++i) {
            const Node* node = model->producer(name);
            if (node == nullptr) return nullptr;
            name = model->data_input(*node);
            if (const Match* source = find(name)) return source;
        }
        return nullptr;
    }
    if (match.found->layer.empty() || &match == matches.data()) return nullptr;
    return &match - 1;
}

void explain_recomputed(const AuditContext& context, const Match& match, const Comparison& comparison,
                        Finding& finding) {
    if (comparison.reason == Comparison::Reason::none) {
        explain_own_range(context, match, finding);
    } else {
        explain_reason(context, match, comparison, finding);
    }
    if (comparison.close)
        finding.cause = fmt::format("close: within {:.2g} steps; ", *finding.steps) + finding.cause;
    if (comparison.reason == Comparison::Reason::none)
        finding.cause += statistics_text(context, match, finding.given);
}

void explain_missing(const AuditContext& context, const Match& match, Finding& finding) {
    const bool parameter = match.found->kind == FoundTensor::Kind::parameter;
    const std::string bare(without_converter_suffix(match.name));
    if (context.input.files_only) {
        finding.cause = "only the other file has it";
        return;
    }
    if (match.found->fell_back) {
        finding.cause = "no entry: Quantizer V2 left it in float16";
        finding.advice =
            "complete the file, biases included: qcalib emit --base FILE; version 0.6.1 has its gaps filled "
            "from the input list instead";
        return;
    }
    if (parameter) {
        finding.cause = "no entry: the converter derived the encoding from the weights";
        finding.advice = "complete the file: qcalib emit --base FILE";
        return;
    }
    if (is_input(context, match)) {
        finding.cause = fmt::format("an input of the model without an entry; {}", own_list);
        finding.advice =
            "complete the file (qcalib emit --base FILE), or give the converter the calibration set as its "
            "input list";
    } else if (const Match* next = behind_activation(context, match)) {
        explain_before_activation(context, *next, finding);
    } else if (bare != match.name && context.find(bare) != nullptr) {
        finding.cause = fmt::format("a copy of {} that the converter inserted, with a range of its own",
                                    quoted_name(bare));
        finding.advice = fmt::format("give {} an entry", quoted_name(bare));
    } else if (context.model && !context.model->has(match.name)) {
        finding.cause =
            fmt::format("the converter inserted it: the model has no tensor of that name; {}", own_list);
        finding.advice = "complete the file, if the converter takes an entry for it";
    } else {
        finding.cause = fmt::format("no entry; {}", own_list);
        finding.advice = "complete the file: qcalib emit --base FILE";
    }
    finding.cause += statistics_text(context, match, std::nullopt);
}

void explain_unused(const AuditContext& context, const FileEntry& entry, Finding& finding) {
    const std::string& tensor = entry.encoding.tensor;
    if (context.input.files_only) {
        finding.cause = "only this file has it";
        return;
    }
    if (context.input.found->tensors.empty()) {
        finding.cause = "the logs have no quantized tensor at all";
        finding.advice = "run the quantizer, and give its log";
        return;
    }
    if (const std::string output = output_of_node(context, tensor); !output.empty()) {
        finding.cause = fmt::format("it is the name of a node: entries go by the tensor it makes, {}",
                                    quoted_name(output));
        finding.advice = fmt::format("call it {}", quoted_name(output));
    } else if (context.model && context.model->has(tensor)) {
        explain_vanished(context, tensor, finding);
    } else if (const Match* layer = fused_by_layer(context, tensor)) {
        explain_fused(context, *layer, finding);
    } else if (const Match* number = fused_by_number(context, tensor)) {
        explain_fused(context, *number, finding);
        const std::string nearest = nearest_name(tensor, names_without_entry(context));
        if (!nearest.empty())
            finding.cause += fmt::format("; or a wrong name: {} has no entry", quoted_name(nearest));
    } else {
        explain_wrong_name(context, tensor, finding);
    }
}

}  // namespace qcalib
