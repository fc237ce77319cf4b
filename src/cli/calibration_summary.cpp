#include "cli/calibration_summary.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/operator_costs.h"
#include "report/table.h"
#include "runtime/profile.h"

namespace qcalib {

namespace {

std::string counted_samples(const CalibrationResult& result) {
    const std::size_t skipped = result.skipped.size();
    const std::string resumed =
        result.resumed == 0 ? "" : fmt::format(", {} of these before a checkpoint", result.resumed);
    if (result.sequences == 0) {
        return fmt::format("{} counted, {} skipped{}", result.samples, skipped, resumed);
    }
    return fmt::format("{} steps of {} sequences counted, {} sequences skipped{}", result.samples,
                       result.sequences, skipped, resumed);
}

void print_tables(const Console& console, const CalibrationSummary& summary) {
    const CalibrationResult& result = summary.result;
    const StatisticsSummary& statistics = summary.statistics;
    Table table;
    table.column("").column("");
    table.row({"tensors",
               fmt::format("{} activations, {} constants", statistics.activations, statistics.constants)});
    table.row({"samples", counted_samples(result)});
    if (summary.shuffle_seed) table.row({"shuffled", fmt::format("with seed {}", *summary.shuffle_seed)});
    if (!statistics.without_data.empty()) {
        table.row({"without data", count_and_names(statistics.without_data)});
    }
    table.row({"all zero", count_and_names(statistics.all_zero)});
    table.row({"with NaN", count_and_names(statistics.with_nan)});
    table.row({"with Inf", count_and_names(statistics.with_infinity)});
    table.row({"with masks",
               count_and_names(statistics.with_masks) +
                   (statistics.masks > 0 ? fmt::format(", {} values left out", statistics.masks) : "")});
    add_rows(table, "convergence", summary.convergence);
    table.row({"workers", fmt::format("{}, each {}, packed weights {}", result.jobs,
                                      human_bytes(result.worker_bytes), human_bytes(result.weight_bytes))});
    const StageSeconds& seconds = result.seconds;
    table.row(
        {"seconds", fmt::format("load {:.2f}, prepare {:.2f}, run {:.2f}, emit {:.2f}", summary.load_seconds,
                                seconds.prepare, seconds.wall - seconds.prepare, summary.emit_seconds)});
    table.row({"worker seconds", fmt::format("data {:.2f}, forward {:.2f}, statistics {:.2f}", seconds.data,
                                             seconds.forward, seconds.statistics)});
    for (std::size_t i = 0; i < summary.written.size(); ++i) {
        table.row({i == 0 ? "written" : "", printable(summary.written[i].string())});
    }
    console.print(table.text(console.width()));
}

struct Costs {
    double samples = 1;
    CostPeak peak;
    std::vector<CostRow> stages;
    std::vector<CostRow> operators;
};

Costs costs_of(const CalibrationSummary& summary) {
    const CalibrationResult& result = summary.result;
    const StageSeconds& seconds = result.seconds;
    const double samples = std::max<double>(1, static_cast<double>(result.samples));
    Costs costs;
    costs.samples = samples;
    costs.stages = {
        {"load the model", 1, summary.load_seconds},
        {"prepare the first plan", 1, seconds.prepare},
        {"read and preprocess", samples, seconds.data},
        {"run the model", samples, seconds.forward},
        {"count statistics", samples, seconds.statistics, 4 * static_cast<double>(result.elements.counted)},
        {"choose ranges, write", 1, summary.emit_seconds},
    };
    for (const auto& [name, cost] : result.profile.by_operator()) {
        costs.operators.push_back(
            {name, static_cast<double>(cost.calls), cost.seconds, cost.bytes, cost.operations});
    }
    const Peak measured = measure_peak();
    costs.peak = {measured.operations_per_second, measured.bytes_per_second};
    return costs;
}

void print_costs(const Console& console, const CalibrationSummary& summary) {
    const Costs costs = costs_of(summary);
    const CountedElements& elements = summary.result.elements;
    console.print(
        fmt::format("\nOf all workers together, a sample. One core's peak now: {:.0f} GFLOP/s, {:.1f} GB/s.\n"
                    "Elements a sample: {:.0f} counted, {:.0f} derived from others' statistics.\n\n",
                    costs.peak.operations_per_second * 1e-9, costs.peak.bytes_per_second * 1e-9,
                    static_cast<double>(elements.counted) / costs.samples,
                    static_cast<double>(elements.derived) / costs.samples));
    console.print(cost_table("stage", costs.stages, costs.samples, costs.peak).text(console.width()));
    console.print("\n" +
                  cost_table("operator", costs.operators, costs.samples, costs.peak).text(console.width()));
}

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<CostRow>& rows) {
    Json list = Json::array();
    for (const CostRow& row : rows) {
        list.push_back({{"name", row.name},
                        {"calls", row.calls},
                        {"seconds", row.seconds},
                        {"bytes", row.bytes},
                        {"operations", row.operations}});
    }
    return list;
}

Json json_of(const StatisticsSummary& statistics) {
    return {{"activations", statistics.activations},   {"constants", statistics.constants},
            {"without_data", statistics.without_data}, {"all_zero", statistics.all_zero},
            {"with_nan", statistics.with_nan},         {"with_infinity", statistics.with_infinity},
            {"with_masks", statistics.with_masks},     {"masked_values", statistics.masks}};
}

Json json_of(const CalibrationResult& result) {
    Json samples = {{"counted", result.samples}, {"resumed", result.resumed}};
    if (result.sequences > 0) samples["sequences"] = result.sequences;
    samples["skipped"] = Json::array();
    for (const SkippedSample& skipped : result.skipped) {
        samples["skipped"].push_back({{"number", skipped.number}, {"reason", skipped.reason}});
    }
    return samples;
}

void add_ending(Json& json, const std::vector<std::filesystem::path>& written, const std::string& explanation,
                const Remarks& remarks) {
    json["written"] = Json::array();
    for (const std::filesystem::path& file : written) json["written"].push_back(file.string());
    json["remarks"] = remarks.all();
    if (!explanation.empty()) json["explanation"] = explanation;
}

void print(const Console& console, const Json& json) {
    console.print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_json(const Console& console, const CalibrationSummary& summary, const Remarks& remarks) {
    const CalibrationResult& result = summary.result;
    const StageSeconds& seconds = result.seconds;
    Json json = {{"samples", json_of(result)}, {"tensors", json_of(summary.statistics)}};
    json["shuffle_seed"] = summary.shuffle_seed ? Json(*summary.shuffle_seed) : Json(nullptr);
    json["convergence"] = summary.convergence;
    json["workers"] = {
        {"count", result.jobs}, {"bytes_each", result.worker_bytes}, {"weight_bytes", result.weight_bytes}};
    json["seconds"] = {{"load", summary.load_seconds},
                       {"prepare", seconds.prepare},
                       {"run", seconds.wall - seconds.prepare},
                       {"emit", summary.emit_seconds},
                       {"data", seconds.data},
                       {"forward", seconds.forward},
                       {"statistics", seconds.statistics}};
    json["commands"] = summary.commands;
    add_ending(json, summary.written, summary.explanation, remarks);
    if (summary.costs) {
        const Costs costs = costs_of(summary);
        json["costs"] = {{"stages", json_of(costs.stages)}, {"operators", json_of(costs.operators)}};
    }
    print(console, json);
}

}  // namespace

void print_summary(const Console& console, const CalibrationSummary& summary, const Remarks& remarks,
                   bool json) {
    if (json) {
        print_json(console, summary, remarks);
        return;
    }
    if (!console.quiet()) {
        print_tables(console, summary);
        if (!summary.commands.empty()) {
            console.print("\nto hand over:\n  " + join(summary.commands, "\n  ") + "\n");
        }
    }
    console.print(summary.explanation);
    if (summary.costs) print_costs(console, summary);
    console.remarks(remarks);
}

void print_summary(const Console& console, const EmissionSummary& summary, const Remarks& remarks,
                   bool json) {
    if (json) {
        Json object = {{"convergence", summary.convergence}, {"commands", summary.commands}};
        add_ending(object, summary.written, summary.explanation, remarks);
        print(console, object);
        return;
    }
    for (const std::filesystem::path& file : summary.written) console.print(printable(file.string()) + "\n");
    console.print(summary.explanation);
    console.note("convergence: " + join(summary.convergence, "\n  "));
    if (!summary.commands.empty()) console.note("to hand over:\n  " + join(summary.commands, "\n  "));
    console.remarks(remarks);
}

}  // namespace qcalib
