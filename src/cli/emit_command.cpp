#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/calibration_summary.h"
#include "cli/convergence_summary.h"
#include "cli/encoding_options.h"
#include "cli/explain_options.h"
#include "cli/hand_over.h"
#include "cli/output_folder.h"
#include "cli/report_file.h"
#include "cli/subcommands.h"
#include "cli/summary_format.h"
#include "graph/model_file.h"
#include "ranges/mask_like.h"
#include "runtime/kernel_registry.h"

namespace qcalib {

namespace {

class EmitCommand : public Command {
  public:
    std::string name() const override { return "emit"; }
    std::string summary() const override {
        return "Write encodings from saved statistics; never runs the model";
    }

    void add_options(CLI::App& app) override {
        app.add_option("--stats", statistics_, "The .qstats file")->required();
        app.add_option("--model", model_, "The model it was made from")->required();
        app.add_option("-o,--output", output_, "Folder for the files written")->capture_default_str();
        app.add_flag("--force", force_, "Accept a model that is not the one the statistics were made from");
        app.add_flag("--strict", strict_, "Remarks make the exit code 1");
        encodings_.add_to(app, true);
        explain_.add_to(app);
        add_summary_format(app, format_);
    }

    ExitCode run(Console& console) override {
        const bool json = is_json(format_);
        Remarks remarks;
        const std::vector<Emission> emissions = encodings_.emissions(output_, output_stem(model_));
        AssignmentOptions assignment = encodings_.assignment();
        const StatisticsFile statistics{statistics_};
        const Model model = read_model(model_);
        for (const std::string& remark : model.remarks) remarks.add(remark);
        check_same_model(statistics, model);
        explain_.check(*model.graph, emissions);
        encodings_.complete(assignment, *model.graph, emissions, remarks);
        if (statistics.header().shards > 1) {
            fail("{}: holds shard {} of {}; merge all of them first", printable(statistics_),
                 statistics.header().shard, statistics.header().shards);
        }
        OutputFolder folder(output_);
        for (const Emission& emission : emissions) console.note(encodings_.describe(emission.target));
        const std::vector<EmittedEncodings> emitted =
            write_emissions(emissions, assignment, encodings_.settings().patch, model, statistics, remarks);
        for (std::string& remark : far_value_remarks(statistics)) remarks.add(std::move(remark));
        folder.keep();
        EmissionSummary summary;
        add_written(emitted, summary.written);
        summary.written.push_back(folder.path() / (output_stem(model_) + ".report.json"));
        write_report(summary.written.back(), {model_, "", {}}, encodings_, emissions, emitted, statistics,
                     remarks);
        summary.commands = hand_over_commands(emissions, assignment, model_, {});
        summary.convergence = convergence_summary(statistics, emissions, assignment);
        summary.explanation = explain_.text(emissions, emitted, *model.graph, statistics);
        print_summary(console, summary, remarks, json);
        return strict_ && !remarks.empty() ? ExitCode::findings : ExitCode::fine;
    }

  private:
    void check_same_model(const StatisticsFile& statistics, const Model& model) const {
        if (statistics.header().model_hash == model.hash || force_) return;
        fail("{}: made from a model with SHA-256 {}, but {} has {} (--force takes it all the same)",
             printable(statistics_), statistics.header().model_hash, printable(model_), model.hash);
    }

    std::string statistics_;
    std::string model_;
    std::string output_ = "qcalib-out";
    EncodingOptions encodings_;
    ExplainOptions explain_;
    bool force_ = false;
    bool strict_ = false;
    std::string format_ = "table";
};

}  // namespace

std::unique_ptr<Command> make_emit_command() {
    return std::make_unique<EmitCommand>();
}

}  // namespace qcalib
