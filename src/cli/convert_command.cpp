#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/subcommands.h"
#include "format/format.h"
#include "format/model_facts.h"
#include "graph/model_file.h"

namespace qcalib {

namespace {

class ConvertCommand : public Command {
  public:
    std::string name() const override { return "convert"; }
    std::string summary() const override { return "Write an encodings file in another format"; }

    void add_options(CLI::App& app) override {
        app.add_option("file", file_, "The encodings file; its format is recognised")->required();
        app.add_option("--to", format_, "The format to write (`qcalib list formats`)")->required();
        app.add_option("-o,--output", output_, "The file to write (default: standard output)");
        app.add_option("--model", model_,
                       "The model the names are of: tells parameters, axes and counts of channels");
        app.add_flag("--strict", strict_, "Remarks make the exit code 1");
    }

    ExitCode run(Console& console) override {
        Remarks remarks;
        const Format& format = find_format(format_);
        EncodingFile file = read_encodings(file_, remarks);
        if (!model_.empty()) {
            const Model model = read_model(model_);
            add_model_facts(file, *model.graph, remarks);
        }
        const std::string text = format.emit(file, remarks);
        if (output_.empty()) {
            console.print(text);
        } else {
            write_file(output_, text);
            console.print(printable(output_) + "\n");
        }
        console.remarks(remarks);
        return strict_ && !remarks.empty() ? ExitCode::findings : ExitCode::fine;
    }

  private:
    std::string file_;
    std::string format_;
    std::string output_;
    std::string model_;
    bool strict_ = false;
};

}  // namespace

std::unique_ptr<Command> make_convert_command() {
    return std::make_unique<ConvertCommand>();
}

}  // namespace qcalib
