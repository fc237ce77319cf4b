#include "cli/calibration_run.h"

#include <chrono>

#include "audit/allow_list.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/audit_run.h"
#include "cli/calibration_summary.h"
#include "cli/checks.h"
#include "cli/convergence_summary.h"
#include "cli/explain_options.h"
#include "cli/hand_over.h"
#include "cli/interrupt.h"
#include "cli/output_folder.h"
#include "cli/report_file.h"
#include "ranges/mask_like.h"
#include "report/audit_report.h"
#include "runtime/isa.h"
#include "target/circle_assignment.h"

namespace qcalib {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string statistics_name(const CalibrationSettings& settings, const CalibrationOptions& options) {
    const std::string stem = output_stem(settings.model);
    if (options.shards == 1) return stem + ".qstats";
    return fmt::format("{}.shard-{}-of-{}.qstats", stem, options.shard, options.shards);
}

CalibrationOptions calibration_options(const RunSettings& run, const DataOptions& data) {
    CalibrationOptions options;
    options.program.reference_kernels = run.reference_kernels;
    options.counter.mask_below = run.mask_below;
    if (run.mask_below && !(*run.mask_below < 0)) {
        fail("--mask-below: expected a negative number, found {}", *run.mask_below);
    }
    options.list = data.list();
    const Selection selection = data.selection();
    options.shard = selection.shard;
    options.shards = selection.shards;
    options.jobs = run.jobs;
    options.memory = run.memory.empty() ? 0 : parse_bytes(run.memory, "--memory");
    if (run.checkpoint && *run.checkpoint < 1) {
        fail("--checkpoint: expected a number of samples from 1 on, found {}", *run.checkpoint);
    }
    options.checkpoint = static_cast<std::uint64_t>(run.checkpoint.value_or(0));
    options.profile = run.perf;
    options.strict = run.strict;
    options.interrupted = &InterruptHandler::flag();
    return options;
}

// The emission whose encodings are audited.
const Emission& audited_emission(const AuditAfterwards& audit, const std::vector<Emission>& emissions) {
    std::vector<std::string> names;
    for (const Emission& emission : emissions) {
        if (emission.target.name == audit.target) return emission;
        names.push_back(emission.target.name);
    }
    if (emissions.size() == 1 && audit.target.empty()) return emissions.front();
    fail("audit.target: expected one of the targets that are emitted ({}), found '{}'{}", join(names, ", "),
         printable(audit.target), did_you_mean(audit.target, names));
}

void check_audit(const AuditAfterwards& audit, const std::vector<Emission>& emissions) {
    if (audit.logs.empty()) return;
    audited_emission(audit, emissions);
    for (const std::string& file : audit.logs) {
        if (!std::filesystem::is_regular_file(file))
            fail("{}: expected a converter's log, found no file", printable(file));
    }
    if (!audit.allow.empty()) read_allow_list(audit.allow);
}

// Compares what was written with the logs and writes <stem>.audit.json to the folder.
AuditResult audit_emitted(const CalibrationSettings& settings, const std::vector<Emission>& emissions,
                          const std::filesystem::path& statistics, const std::filesystem::path& output,
                          Remarks& remarks) {
    const Emission& emission = audited_emission(settings.audit, emissions);
    AuditSettings audit;
    audit.encodings = emission.file().string();
    audit.logs = settings.audit.logs;
    audit.model = settings.model;
    audit.statistics = statistics.string();
    audit.target = emission.target.name;
    audit.allow = settings.audit.allow;
    for (const std::string& config : settings.encodings.target_configs) {
        if (parse_target(read_text_file(config), config).name == audit.target) audit.target_config = config;
    }
    AuditResult result = run_audit(audit, remarks);
    write_file(output, to_json(result));
    return result;
}

void check_operators(const std::string& model, const Graph& graph) {
    const std::vector<std::string> missing = missing_operators(graph, builtin_kernels());
    if (missing.empty()) return;
    fail("{}: cannot be run, {} not supported:\n  {}", printable(model),
         missing.size() == 1 ? "an operator is" : "operators are", join(missing, "\n  "));
}

// The model is then run on weights that a target's codes stand for.
void replace_weights(const Graph& graph, const std::vector<Emission>& emissions,
                     const AssignmentOptions& assignment, CalibrationOptions& options) {
    if (emissions.size() != 1 || emissions.front().target.circle == nullptr)
        fail("--quantized-weights: expected --emit circle alone, whose own tools measure so");
    const Target& target = emissions.front().target;
    options.program.replaced = circle_fake_quantized_weights(graph, target, assignment);
}

// What of it changes counts.
std::string weights_text(const std::vector<Emission>& emissions, const AssignmentOptions& assignment) {
    const Target& target = emissions.front().target;
    return fmt::format(
        "\nweights=quantized to {} bits {}", assignment.activation_bits.value_or(target.activations.bits),
        assignment.per_channel_weights.value_or(target.weights.per_channel) ? "per channel" : "per tensor");
}

}  // namespace

PreparedCalibration prepare_calibration(const CalibrationSettings& settings, Remarks& remarks) {
    const EncodingOptions encodings(settings.encodings);
    const DataOptions data(settings.data);
    PreparedCalibration prepared;
    CalibrationOptions& options = prepared.options;
    Checks checks;
    checks.passed([&] { limit_isa(parse_isa(settings.run.isa)); });
    const bool targets_known = checks.passed([&] {
        prepared.emissions = encodings.emissions(settings.output, output_stem(settings.model));
        prepared.assignment = encodings.assignment();
    });
    checks.passed([&] { options = calibration_options(settings.run, data); });
    const bool pictures_known = checks.passed([&] { data.preprocessing(); });
    if (encodings.emits() && options.shards > 1) {
        checks.passed([] {
            fail("--emit: a shard holds only a part of the samples; merge the shards and use 'qcalib emit'");
        });
    }
    if (!checks.passed([&] { prepared.model = read_model(settings.model); })) checks.throw_if_any();
    const Graph& graph = *prepared.model.graph;
    for (const std::string& remark : prepared.model.remarks) remarks.add(remark);
    checks.passed([&] { check_operators(settings.model, graph); });
    if (targets_known) {
        checks.passed([&] { check_audit(settings.audit, prepared.emissions); });
        for (const Emission& emission : prepared.emissions)
            checks.passed([&] { check_form(graph, emission.target); });
        checks.passed([&] { encodings.complete(prepared.assignment, graph, prepared.emissions, remarks); });
        if (settings.run.quantized_weights) {
            checks.passed([&] { replace_weights(graph, prepared.emissions, prepared.assignment, options); });
        }
        checks.passed([&] { ExplainOptions(settings.explain).check(graph, prepared.emissions); });
        checks.passed([&] {
            TensorOptions(settings.tensors).apply(graph, prepared.emissions, prepared.assignment, options);
        });
    }
    std::vector<std::int64_t> moved_ranks;
    if (!settings.run.export_inputs.empty() && targets_known) {
        checks.passed([&] { moved_ranks = channels_last_ranks(prepared.emissions); });
    }
    const bool inputs_known = data.inputs(graph, prepared.inputs, checks) && checks.passed([&] {
        options.carries = data.carries(graph, prepared.inputs, remarks);
    });
    if (inputs_known && pictures_known &&
        checks.passed([&] { SampleReader(prepared.inputs, data.preprocessing()); })) {
        checks.passed([&] { prepared.samples = data.samples(prepared.inputs, prepared.group, remarks); });
    }
    if (!settings.run.export_inputs.empty() && inputs_known) {
        checks.passed(
            [&] { options.export_inputs.emplace(settings.run.export_inputs, prepared.inputs, moved_ranks); });
    }
    checks.throw_if_any();
    const std::string tensors = std::move(options.settings);
    options.settings =
        data.canonical_text(prepared.group) + (settings.run.reference_kernels ? "\nkernels=reference" : "") +
        (settings.run.quantized_weights ? weights_text(prepared.emissions, prepared.assignment) : "") +
        tensors;
    return prepared;
}

ExitCode run_calibration(const CalibrationSettings& settings, Console& console) {
    const Clock::time_point start = Clock::now();
    Remarks remarks;
    PreparedCalibration prepared = prepare_calibration(settings, remarks);
    const std::vector<Emission>& emissions = prepared.emissions;
    const AssignmentOptions& assignment = prepared.assignment;
    const Graph& graph = *prepared.model.graph;
    CalibrationOptions& options = prepared.options;
    options.note = [&](const std::string& text) { console.note(text); };
    const SampleReader reader(prepared.inputs, DataOptions(settings.data).preprocessing());
    CalibrationSummary summary;
    summary.load_seconds = seconds_since(start);

    OutputFolder folder(settings.output);
    std::optional<OutputFolder> dump_folder;
    if (!settings.run.dump_input.empty()) {
        options.dump_inputs = dump_folder.emplace(settings.run.dump_input).path();
    }
    std::optional<OutputFolder> export_folder;
    if (options.export_inputs) export_folder.emplace(settings.run.export_inputs);
    console.note("pictures: " + describe(reader.preprocessing()));
    const EncodingOptions encodings(settings.encodings);
    for (const Emission& emission : emissions) console.note(encodings.describe(emission.target));
    const std::filesystem::path statistics = folder.path() / statistics_name(settings, options);
    summary.result = [&] {
        ProgressLine progress(console);
        return calibrate(prepared.model, reader, prepared.samples, options, statistics, progress, remarks);
    }();
    folder.keep();
    if (dump_folder) dump_folder->keep();
    if (export_folder) export_folder->keep();

    const Clock::time_point emit_start = Clock::now();
    const StatisticsFile file(statistics);
    const std::vector<EmittedEncodings> emitted =
        write_emissions(emissions, assignment, settings.encodings.patch, prepared.model, file, remarks);
    for (std::string& remark : far_value_remarks(file)) remarks.add(std::move(remark));
    for (const SkippedSample& skipped : summary.result.skipped) remarks.add("skipped: " + skipped.reason);
    summary.written = {statistics};
    add_written(emitted, summary.written);
    std::optional<std::filesystem::path> list;
    if (options.export_inputs)
        summary.written.push_back(list.emplace(options.export_inputs->write_list(file)));
    summary.commands = hand_over_commands(emissions, assignment, settings.model, list);
    std::optional<AuditResult> audited;
    if (!settings.audit.logs.empty()) {
        summary.written.push_back(folder.path() / (output_stem(settings.model) + ".audit.json"));
        audited = audit_emitted(settings, emissions, statistics, summary.written.back(), remarks);
    }
    const ReportedRun run{settings.model, settings.data.list, settings.data.shuffle};
    summary.written.push_back(folder.path() / (statistics.stem().string() + ".report.json"));
    write_report(summary.written.back(), run, encodings, emissions, emitted, file, remarks);
    summary.emit_seconds = seconds_since(emit_start);
    summary.statistics = summarize_statistics(file);
    summary.shuffle_seed = settings.data.shuffle;
    summary.convergence = convergence_summary(file, emissions, assignment);
    summary.explanation = ExplainOptions(settings.explain).text(emissions, emitted, graph, file);
    summary.costs = settings.run.perf;
    print_summary(console, summary, remarks, settings.json);
    if (audited && !settings.json)
        console.print("\n" + audit_text(*audited, settings.audit.all, console.width()));
    if (audited && audited->objections()) return ExitCode::findings;
    return settings.run.strict && !remarks.empty() ? ExitCode::findings : ExitCode::fine;
}

}  // namespace qcalib
