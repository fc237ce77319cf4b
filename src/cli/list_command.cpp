#include <algorithm>

#include <CLI/CLI.hpp>

#include "audit/log_reader.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/pipeline_settings.h"
#include "cli/subcommands.h"
#include "dataset/preprocessing.h"
#include "format/format.h"
#include "pipeline/schema.h"
#include "ranges/range_method.h"
#include "report/table.h"
#include "runtime/kernel_registry.h"
#include "target/target.h"

namespace qcalib {

namespace {

std::string list_operators(std::size_t width) {
    Table table;
    table.column("operator").column("since", Table::Align::right).column("what it does");
    for (const OperatorEntry* entry : builtin_kernels().entries()) {
        const std::string name =
            entry->domain.empty() ? entry->op_type : entry->domain + "." + entry->op_type;
        table.row({name, std::to_string(entry->since), entry->summary});
    }
    return table.text(width);
}

// The text with the indentation, broken at blanks.
std::string wrapped(const std::string& text, const std::string& indent, std::size_t width) {
    std::string result;
    std::string line = indent;
    for (const std::string& word : split(text, ' ')) {
        if (line.size() > indent.size() && line.size() + 1 + word.size() > width) {
            result += line + "\n";
            line = indent;
        }
        line += (line.size() > indent.size() ? " " : "") + word;
    }
    return result + line + "\n";
}

std::string list_methods(std::size_t width) {
    const std::size_t columns = std::clamp<std::size_t>(width, 40, 120);
    std::string text;
    for (const RangeMethod* method : range_methods()) {
        text += method->name() + "\n" + wrapped(method->summary(), "    ", columns);
        text += wrapped("Source: " + method->source(), "    ", columns);
        if (parse_method(method->name()).needs_histogram()) {
            text += wrapped("Needs histograms (--statistics full).", "    ", columns);
        }
        for (const MethodParameter& parameter : method->parameters()) {
            text +=
                wrapped(fmt::format("{} (default {}, {} to {}): {}", parameter.name, parameter.default_value,
                                    parameter.least, parameter.greatest, parameter.description),
                        "      ", columns);
        }
    }
    return text;
}

std::string list_targets(std::size_t /*width*/) {
    std::string text;
    for (const std::string& name : builtin_target_names()) {
        const Target target = load_target(name);
        text += fmt::format("{}\n    {}\n    format {}, method {}\n", name, target.summary,
                            join(target.default_formats, ", "), target.default_method);
    }
    return text;
}

std::string list_formats(std::size_t width) {
    const std::size_t columns = std::clamp<std::size_t>(width, 40, 120);
    std::string text;
    for (const Format* format : formats()) {
        text += fmt::format("{} ({}, {})\n", format->name(), format->suffix(),
                            format->writable() ? "read and written" : "only read");
        text += wrapped(format->summary(), "    ", columns) + wrapped(format->limits(), "    ", columns);
    }
    return text;
}

std::string list_steps(std::span<const StepInfo> infos, std::size_t columns) {
    std::string text;
    for (const StepInfo& info : infos) {
        text += info.name + "\n" + wrapped(info.summary, "    ", columns);
        for (const StepParameterInfo& parameter : info.parameters) {
            const std::string otherwise =
                parameter.default_value.empty() ? "" : fmt::format(" (default {})", parameter.default_value);
            text += wrapped(fmt::format("{}: {}{}. {}", parameter.name, parameter.values, otherwise,
                                        parameter.description),
                            "      ", columns);
        }
    }
    return text;
}

std::string list_preprocessing(std::size_t width) {
    const std::size_t columns = std::clamp<std::size_t>(width, 40, 120);
    return "Steps\n\n" + list_steps(preprocessing_steps(), columns) + "\nPresets\n\n" +
           list_steps(preprocessing_presets(), columns);
}

std::string list_pipeline(std::size_t /*width*/) {
    return pipeline_documentation(registry_documentation());
}

std::string list_logs(std::size_t width) {
    const std::size_t columns = std::clamp<std::size_t>(width, 40, 120);
    std::string text;
    for (const LogReader* reader : log_readers())
        text += reader->name() + "\n" + wrapped(reader->summary(), "    ", columns);
    return text;
}

struct Registry {
    std::string name;
    std::string (*text)(std::size_t width);
};

const std::vector<Registry>& registries() {
    static const std::vector<Registry> all = {{"operators", list_operators},
                                              {"methods", list_methods},
                                              {"targets", list_targets},
                                              {"formats", list_formats},
                                              {"preprocessing", list_preprocessing},
                                              {"pipeline", list_pipeline},
                                              {"logs", list_logs}};
    return all;
}

class ListCommand : public Command {
  public:
    std::string name() const override { return "list"; }
    std::string summary() const override {
        return "What there is: operators, methods, targets, formats, preprocessing, keys of a pipeline, logs";
    }

    void add_options(CLI::App& app) override {
        app.add_option("what", what_, "operators, methods, targets, formats, preprocessing, pipeline or logs")
            ->required();
    }

    ExitCode run(Console& console) override {
        std::vector<std::string> names;
        for (const Registry& registry : registries()) {
            names.push_back(registry.name);
            if (registry.name != what_) continue;
            console.print(registry.text(console.width()));
            return ExitCode::fine;
        }
        fail("{}: expected {}{}", printable(what_), join(names, ", "), did_you_mean(what_, names));
    }

  private:
    std::string what_;
};

}  // namespace

std::unique_ptr<Command> make_list_command() {
    return std::make_unique<ListCommand>();
}

}  // namespace qcalib
