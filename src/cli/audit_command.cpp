#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/audit_run.h"
#include "cli/subcommands.h"
#include "report/audit_report.h"

namespace qcalib {

namespace {

class AuditCommand : public Command {
  public:
    std::string name() const override { return "audit"; }
    std::string summary() const override {
        return "Whether a converter used the encodings it was given, and why not";
    }

    void add_options(CLI::App& app) override {
        app.add_option("--encodings", settings_.encodings,
                       "The file the converter was given, in any format, or the ONNX model with Clip nodes")
            ->required();
        app.add_option(
               "--log", settings_.logs,
               "What the converter or quantizer printed, the output of snpe-dlc-info, or a file of encodings "
               "it dumped; may be given again")
            ->allow_extra_args(false);
        app.add_option("--against", settings_.against,
                       "Another file of encodings to compare with, in place of logs");
        app.add_option("--model", settings_.model, "The ONNX model: names and causes get better with it");
        app.add_option("--against-model", settings_.against_model,
                       "The model of the file given with --against, where its tensors have other names");
        app.add_option("--stats", settings_.statistics,
                       "Statistics of the model: tells whether a range is measured data");
        app.add_option("--target", settings_.target, "Whose rules hold")->capture_default_str();
        app.add_option("--target-config", settings_.target_config,
                       "Use this YAML instead of the target's built-in rules");
        app.add_option("--allow", settings_.allow, "YAML with the findings that are accepted");
        app.add_option("--format", format_, "table or json")->capture_default_str();
        app.add_option("-o,--output", output_, "Write the findings as JSON to this file as well");
        app.add_flag("--all", all_, "List tensors whose encoding was applied as well");
    }

    ExitCode run(Console& console) override {
        check_options();
        Remarks remarks;
        const AuditResult result = run_audit(settings_, remarks);
        console.remarks(remarks);
        if (!output_.empty()) write_file(output_, to_json(result));
        if (format_ == "json") {
            console.print(to_json(result));
            for (const std::string& cause : result.causes) console.note("likely cause: " + cause);
            for (const std::string& note : result.notes) console.note("note: " + note);
        } else {
            console.print(audit_text(result, all_, console.width()));
        }
        return result.objections() ? ExitCode::findings : ExitCode::fine;
    }

  private:
    void check_options() const {
        if (settings_.logs.empty() == settings_.against.empty()) {
            fail("{}: expected either --log FILE (once or more) or --against FILE",
                 printable(settings_.encodings));
        }
        if (!settings_.against_model.empty() && (settings_.against.empty() || settings_.model.empty()))
            fail("--against-model: expected --against and --model beside it");
        const std::vector<std::string> formats = {"table", "json"};
        if (format_ != "table" && format_ != "json") {
            fail("--format: expected table or json, found '{}'{}", printable(format_),
                 did_you_mean(format_, formats));
        }
    }

    AuditSettings settings_;
    std::string format_ = "table";
    std::string output_;
    bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> make_audit_command() {
    return std::make_unique<AuditCommand>();
}

}  // namespace qcalib
