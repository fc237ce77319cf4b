#include <optional>

#include <CLI/CLI.hpp>

#include "audit/allow_list.h"
#include "audit/audit.h"
#include "audit/log_reader.h"
#include "audit/renames.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/subcommands.h"
#include "format/format.h"
#include "graph/onnx_file.h"
#include "report/audit_report.h"
#include "target/target.h"

namespace qcalib {

namespace {

class AuditCommand : public Command {
  public:
    std::string name() const override { return "audit"; }
    std::string summary() const override {
        return "Whether a converter used the encodings it was given, and why not";
    }

    void add_options(CLI::App& app) override {
        app.add_option("--encodings", encodings_, "The file the converter was given, in any format")
            ->required();
        app.add_option(
               "--log", logs_,
               "What the converter or quantizer printed, the output of snpe-dlc-info, or a file of encodings "
               "it dumped; may be given again")
            ->allow_extra_args(false);
        app.add_option("--against", against_, "Another file of encodings to compare with, in place of logs");
        app.add_option("--model", model_, "The ONNX model: names and causes get better with it");
        app.add_option("--against-model", against_model_,
                       "The model of the file given with --against, where its tensors have other names");
        app.add_option("--stats", statistics_,
                       "Statistics of the model: tells whether a range is measured data");
        app.add_option("--target", target_, "Whose rules hold")->capture_default_str();
        app.add_option("--target-config", target_config_,
                       "Use this YAML instead of the target's built-in rules");
        app.add_option("--allow", allow_, "YAML with the findings that are accepted");
        app.add_option("--format", format_, "table or json")->capture_default_str();
        app.add_option("-o,--output", output_, "Write the findings as JSON to this file as well");
        app.add_flag("--all", all_, "List tensors whose encoding was applied as well");
    }

    ExitCode run(Console& console) override {
        check_options();
        const AuditResult result = findings(console);
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
        if (logs_.empty() == against_.empty()) {
            fail("{}: expected either --log FILE (once or more) or --against FILE", printable(encodings_));
        }
        if (!against_model_.empty() && (against_.empty() || model_.empty()))
            fail("--against-model: expected --against and --model beside it");
        const std::vector<std::string> formats = {"table", "json"};
        if (format_ != "table" && format_ != "json") {
            fail("--format: expected table or json, found '{}'{}", printable(format_),
                 did_you_mean(format_, formats));
        }
    }

    AuditResult findings(const Console& console) const {
        AuditInput input;
        const std::vector<Allowed> allowed =
            allow_.empty() ? std::vector<Allowed>{} : read_allow_list(allow_);
        const Target target = load_target(
            target_,
            target_config_.empty() ? std::nullopt : std::optional<std::filesystem::path>(target_config_));
        Remarks remarks;
        const EncodingFile given = read_encodings(encodings_, remarks, &input.faults);
        std::optional<Model> model;
        if (!model_.empty()) model.emplace(read_onnx_file(model_));
        std::optional<StatisticsFile> statistics;
        if (!statistics_.empty()) statistics.emplace(statistics_);
        if (model && statistics && statistics->header().model_hash != model->hash)
            remarks.add(printable(statistics_) + ": made from another model than " + printable(model_));
        const ConverterReport found =
            against_.empty() ? read_logs(remarks) : read_other(given, model, remarks);
        input.given = &given;
        input.found = &found;
        input.target = &target;
        input.graph = model ? model->graph.get() : nullptr;
        input.statistics = statistics ? &*statistics : nullptr;
        input.files_only = !against_.empty();
        AuditResult result = audit(input);
        accept(allowed, result);
        console.remarks(remarks);
        return result;
    }

    ConverterReport read_logs(Remarks& remarks) const {
        ConverterReport report;
        std::vector<std::string> texts;
        for (const std::string& log : logs_) read_converter_output(log, report, texts);
        for (std::string& text : texts) remarks.add(std::move(text));
        return report;
    }

    ConverterReport read_other(const EncodingFile& given, const std::optional<Model>& model,
                               Remarks& remarks) const {
        const EncodingFile other = read_encodings(against_, remarks);
        ConverterReport report = report_of(other);
        if (against_model_.empty()) {
            rename(report, given, renamed_weights(given, other));
        } else {
            rename(report, given, renamed_tensors(*model->graph, *read_onnx_file(against_model_).graph));
        }
        return report;
    }

    std::string encodings_;
    std::vector<std::string> logs_;
    std::string against_;
    std::string model_;
    std::string against_model_;
    std::string statistics_;
    std::string target_ = "snpe";
    std::string target_config_;
    std::string allow_;
    std::string format_ = "table";
    std::string output_;
    bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> make_audit_command() {
    return std::make_unique<AuditCommand>();
}

}  // namespace qcalib
