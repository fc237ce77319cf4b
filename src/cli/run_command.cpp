#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/calibration_run.h"
#include "cli/pipeline_settings.h"
#include "cli/subcommands.h"
#include "cli/summary_format.h"
#include "pipeline/pipeline.h"

namespace qcalib {

namespace {

class RunCommand : public Command {
  public:
    std::string name() const override { return "run"; }
    std::string summary() const override { return "Do what a pipeline (a YAML file) says"; }

    void add_options(CLI::App& app) override {
        app.add_option("pipeline", file_, "The pipeline; its keys: qcalib list pipeline")->required();
        app.add_option("--set", settings_,
                       "KEY=VALUE over the file, as calibration.jobs=4; may be given again")
            ->allow_extra_args(false);
        app.add_option("-o,--output", output_, "Folder for the files written, over the pipeline's");
        app.add_flag("--dry-run", dry_run_,
                     "Check all that needs no sample and print the pipeline as it is understood");
        add_summary_format(app, format_);
    }

    ExitCode run(Console& console) override {
        PipelineFaults faults;
        const Pipeline pipeline = load_pipeline(file_, settings_, process_environment(), faults);
        FlagPlaces places;
        CalibrationSettings settings = pipeline_settings(pipeline, places, faults);
        faults.throw_if_any();
        if (!output_.empty()) settings.output = output_;
        settings.json = settings.json || is_json(format_);
        try {
            return dry_run_ ? check(settings, pipeline, console) : run_calibration(settings, console);
        } catch (const Error& error) {
            throw Error(places.translated(error.what()));
        }
    }

  private:
    static ExitCode check(const CalibrationSettings& settings, const Pipeline& pipeline, Console& console) {
        Remarks remarks;
        prepare_calibration(settings, remarks);
        console.print(pipeline.yaml());
        console.remarks(remarks);
        return ExitCode::fine;
    }

    std::string file_;
    std::vector<std::string> settings_;
    std::string output_;
    std::string format_ = "table";
    bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_command() {
    return std::make_unique<RunCommand>();
}

}  // namespace qcalib
