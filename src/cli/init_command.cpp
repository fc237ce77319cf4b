#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/pipeline_draft.h"
#include "cli/subcommands.h"
#include "graph/model_file.h"

namespace qcalib {

namespace {

class InitCommand : public Command {
  public:
    std::string name() const override { return "init"; }
    std::string summary() const override { return "Write a commented pipeline for a model"; }

    void add_options(CLI::App& app) override {
        app.add_option("--model", model_, "The float ONNX model")->required();
        app.add_option("--data", list_, "The list of samples that it names")->capture_default_str();
        app.add_option("-o,--output", file_, "The pipeline")->capture_default_str();
        app.add_flag("--force", force_, "Write over a file that is there");
    }

    ExitCode run(Console& console) override {
        const Model model = read_model(model_);
        std::error_code ignored;
        if (!force_ && std::filesystem::exists(file_, ignored)) {
            fail("{}: there is such a file already; --force writes over it", printable(file_));
        }
        write_file(file_, draft_pipeline(*model.graph, model_, list_));
        console.print(printable(file_) + "\n");
        return ExitCode::fine;
    }

  private:
    std::string model_;
    std::string list_ = "list.txt";
    std::string file_ = "pipeline.yaml";
    bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_init_command() {
    return std::make_unique<InitCommand>();
}

}  // namespace qcalib
