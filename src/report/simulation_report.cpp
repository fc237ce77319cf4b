#include "report/simulation_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/table.h"

namespace qcalib {

namespace {

using Json = nlohmann::ordered_json;
using enum Table::Align;

constexpr std::size_t shown_tensors = 20;

std::string decibels(double value) {
    if (std::isinf(value)) return value > 0 ? "exact" : "-";
    return fmt::format("{:.1f}", value);
}

std::string in_steps(double error, double step) {
    return step > 0 ? fmt::format("{:.3g}", error / step) : "-";
}

std::string percent(double share) {
    return fmt::format("{:.3g} %", 100 * share);
}

// "u8", "s16".
std::string element_type(const ChainTensor& codes) {
    return fmt::format("{}{}", codes.is_signed ? 's' : 'u', codes.bits);
}

std::string bits_cell(const SimulatedTensor& tensor) {
    if (tensor.chain) return element_type(*tensor.chain);
    return tensor.bits == 0 ? "float" : std::to_string(tensor.bits);
}

// Of the error that comes out of a tensor's own encoding, which the integer chain does not tell apart.
std::string own_cell(const SimulatedTensor& tensor) {
    return tensor.chain ? "-" : decibels(cost_decibels(tensor.own_error()));
}

std::string top_cell(const std::optional<TopAgreement>& top, bool five) {
    if (!top || (five && !top->has_five)) return "-";
    return fmt::format("{}/{}", five ? top->top5 : top->top1, top->rows);
}

std::string outputs_text(const SimulationReport& report, std::size_t width) {
    Table table;
    table.column("output").column("bits", right).column("SQNR dB", right).column("cosine", right);
    table.column("mean error", right).column("largest", right).column("in steps", right);
    table.column("top-1", right).column("top-5", right);
    for (const SimulatedTensor& tensor : report.result.tensors) {
        if (!tensor.output) continue;
        const ErrorSums& error = tensor.error;
        table.row({printable(tensor.name), bits_cell(tensor), decibels(error.sqnr()),
                   fmt::format("{:.6f}", error.cosine()), fmt::format("{:.4g}", error.mean_error()),
                   fmt::format("{:.4g}", error.greatest_error), in_steps(error.greatest_error, tensor.step),
                   top_cell(tensor.top, false), top_cell(tensor.top, true)});
    }
    return table.empty() ? "" : table.text(width);
}

constexpr std::string_view no_claim =
    "An estimate by what is public of the target's arithmetic: no bit equality with the device is claimed.";

std::string notes_text(const SimulationReport& report) {
    std::string text;
    for (const std::string& note : report.result.notes) text += fmt::format("  {}\n", note);
    if (report.switches.arithmetic == Arithmetic::integer && !report.encodings.empty())
        text += fmt::format("  {}\n", no_claim);
    return text;
}

const IsolatedCost* isolated_cost(const SimulationReport& report, const std::string& name) {
    const auto found = std::find_if(report.isolated.begin(), report.isolated.end(),
                                    [&](const IsolatedCost& one) { return one.name == name; });
    return found == report.isolated.end() ? nullptr : &*found;
}

// The encoded tensors, the costliest first: by what each costs alone where that is known, else by what its
// own encoding adds to it.
std::vector<const SimulatedTensor*> ranked(const SimulationReport& report) {
    std::vector<const SimulatedTensor*> tensors;
    for (const SimulatedTensor& tensor : report.result.tensors) {
        if (tensor.bits != 0) tensors.push_back(&tensor);
    }
    const auto key = [&](const SimulatedTensor* tensor) {
        const IsolatedCost* alone = isolated_cost(report, tensor->name);
        const double own = tensor->chain ? tensor->error.relative_error() : tensor->own_error();
        return std::pair(alone == nullptr ? -1 : alone->cost, own);
    };
    std::ranges::stable_sort(tensors, [&](const auto* a, const auto* b) { return key(a) > key(b); });
    return tensors;
}

std::vector<std::string> tensor_cells(const SimulatedTensor& tensor, const SimulationReport& report) {
    const ErrorSums& error = tensor.error;
    std::vector<std::string> cells{printable(tensor.name), tensor.kind, bits_cell(tensor), own_cell(tensor)};
    if (report.isolated.empty()) {
        cells.insert(cells.end(), {decibels(error.sqnr()), fmt::format("{:.5f}", error.cosine()),
                                   in_steps(error.mean_error(), tensor.step)});
    } else {
        const IsolatedCost* cost = isolated_cost(report, tensor.name);
        cells.push_back(cost == nullptr ? "" : decibels(cost_decibels(cost->cost)));
        cells.push_back(decibels(error.sqnr()));
    }
    cells.push_back(in_steps(error.greatest_error, tensor.step));
    cells.push_back(tensor.clipped_share() > 0 ? fmt::format("{:.4f} %", 100 * tensor.clipped_share()) : "-");
    return cells;
}

std::string tensors_text(const SimulationReport& report, bool all, std::size_t width) {
    std::vector<const SimulatedTensor*> tensors = ranked(report);
    if (tensors.empty()) return "";
    const bool alone = !report.isolated.empty();
    Table table;
    table.column("tensor").column("kind").column("bits", right).column("own dB", right);
    if (alone) table.column("alone dB", right);
    table.column("SQNR dB", right);
    if (!alone) table.column("cosine", right).column("mean", right);
    table.column("max steps", right).column("clipped", right);
    const std::size_t count = all ? tensors.size() : std::min(tensors.size(), shown_tensors);
    for (std::size_t i = 0; i < count; ++i) table.row(tensor_cells(*tensors[i], report));
    std::string text = fmt::format("\nEncoded tensors, the costliest first ({}):\n{}",
                                   alone ? "by what each costs alone at the outputs"
                                   : report.switches.arithmetic == Arithmetic::integer
                                       ? "by its SQNR"
                                       : "by what its own encoding adds to it",
                                   table.text(width));
    if (count < tensors.size()) text += fmt::format("... and {} more (--all)\n", tensors.size() - count);
    if (report.whole)
        text +=
            "The model has If, Loop or Scan nodes: for each tensor alone the whole graph was run again.\n";
    return text;
}

std::string against_text(const SimulationReport& report, std::size_t width) {
    if (report.against.empty()) return "";
    Table table;
    table.column("tensor").column("elements", right).column("other code", right);
    table.column("beyond a step", right).column("max steps", right);
    for (const SimulatedTensor& tensor : report.result.tensors) {
        if (!tensor.dump) continue;
        table.row({printable(tensor.name), std::to_string(tensor.dump->elements),
                   std::to_string(tensor.dump->different), std::to_string(tensor.dump->beyond),
                   fmt::format("{:.3g}", tensor.dump->greatest_steps)});
    }
    std::string text = fmt::format("\nBeside {}:\n{}", printable(report.against), table.text(width));
    text += report.result.first_parting ? fmt::format("They part by more than a step first at '{}'.\n",
                                                      printable(*report.result.first_parting))
                                        : "No tensor parts by more than a step.\n";
    return text;
}

std::string changes_text(const std::vector<SwitchChange>& changes) {
    std::vector<std::string> parts;
    for (const SwitchChange& change : changes) parts.push_back(change.name + " " + change.value);
    return parts.empty() ? "as simulated" : join(parts, ", ");
}

std::string verdict_text(const Diagnosis& diagnosis) {
    switch (diagnosis.verdict) {
        case Diagnosis::Verdict::nothing_to_explain:
            return "No element has another code: there is nothing to explain.\n";
        case Diagnosis::Verdict::unexplained:
            return "No switch, nor any two, explain the difference.\n";
        case Diagnosis::Verdict::explained:
        case Diagnosis::Verdict::partly:
            break;
    }
    const bool whole = diagnosis.verdict == Diagnosis::Verdict::explained;
    std::string text;
    for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
        const TriedChanges& found = diagnosis.findings[i];
        const double left = found.errors.squared_steps / diagnosis.tried.front().errors.squared_steps;
        text += i > 0   ? "or as well:\n"
                : whole ? "The difference is explained by:\n"
                        : fmt::format("{} of the squared distance is explained by:\n", percent(1 - left));
        for (const SwitchChange& change : found.changes)
            text += fmt::format("  --{} {}: {}\n", change.name, change.value, change.text);
    }
    if (!diagnosis.causes.empty()) text += "That hangs on:\n";
    for (const ChainCause& cause : diagnosis.causes) {
        const SwitchChange& one = cause.assumption;
        text += fmt::format("  --{} {}: {} (without it {} element{} another code)\n", one.name, one.value,
                            one.text, cause.different, cause.different == 1 ? " has" : "s have");
    }
    for (const std::string& advice : diagnosis.advice) text += fmt::format("Advice: {}.\n", advice);
    return text;
}

std::string diagnosis_text(const Diagnosis& diagnosis, std::size_t width) {
    constexpr std::size_t shown = 10;
    Table table;
    table.column("switches").column("other code", right).column("max steps", right).column("left", right);
    const double before = diagnosis.tried.front().errors.squared_steps;
    for (std::size_t i = 0; i < std::min(shown, diagnosis.tried.size()); ++i) {
        const TriedChanges& one = diagnosis.tried[i];
        table.row({changes_text(one.changes), std::to_string(one.errors.different),
                   fmt::format("{:.3g}", one.errors.greatest_steps),
                   before > 0 ? percent(one.errors.squared_steps / before) : "-"});
    }
    return fmt::format("\nDiagnosis ({} ways tried, the nearest first):\n{}{}", diagnosis.tried.size() - 1,
                       table.text(width), verdict_text(diagnosis));
}

std::string bits_text(const BitsSearch& search, bool all, std::size_t width) {
    constexpr std::size_t shown = 10;
    Table ranking;
    ranking.column("tensor").column("alone dB", right);
    const std::size_t count = all ? search.ranking.size() : std::min(shown, search.ranking.size());
    for (std::size_t i = 0; i < count; ++i)
        ranking.row({printable(search.ranking[i].name), decibels(cost_decibels(search.ranking[i].cost))});
    Table curve;
    curve.column("on 16 bits", right).column("SQNR dB", right).column("as many at random", right);
    for (const BitsPoint& point : search.curve) {
        curve.row({std::to_string(point.tensors), decibels(cost_decibels(point.cost)),
                   decibels(cost_decibels(point.random_cost))});
    }
    return fmt::format(
        "\nTensors that win most on 16 bits:\n{}\nOutputs with the first of them on 16 bits:\n{}",
        ranking.text(width), curve.text(width));
}

std::string shares_text(const SimulationReport& report, bool all, std::size_t width) {
    const EncodingShares& shares = *report.shares;
    constexpr std::size_t shown = 20;
    std::string text =
        fmt::format("\nBeside {}: {} encodings differ, {} are the same; the outputs differ by {} dB.\n",
                    printable(report.other), shares.shares.size(), shares.same,
                    decibels(cost_decibels(shares.difference)));
    Table table;
    table.column("tensor").column("share", right).column("alone", right).column("closes", right);
    const std::size_t count = all ? shares.shares.size() : std::min(shown, shares.shares.size());
    for (std::size_t i = 0; i < count; ++i) {
        const EncodingShare& one = shares.shares[i];
        table.row({printable(one.name), percent(one.share), percent(one.alone), percent(one.closes)});
    }
    return table.empty() ? text : text + table.text(width);
}

// Printable, for names of tensors in them.
Json notes_json(const SimulationReport& report) {
    Json json = Json::array();
    for (const std::string& note : report.result.notes) json.push_back(printable(note));
    if (report.switches.arithmetic == Arithmetic::integer && !report.encodings.empty())
        json.push_back(no_claim);
    return json;
}

Json number(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json json_of(const DumpErrors& errors) {
    return {{"elements", errors.elements},
            {"other_code", errors.different},
            {"beyond_a_step", errors.beyond},
            {"squared_steps", errors.squared_steps},
            {"largest_steps", errors.greatest_steps}};
}

Json json_of(const SimulatedTensor& tensor) {
    const ErrorSums& error = tensor.error;
    Json json = {{"tensor", printable(tensor.name)}, {"kind", tensor.kind}, {"output", tensor.output}};
    if (tensor.bits != 0) {
        json["bits"] = tensor.bits;
        json["origin"] = printable(tensor.origin);
    }
    if (tensor.chain) {
        json["element_type"] = element_type(*tensor.chain);
        json["scale"] = tensor.chain->scale;
    }
    json["sqnr"] = number(error.sqnr());
    json["cosine"] = number(error.cosine());
    json["mean_error"] = error.mean_error();
    json["largest_error"] = error.greatest_error;
    if (tensor.step > 0) {
        json["step"] = tensor.step;
        json["mean_steps"] = error.mean_error() / tensor.step;
        json["largest_steps"] = error.greatest_error / tensor.step;
    }
    if (tensor.bits != 0 && !tensor.chain) {
        json["own_error"] = tensor.own_error();
        json["clipped_share"] = tensor.clipped_share();
    }
    json["elements"] = error.elements;
    if (error.left_out > 0) json["left_out"] = error.left_out;
    if (tensor.misfits > 0) json["other_shape"] = tensor.misfits;
    if (tensor.top) {
        json["rows"] = tensor.top->rows;
        json["top1"] = tensor.top->top1;
        if (tensor.top->has_five) json["top5"] = tensor.top->top5;
    }
    if (tensor.dump) json["against"] = json_of(*tensor.dump);
    return json;
}

Json json_of(const TriedChanges& tried) {
    Json changes = Json::array();
    for (const SwitchChange& change : tried.changes)
        changes.push_back({{"switch", change.name}, {"value", change.value}, {"text", change.text}});
    return {{"changes", changes}, {"errors", json_of(tried.errors)}};
}

Json json_of(const Diagnosis& diagnosis) {
    constexpr std::string_view verdicts[] = {"nothing to explain", "explained", "partly", "unexplained"};
    Json findings = Json::array();
    for (const TriedChanges& one : diagnosis.findings) findings.push_back(json_of(one));
    Json tried = Json::array();
    for (const TriedChanges& one : diagnosis.tried) tried.push_back(json_of(one));
    Json json = {{"verdict", verdicts[static_cast<std::size_t>(diagnosis.verdict)]},
                 {"findings", findings},
                 {"tried", tried}};
    for (const ChainCause& cause : diagnosis.causes) {
        json["causes"].push_back({{"switch", cause.assumption.name},
                                  {"value", cause.assumption.value},
                                  {"text", cause.assumption.text},
                                  {"other_code_without", cause.different}});
    }
    if (!diagnosis.advice.empty()) json["advice"] = diagnosis.advice;
    return json;
}

Json json_of(const std::vector<IsolatedCost>& costs) {
    Json json = Json::array();
    for (const IsolatedCost& one : costs)
        json.push_back({{"tensor", printable(one.name)}, {"cost", one.cost}});
    return json;
}

Json json_of(const BitsSearch& search) {
    Json curve = Json::array();
    for (const BitsPoint& point : search.curve) {
        curve.push_back(
            {{"tensors", point.tensors}, {"cost", point.cost}, {"random_cost", point.random_cost}});
    }
    return {{"ranking", json_of(search.ranking)}, {"curve", curve}};
}

Json json_of(const EncodingShares& shares) {
    Json list = Json::array();
    for (const EncodingShare& one : shares.shares) {
        list.push_back({{"tensor", printable(one.name)},
                        {"share", number(one.share)},
                        {"alone", number(one.alone)},
                        {"closes", number(one.closes)}});
    }
    return {{"difference", shares.difference}, {"same", shares.same}, {"encodings", list}};
}

std::vector<std::pair<std::string, std::string_view>> chain_switches(const ChainSwitches& chain) {
    const auto name = [](const auto& names, auto value) { return names[static_cast<std::size_t>(value)]; };
    return {{"network-input", name(network_input_names, chain.network_input)},
            {"leading-clip", name(leading_clip_names, chain.leading_clip)},
            {"batch-norm-weights", name(top_weight_names, chain.batch_norm_weights)},
            {"layer-weights", name(top_weight_names, chain.layer_weights)},
            {"shift-rounding", name(shift_rounding_names, chain.shift_rounding)},
            {"output-scale", name(output_scale_names, chain.output_scale)},
            {"element-signs", name(element_sign_names, chain.element_signs)}};
}

Json json_of(const SimulationSwitches& switches) {
    Json json = {
        {"rounding", rounding_names[static_cast<std::size_t>(switches.rounding)]},
        {"weights", weight_source_names[static_cast<std::size_t>(switches.weights)]},
        {"bias", bias_form_names[static_cast<std::size_t>(switches.bias)]},
        {"input_ranges", input_range_names[static_cast<std::size_t>(switches.inputs)]},
        {"pre_activations", pre_activation_names[static_cast<std::size_t>(switches.pre_activations)]}};
    if (switches.arithmetic == Arithmetic::fake) return json;
    json["arithmetic"] = arithmetic_names[static_cast<std::size_t>(switches.arithmetic)];
    for (auto [name, value] : chain_switches(switches.chain)) {
        std::ranges::replace(name, '-', '_');
        json[name] = value;
    }
    return json;
}

}  // namespace

std::string describe(const SimulationSwitches& switches) {
    std::string text = fmt::format("rounding {}, weights {}, bias {}, input-ranges {}, pre-activations {}",
                                   rounding_names[static_cast<std::size_t>(switches.rounding)],
                                   weight_source_names[static_cast<std::size_t>(switches.weights)],
                                   bias_form_names[static_cast<std::size_t>(switches.bias)],
                                   input_range_names[static_cast<std::size_t>(switches.inputs)],
                                   pre_activation_names[static_cast<std::size_t>(switches.pre_activations)]);
    if (switches.arithmetic == Arithmetic::fake) return text;
    text += ";\ninteger chain:";
    std::string_view separator = " ";
    for (const auto& [name, value] : chain_switches(switches.chain)) {
        text += fmt::format("{}{} {}", separator, name, value);
        separator = ", ";
    }
    return text;
}

std::string simulation_text(const SimulationReport& report, bool all, std::size_t width) {
    std::string text =
        fmt::format("{} sample{}", report.result.run.samples, report.result.run.samples == 1 ? "" : "s");
    if (!report.encodings.empty())
        text += fmt::format("; target {}: {}", report.target, describe(report.switches));
    text += "\n" + notes_text(report) + outputs_text(report, width);
    text += tensors_text(report, all, width);
    text += against_text(report, width);
    if (report.diagnosis) text += diagnosis_text(*report.diagnosis, width);
    if (report.bits) text += bits_text(*report.bits, all, width);
    if (report.shares) text += shares_text(report, all, width);
    return text;
}

std::string to_json(const SimulationReport& report, const Remarks& remarks) {
    Json json = {{"model", printable(report.model)},
                 {"data", printable(report.data)},
                 {"encodings", printable(report.encodings)},
                 {"target", report.target},
                 {"switches", json_of(report.switches)},
                 {"switches_source", report.evidence},
                 {"samples", report.result.run.samples},
                 {"skipped", report.result.run.skipped.size()},
                 {"cost", report.result.cost}};
    if (Json notes = notes_json(report); !notes.empty()) json["notes"] = std::move(notes);
    if (!report.converter_list.empty()) json["converter_list"] = printable(report.converter_list);
    Json tensors = Json::array();
    for (const SimulatedTensor& tensor : report.result.tensors) tensors.push_back(json_of(tensor));
    json["tensors"] = std::move(tensors);
    Json ranking = Json::array();
    for (const SimulatedTensor* tensor : ranked(report)) ranking.push_back(printable(tensor->name));
    json["ranking"] = std::move(ranking);
    if (!report.isolated.empty()) {
        json["isolated"] = json_of(report.isolated);
        json["isolated_ran"] = report.whole ? "the whole graph" : "the graph behind the tensor";
    }
    if (!report.against.empty()) {
        json["against"] = printable(report.against);
        json["first_parting"] =
            report.result.first_parting ? Json(printable(*report.result.first_parting)) : Json(nullptr);
    }
    if (report.diagnosis) json["diagnosis"] = json_of(*report.diagnosis);
    if (report.bits) json["bits_search"] = json_of(*report.bits);
    if (report.shares) {
        json["against_encodings"] = printable(report.other);
        json["shares"] = json_of(*report.shares);
    }
    json["remarks"] = Json::array();
    for (const std::string& remark : remarks.all()) json["remarks"].push_back(printable(remark));
    return json.dump(2) + "\n";
}

}  // namespace qcalib
