#include <chrono>

#include "base/error.h"
#include "base/text.h"
#include "cli/convergence_summary.h"
#include "cli/data_options.h"
#include "cli/encoding_options.h"
#include "cli/explain_options.h"
#include "cli/interrupt.h"
#include "cli/output_folder.h"
#include "cli/subcommands.h"
#include "cli/tensor_options.h"
#include "engine/calibration.h"
#include "graph/onnx_file.h"
#include "ranges/mask_like.h"
#include "report/operator_costs.h"
#include "report/statistics_summary.h"
#include "report/table.h"
#include "runtime/isa.h"

namespace qcalib {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

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

class CalibrateCommand : public Command {
  public:
    std::string name() const override { return "calibrate"; }
    std::string summary() const override {
        return "Run samples through a model, keep statistics, write encodings";
    }
    void add_options(CLI::App& app) override;
    ExitCode run(Console& console) override;

  private:
    std::string statistics_name() const;
    CalibrationOptions calibration_options() const;
    void print_summary(const Console& console, const CalibrationResult& result, const StatisticsFile& file,
                       const std::vector<std::string>& convergence, double load_seconds,
                       double emit_seconds) const;
    void print_costs(const Console& console, const CalibrationResult& result, double load_seconds,
                     double emit_seconds) const;

    std::string model_;
    std::string output_ = "qcalib-out";
    DataOptions data_;
    EncodingOptions encodings_;
    TensorOptions tensors_;
    ExplainOptions explain_;
    unsigned jobs_ = 0;
    std::string memory_;
    std::string isa_ = "best";
    std::optional<std::int64_t> checkpoint_;
    std::optional<double> mask_below_;
    std::string dump_input_;
    bool reference_kernels_ = false;
    bool perf_ = false;
    bool strict_ = false;
    std::vector<std::filesystem::path> written_;
};

void CalibrateCommand::add_options(CLI::App& app) {
    app.add_option("--model", model_, "The float ONNX model")->required();
    app.add_option("-o,--output", output_, "Folder for the files written")->capture_default_str();
    data_.add_to(app);
    encodings_.add_to(app, false);
    explain_.add_to(app);
    tensors_.add_to(app);
    const std::string group = "Run";
    app.add_option("--jobs", jobs_, "Workers, each running whole samples (default: one a core)")
        ->group(group);
    app.add_option("--memory", memory_,
                   "Memory the run may take, as 4G: fewer workers run where they would not fit")
        ->group(group);
    app.add_option(
           "--checkpoint", checkpoint_,
           "Keep the statistics so far in <stem>.qstats.checkpoint after every N samples (sequences): "
           "the same command goes on from there where the run was broken off, also without this "
           "flag, and leaves the same bytes as one that was not. A checkpoint of another run is "
           "refused; remove it to start anew")
        ->group(group)
        ->type_name("N");
    app.add_option("--mask-below", mask_below_, "Values below this negative number are masks, not data")
        ->group(group);
    app.add_option("--isa", isa_, "Instruction set to hold to: sse4, avx2, avx512 or best")
        ->group(group)
        ->capture_default_str();
    app.add_option("--dump-input", dump_input_, "Folder to write each sample to as the model sees it (.npy)")
        ->group(group);
    app.add_flag("--reference-kernels", reference_kernels_,
                 "Use the plain kernels the fast ones are tested against")
        ->group(group);
    app.add_flag("--perf", perf_, "Print what each operator and each stage of the run cost")->group(group);
    app.add_flag("--strict", strict_,
                 "End at the first sample that cannot be read; remarks make the exit code 1")
        ->group(group);
}

std::string CalibrateCommand::statistics_name() const {
    const Selection selection = data_.selection();
    const std::string stem = output_stem(model_);
    if (selection.shards == 1) return stem + ".qstats";
    return fmt::format("{}.shard-{}-of-{}.qstats", stem, selection.shard, selection.shards);
}

CalibrationOptions CalibrateCommand::calibration_options() const {
    CalibrationOptions options;
    options.program.reference_kernels = reference_kernels_;
    options.counter.mask_below = mask_below_;
    if (mask_below_ && !(*mask_below_ < 0)) {
        fail("--mask-below: expected a negative number, found {}", *mask_below_);
    }
    options.list = data_.list();
    options.shard = data_.selection().shard;
    options.shards = data_.selection().shards;
    options.jobs = jobs_;
    options.memory = memory_.empty() ? 0 : parse_bytes(memory_, "--memory");
    if (checkpoint_ && *checkpoint_ < 1) {
        fail("--checkpoint: expected a number of samples from 1 on, found {}", *checkpoint_);
    }
    options.checkpoint = static_cast<std::uint64_t>(checkpoint_.value_or(0));
    options.profile = perf_;
    options.strict = strict_;
    options.interrupted = &InterruptHandler::flag();
    return options;
}

ExitCode CalibrateCommand::run(Console& console) {
    limit_isa(parse_isa(isa_));
    const Clock::time_point start = Clock::now();
    Remarks remarks;
    const std::string stem = output_stem(model_);
    const std::vector<Emission> emissions = encodings_.emissions(output_, stem);
    const AssignmentOptions assignment = encodings_.assignment();
    CalibrationOptions options = calibration_options();
    if (encodings_.emits() && options.shards > 1) {
        fail("--emit: a shard holds only a part of the samples; merge the shards and use 'qcalib emit'");
    }
    const Model model = read_onnx_file(model_);
    for (const std::string& remark : model.remarks) remarks.add(remark);
    explain_.check(*model.graph, emissions);
    const std::vector<std::string> missing = missing_operators(*model.graph, builtin_kernels());
    if (!missing.empty()) {
        fail("{}: cannot be run, {} not supported:\n  {}", printable(model_),
             missing.size() == 1 ? "an operator is" : "operators are", join(missing, "\n  "));
    }
    std::vector<InputSpec> inputs = data_.inputs(*model.graph);
    options.note = [&](const std::string& text) { console.note(text); };
    options.carries = data_.carries(*model.graph, inputs, remarks);
    std::size_t group = 1;
    const SelectedSamples samples = data_.samples(inputs, group, remarks);
    options.settings = data_.canonical_text(group) + (reference_kernels_ ? "\nkernels=reference" : "");
    tensors_.apply(*model.graph, emissions, assignment, options);
    const SampleReader reader(inputs, data_.preprocessing());
    const double load_seconds = seconds_since(start);

    OutputFolder folder(output_);
    std::optional<OutputFolder> dump_folder;
    if (!dump_input_.empty()) options.dump_inputs = dump_folder.emplace(dump_input_).path();
    console.note("pictures: " + describe(reader.preprocessing()));
    for (const Emission& emission : emissions) console.note(encodings_.describe(emission.target));
    const std::filesystem::path statistics = folder.path() / statistics_name();
    const CalibrationResult result = [&] {
        ProgressLine progress(console);
        return calibrate(model, reader, samples, options, statistics, progress, remarks);
    }();
    folder.keep();
    if (dump_folder) dump_folder->keep();
    const Clock::time_point emit_start = Clock::now();
    const StatisticsFile file(statistics);
    write_emissions(emissions, assignment, *model.graph, file, remarks);
    for (std::string& remark : far_value_remarks(file)) remarks.add(std::move(remark));
    written_ = {statistics};
    for (const Emission& emission : emissions) written_.push_back(emission.file);
    for (const SkippedSample& skipped : result.skipped) remarks.add("skipped: " + skipped.reason);
    const double emit_seconds = seconds_since(emit_start);
    print_summary(console, result, file, convergence_summary(file, emissions, assignment), load_seconds,
                  emit_seconds);
    console.print(explain_.text(emissions, assignment, *model.graph, file));
    if (perf_) print_costs(console, result, load_seconds, emit_seconds);
    console.remarks(remarks);
    return strict_ && !remarks.empty() ? ExitCode::findings : ExitCode::fine;
}

void CalibrateCommand::print_summary(const Console& console, const CalibrationResult& result,
                                     const StatisticsFile& file, const std::vector<std::string>& convergence,
                                     double load_seconds, double emit_seconds) const {
    if (console.quiet()) return;
    const StatisticsSummary summary = summarize_statistics(file);
    Table table;
    table.column("").column("");
    table.row(
        {"tensors", fmt::format("{} activations, {} constants", summary.activations, summary.constants)});
    table.row({"samples", counted_samples(result)});
    if (!summary.without_data.empty()) table.row({"without data", count_and_names(summary.without_data)});
    table.row({"all zero", count_and_names(summary.all_zero)});
    table.row({"with NaN", count_and_names(summary.with_nan)});
    table.row({"with Inf", count_and_names(summary.with_infinity)});
    table.row(
        {"with masks", count_and_names(summary.with_masks) +
                           (summary.masks > 0 ? fmt::format(", {} values left out", summary.masks) : "")});
    add_rows(table, "convergence", convergence);
    table.row({"workers", fmt::format("{}, each {}, packed weights {}", result.jobs,
                                      human_bytes(result.worker_bytes), human_bytes(result.weight_bytes))});
    const StageSeconds& seconds = result.seconds;
    table.row({"seconds", fmt::format("load {:.2f}, prepare {:.2f}, run {:.2f}, emit {:.2f}", load_seconds,
                                      seconds.prepare, seconds.wall - seconds.prepare, emit_seconds)});
    table.row({"worker seconds", fmt::format("data {:.2f}, forward {:.2f}, statistics {:.2f}", seconds.data,
                                             seconds.forward, seconds.statistics)});
    for (std::size_t i = 0; i < written_.size(); ++i) {
        table.row({i == 0 ? "written" : "", printable(written_[i].string())});
    }
    console.print(table.text(console.width()));
}

void CalibrateCommand::print_costs(const Console& console, const CalibrationResult& result,
                                   double load_seconds, double emit_seconds) const {
    const double samples = std::max<double>(1, static_cast<double>(result.samples));
    const StageSeconds& seconds = result.seconds;
    const CountedElements& elements = result.elements;
    const std::vector<CostRow> stages{
        {"load the model", 1, load_seconds},
        {"prepare the first plan", 1, seconds.prepare},
        {"read and preprocess", samples, seconds.data},
        {"run the model", samples, seconds.forward},
        {"count statistics", samples, seconds.statistics, 4 * static_cast<double>(elements.counted)},
        {"choose ranges, write", 1, emit_seconds},
    };
    std::vector<CostRow> operators;
    for (const auto& [name, cost] : result.profile.by_operator()) {
        operators.push_back(
            {name, static_cast<double>(cost.calls), cost.seconds, cost.bytes, cost.operations});
    }
    const Peak measured = measure_peak();
    const CostPeak peak{measured.operations_per_second, measured.bytes_per_second};
    console.print(fmt::format(
        "\nOf all workers together, a sample. One core's peak now: {:.0f} GFLOP/s, {:.1f} GB/s.\n"
        "Elements a sample: {:.0f} counted, {:.0f} derived from others' statistics.\n\n",
        peak.operations_per_second * 1e-9, peak.bytes_per_second * 1e-9,
        static_cast<double>(elements.counted) / samples, static_cast<double>(elements.derived) / samples));
    console.print(cost_table("stage", stages, samples, peak).text(console.width()));
    console.print("\n" + cost_table("operator", operators, samples, peak).text(console.width()));
}

}  // namespace

std::unique_ptr<Command> make_calibrate_command() {
    return std::make_unique<CalibrateCommand>();
}

}  // namespace qcalib
