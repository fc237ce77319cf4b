#include <CLI/CLI.hpp>

#include "cli/calibration_run.h"
#include "cli/explain_options.h"
#include "cli/subcommands.h"
#include "cli/summary_format.h"

namespace qcalib {

namespace {

void add_run_options(CLI::App& app, RunSettings& run) {
    const std::string group = "Run";
    app.add_option("--jobs", run.jobs, "Workers, each running whole samples (default: one a core)")
        ->group(group);
    app.add_option("--memory", run.memory,
                   "Memory the run may take, as 4G: fewer workers run where they would not fit")
        ->group(group);
    app.add_option(
           "--checkpoint", run.checkpoint,
           "Keep the statistics so far in <stem>.qstats.checkpoint after every N samples (sequences): "
           "the same command goes on from there where the run was broken off, also without this "
           "flag, and leaves the same bytes as one that was not. A checkpoint of another run is "
           "refused; remove it to start anew")
        ->group(group)
        ->type_name("N");
    app.add_option("--mask-below", run.mask_below, "Values below this negative number are masks, not data")
        ->group(group);
    app.add_option("--isa", run.isa, "Instruction set to hold to: sse4, avx2, avx512 or best")
        ->group(group)
        ->capture_default_str();
    app.add_option("--dump-input", run.dump_input,
                   "Folder to write each sample to as the model sees it (.npy)")
        ->group(group);
    app.add_option(
           "--export-inputs", run.export_inputs,
           "Folder to write the samples to as the converter reads them (raw float32, channels last where "
           "it has them), with input_list.txt")
        ->group(group);
    app.add_flag("--reference-kernels", run.reference_kernels,
                 "Use the plain kernels the fast ones are tested against")
        ->group(group);
    app.add_flag(
           "--quantized-weights", run.quantized_weights,
           "Measure on weights as their codes stand for them, as one-quantize does (--emit circle alone)")
        ->group(group);
    app.add_flag("--perf", run.perf, "Print what each operator and each stage of the run cost")->group(group);
    app.add_flag("--strict", run.strict,
                 "End at the first sample that cannot be read; remarks make the exit code 1")
        ->group(group);
}

class CalibrateCommand : public Command {
  public:
    std::string name() const override { return "calibrate"; }
    std::string summary() const override {
        return "Run samples through a model, keep statistics, write encodings";
    }

    void add_options(CLI::App& app) override {
        app.add_option("--model", model_, "The float ONNX model")->required();
        app.add_option("-o,--output", output_, "Folder for the files written")->capture_default_str();
        data_.add_to(app);
        encodings_.add_to(app, false);
        explain_.add_to(app);
        tensors_.add_to(app);
        add_run_options(app, run_);
        add_summary_format(app, format_);
    }

    ExitCode run(Console& console) override {
        CalibrationSettings settings;
        settings.model = model_;
        settings.output = output_;
        settings.data = data_.settings();
        settings.encodings = encodings_.settings();
        settings.tensors = tensors_.settings();
        settings.explain = explain_.patterns();
        settings.run = run_;
        settings.json = is_json(format_);
        return run_calibration(settings, console);
    }

  private:
    std::string model_;
    std::string output_ = "qcalib-out";
    DataOptions data_;
    EncodingOptions encodings_;
    TensorOptions tensors_;
    ExplainOptions explain_;
    RunSettings run_;
    std::string format_ = "table";
};

}  // namespace

std::unique_ptr<Command> make_calibrate_command() {
    return std::make_unique<CalibrateCommand>();
}

}  // namespace qcalib
