#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/base_file.h"
#include "cli/checks.h"
#include "cli/data_options.h"
#include "cli/interrupt.h"
#include "cli/output_folder.h"
#include "cli/simulation_options.h"
#include "cli/subcommands.h"
#include "cli/summary_format.h"
#include "graph/model_file.h"
#include "report/simulation_report.h"
#include "runtime/isa.h"
#include "runtime/kernel_registry.h"
#include "simulate/simulation.h"

namespace qcalib {

namespace {

// What a simulation knows before it runs a sample.
struct PreparedSimulation {
    Model model;
    std::optional<SimulatedModel> simulated;
    SimulationSwitches switches;
    GivenEncodings given;
    std::optional<GivenEncodings> other;
    std::vector<InputSpec> inputs;
    std::vector<Carry> carries;
    SelectedSamples samples;
    std::optional<SelectedSamples> converter_samples;
    std::optional<DumpFolder> against;
    SampleRunOptions options;
};

// "'a', 'b', ...".
std::string listed(const Graph& graph, const std::vector<ValueId>& values) {
    constexpr std::size_t shown = 5;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(shown, values.size()); ++i)
        names.push_back("'" + printable(graph.values[values[i]].name) + "'");
    return join(names, ", ") + (values.size() > shown ? ", ..." : "");
}

class SimulateCommand : public Command {
  public:
    std::string name() const override { return "simulate"; }
    std::string summary() const override {
        return "Run a model quantized, beside float or beside what a device made of it";
    }

    void add_options(CLI::App& app) override {
        app.add_option("--model", model_, "The float ONNX model")->required();
        app.add_option("--encodings", encodings_,
                       "The encodings to simulate: a file of any format, or an ONNX model with ranges");
        app.add_option("--target", target_, "Whose rules hold")->capture_default_str();
        app.add_option("--target-config", target_config_,
                       "Use this YAML instead of the target's built-in rules");
        app.add_option("-o,--output", output_, "Write what was found as JSON to this file as well");
        data_.add_to(app);
        switches_.add_to(app);
        app.add_option(
               "--converter-list", converter_list_,
               "The converter's own samples, in float: tensors the encodings lack get their ranges here")
            ->group("Data");
        add_question_options(app);
        add_dump_options(app);
        add_run_options(app);
        add_summary_format(app, format_);
    }

    ExitCode run(Console& console) override {
        const bool json = is_json(format_);
        Remarks remarks;
        const PreparedSimulation prepared = prepare(remarks);
        const SampleReader reader(prepared.inputs, data_.preprocessing());
        SimulationReport report = report_head(prepared);
        std::optional<OutputFolder> report_folder;
        if (!output_.empty()) report_folder.emplace(std::filesystem::absolute(output_).parent_path());
        ProgressLine progress(console);
        const MeasuredRanges measured = measure(prepared, reader, progress, remarks);
        const SimulationRun run{
            *prepared.simulated, prepared.given,   measured,         prepared.switches, reader,
            prepared.samples,    prepared.options, prepared.carries, progress,          remarks};
        answer(run, prepared, report);
        for (const std::string& skipped : report.result.run.skipped) remarks.add("skipped: " + skipped);
        if (report_folder) {
            write_file(output_, to_json(report, remarks));
            report_folder->keep();
        }
        if (json) {
            console.print(to_json(report, remarks));
        } else {
            console.print(simulation_text(report, all_, console.width()));
            console.remarks(remarks);
        }
        return strict_ && !remarks.empty() ? ExitCode::findings : ExitCode::fine;
    }

  private:
    void add_question_options(CLI::App& app) {
        const std::string group = "Questions";
        app.add_option(
               "--isolated", isolated_,
               "Also quantize tensors one by one, those a pattern fits (default: all), and say what each "
               "costs alone at the outputs")
            ->expected(0, 1)
            ->type_name("GLOB")
            ->group(group);
        app.add_flag("--bits-search", bits_search_,
                     "Which tensors win most on 16 bits, and the error with the first of them there")
            ->group(group);
        app.add_option("--against-encodings", against_encodings_,
                       "Another file of encodings: which of its differences make which share of the outputs' "
                       "difference")
            ->group(group);
        app.add_option("--against", against_,
                       "Folder of tensors from a device or another tool (Result_<N>/<tensor>.raw or .npy) to "
                       "compare with")
            ->group(group);
        app.add_flag(
               "--diagnose", diagnose_,
               "With --against: try the switches singly and in pairs, and say which explain the difference")
            ->group(group);
        app.add_flag("--all", all_, "List all tensors, not the costliest alone")->group(group);
    }

    void add_dump_options(CLI::App& app) {
        const std::string group = "Dumps";
        app.add_option("--dump", dump_,
                       "Folder to write each sample's graph outputs to (Result_<N>/<tensor>.npy)")
            ->group(group);
        app.add_flag("--dump-all", dump_all_, "Write every float tensor, not graph outputs alone")
            ->group(group);
        app.add_flag("--float", float_, "Write what the float run made instead; needs no --encodings")
            ->group(group);
    }

    void add_run_options(CLI::App& app) {
        const std::string group = "Run";
        app.add_option("--jobs", jobs_, "Workers, each running whole samples (default: one a core)")
            ->group(group);
        app.add_option("--memory", memory_,
                       "Memory the run may take, as 4G: fewer workers run where they would not fit")
            ->group(group);
        app.add_option("--isa", isa_, "Instruction set to hold to: sse4, avx2, avx512 or best")
            ->group(group)
            ->capture_default_str();
        app.add_flag("--reference-kernels", reference_kernels_,
                     "Use the plain kernels the fast ones are tested against")
            ->group(group);
        app.add_flag("--strict", strict_,
                     "End at the first sample that cannot be read; remarks make the exit code 1")
            ->group(group);
    }

    void check_options() const {
        if (encodings_.empty() && !float_)
            fail("--encodings: expected a file, or --float for the float model");
        if (diagnose_ && against_.empty()) fail("--diagnose: expected --against DIR beside it");
        if (dump_.empty() && (dump_all_ || float_) && !(float_ && encodings_.empty()))
            fail("{}: expected --dump DIR beside it", dump_all_ ? "--dump-all" : "--float");
        const bool asks = !isolated_.empty() || bits_search_ || diagnose_ || !against_encodings_.empty();
        if (encodings_.empty() && asks) {
            fail("{}: expected --encodings FILE beside it", !isolated_.empty() ? "--isolated"
                                                            : bits_search_     ? "--bits-search"
                                                            : diagnose_        ? "--diagnose"
                                                                               : "--against-encodings");
        }
    }

    PreparedSimulation prepare(Remarks& remarks) const {
        PreparedSimulation prepared;
        Checks checks;
        checks.passed([&] { check_options(); });
        checks.passed([&] { limit_isa(parse_isa(isa_)); });
        checks.passed([&] { data_.preprocessing(); });
        checks.passed([&] { prepared.options = run_options(); });
        std::optional<Target> target;
        checks.passed([&] {
            target = load_target(target_, target_config_.empty()
                                              ? std::nullopt
                                              : std::optional<std::filesystem::path>(target_config_));
            prepared.switches = switches_.switches(*target);
            if (prepared.switches.inputs == InputRanges::list && converter_list_.empty())
                fail("--input-ranges list: expected --converter-list FILE beside it");
        });
        if (!checks.passed([&] { prepared.model = read_model(model_); })) checks.throw_if_any();
        for (const std::string& remark : prepared.model.remarks) remarks.add(remark);
        checks.passed([&] { check_operators(*prepared.model.graph); });
        checks.throw_if_any();
        ProgramOptions program;
        program.reference_kernels = reference_kernels_;
        prepared.simulated.emplace(prepared.model.graph, *target, program);
        checks.passed([&] { prepared.given = encodings_of(encodings_, prepared, remarks); });
        if (!against_encodings_.empty())
            checks.passed([&] { prepared.other = encodings_of(against_encodings_, prepared, remarks); });
        prepare_samples(prepared, checks, remarks);
        checks.throw_if_any();
        return prepared;
    }

    void prepare_samples(PreparedSimulation& prepared, Checks& checks, Remarks& remarks) const {
        const Graph& graph = *prepared.model.graph;
        const bool inputs_known = data_.inputs(graph, prepared.inputs, checks) && checks.passed([&] {
            prepared.carries = data_.carries(graph, prepared.inputs, remarks);
        });
        if (!inputs_known || !checks.passed([&] { SampleReader(prepared.inputs, data_.preprocessing()); }))
            return;
        prepared.options.sequences = !prepared.carries.empty();
        std::size_t group = 1;
        if (!checks.passed([&] { prepared.samples = data_.samples(prepared.inputs, group, remarks); }))
            return;
        if (!converter_list_.empty()) {
            checks.passed([&] {
                DataSettings settings = data_.settings();
                settings.list = converter_list_;
                settings.limit.reset();
                settings.shuffle.reset();
                settings.shard.clear();
                prepared.converter_samples = DataOptions(settings).samples(prepared.inputs, group, remarks);
            });
        }
        if (!against_.empty()) {
            checks.passed(
                [&] { prepared.against.emplace(against_, graph, prepared.samples.samples.size(), remarks); });
        }
    }

    SampleRunOptions run_options() const {
        SampleRunOptions options;
        options.jobs = jobs_;
        options.memory = memory_.empty() ? 0 : parse_bytes(memory_, "--memory");
        options.strict = strict_;
        options.list = data_.list();
        options.interrupted = &InterruptHandler::flag();
        return options;
    }

    void check_operators(const Graph& graph) const {
        const std::vector<std::string> missing = missing_operators(graph, builtin_kernels());
        if (missing.empty()) return;
        fail("{}: cannot be run, {} not supported:\n  {}", printable(model_),
             missing.size() == 1 ? "an operator is" : "operators are", join(missing, "\n  "));
    }

    static GivenEncodings encodings_of(const std::string& path, const PreparedSimulation& prepared,
                                       Remarks& remarks) {
        if (path.empty()) return {};
        BaseEncodings base = read_base(path, *prepared.model.graph, remarks);
        put_on_grid(base.set, base.ranges_alone, prepared.simulated->target());
        return match_encodings(*prepared.simulated, base.set, remarks);
    }

    // What the encodings lack is measured on the converter's list; without one it stays in float.
    MeasuredRanges measure(const PreparedSimulation& prepared, const SampleReader& reader, Progress& progress,
                           Remarks& remarks) const {
        MeasuredRanges measured;
        if (prepared.converter_samples) {
            SampleRunOptions options = prepared.options;
            options.list = converter_list_;
            options.sequences = false;
            measured = measure_ranges(*prepared.simulated, reader, *prepared.converter_samples, options,
                                      progress, remarks);
        }
        if (!encodings_.empty()) remark_names(prepared, measured, remarks);
        return measured;
    }

    // Names the activations that stay in float, and the entries that nothing is quantized with.
    void remark_names(const PreparedSimulation& prepared, const MeasuredRanges& measured,
                      Remarks& remarks) const {
        const SimulatedModel& model = *prepared.simulated;
        std::set<ValueId> resolved;
        for (const SimulatedEncoding& one :
             resolve_encodings(model, prepared.given, prepared.switches, measured)) {
            resolved.insert(one.value);
        }
        for (const Parameter& parameter : model.parameters()) resolved.insert(parameter.value);  // biases
        std::vector<ValueId> floats;
        const bool integer = prepared.switches.arithmetic == Arithmetic::integer;
        for (const ValueId value : prepared.given.unencoded) {
            // The integer chain says itself what it makes of inputs, and it knows ranges of Clips.
            const bool told = integer && model.graph()->values[value].producer == no_node;
            if (!resolved.contains(value) && !told) floats.push_back(value);
        }
        std::vector<ValueId> unused;
        for (const auto& [value, entry] : prepared.given.by_value) {
            const bool skipped = prepared.switches.pre_activations == PreActivations::skipped &&
                                 model.is_pre_activation(value);
            if (!resolved.contains(value) && !skipped) unused.push_back(value);
        }
        std::ranges::sort(unused);
        const Graph& graph = *prepared.model.graph;
        if (!floats.empty()) {
            remarks.add(
                fmt::format("{}: no entry for {} tensor{}, which stay{} in float: {} (a converter measures "
                            "what has none on its own list: --converter-list)",
                            printable(encodings_), floats.size(), floats.size() == 1 ? "" : "s",
                            floats.size() == 1 ? "s" : "", listed(graph, floats)));
        }
        if (!unused.empty()) {
            remarks.add(
                fmt::format("{}: nothing is quantized with the entr{} of {}: no such tensor is left on the "
                            "target, or it is made of constants alone",
                            printable(encodings_), unused.size() == 1 ? "y" : "ies", listed(graph, unused)));
        }
    }

    SimulationReport report_head(const PreparedSimulation& prepared) const {
        SimulationReport report;
        report.model = model_;
        report.data = data_.list();
        report.encodings = encodings_;
        report.against = against_;
        report.other = against_encodings_;
        report.converter_list = converter_list_;
        const Target& target = prepared.simulated->target();
        report.target = target.name;
        report.evidence = fmt::format("{} ({})", trim(target.simulation.evidence.source),
                                      name_of(target.simulation.evidence.confidence));
        report.switches = prepared.switches;
        return report;
    }

    void answer(const SimulationRun& run, const PreparedSimulation& prepared,
                SimulationReport& report) const {
        std::optional<OutputFolder> folder;
        DumpSettings dumps;
        dumps.all = dump_all_;
        dumps.float_only = encodings_.empty();
        dumps.against = prepared.against ? &*prepared.against : nullptr;
        if (!dump_.empty()) {
            folder.emplace(dump_);
            (float_ ? dumps.float_folder : dumps.folder) = folder->path();
        }
        report.result = simulate(run, dumps);
        if (folder) folder->keep();
        if (!isolated_.empty()) report.isolated = isolated_costs(run, isolated_patterns(), report.whole);
        if (diagnose_) report.diagnosis = diagnose(run, *prepared.against);
        if (bits_search_) report.bits = search_bits(run, {});
        if (prepared.other) report.shares = encoding_shares(run, *prepared.other);
    }

    std::vector<std::string> isolated_patterns() const {
        std::vector<std::string> patterns;
        for (const std::string& pattern : isolated_) patterns.push_back(pattern.empty() ? "*" : pattern);
        return patterns;
    }

    std::string model_;
    std::string encodings_;
    std::string target_ = "snpe";
    std::string target_config_;
    std::string output_;
    std::string converter_list_;
    std::vector<std::string> isolated_;
    bool bits_search_ = false;
    std::string against_encodings_;
    std::string against_;
    bool diagnose_ = false;
    bool all_ = false;
    std::string dump_;
    bool dump_all_ = false;
    bool float_ = false;
    unsigned jobs_ = 0;
    std::string memory_;
    std::string isa_ = "best";
    bool reference_kernels_ = false;
    bool strict_ = false;
    std::string format_ = "table";
    DataOptions data_;
    SwitchOptions switches_;
};

}  // namespace

std::unique_ptr<Command> make_simulate_command() {
    return std::make_unique<SimulateCommand>();
}

}  // namespace qcalib
