#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "audit/log_reader.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/encodings_summary.h"
#include "cli/log_summary.h"
#include "cli/subcommands.h"
#include "format/format.h"
#include "graph/model_file.h"
#include "report/convergence.h"
#include "report/statistics_summary.h"
#include "report/table.h"
#include "statistics/statistics_file.h"

namespace qcalib {

namespace {

// A row's number in the selection, or "sequence:step".
std::string sample_text(const StatisticsFile& file, std::size_t row) {
    const std::uint64_t number = file.row_number(row);
    if (!file.header().sequences) return std::to_string(number);
    return fmt::format("{}:{}", number >> step_bits, number % step_number(1, 0));
}

std::string number(double value) {
    return fmt::format("{:.7g}", value);
}

// Whether the file is text that an encodings file may be, not a model: models start with a field of a
// protobuf message.
bool holds_encodings(const std::filesystem::path& path) {
    const std::string extension = path.extension().string();
    for (const char* text : {".json", ".encodings", ".cache", ".prototxt", ".yaml", ".yml"}) {
        if (extension == text) return true;
    }
    if (extension == ".onnx") return false;
    constexpr std::size_t enough = 64;
    const MappedFile file(path);
    const std::size_t size = std::min(file.bytes().size(), enough);
    const std::string start(reinterpret_cast<const char*>(file.bytes().data()), size);
    return trim(start).starts_with('{') || start.starts_with("TRT-");
}

// Whether the file is text: a log of a converter or quantizer, where it is nothing else.
bool is_text(const std::filesystem::path& path) {
    constexpr std::size_t enough = 256;
    const MappedFile file(path);
    const auto bytes = file.bytes().first(std::min(file.bytes().size(), enough));
    const auto is_control = [](std::byte one) {
        const int code = std::to_integer<int>(one);
        return code < 0x20 && code != '\n' && code != '\r' && code != '\t' && code != 0x1b;
    };
    return !bytes.empty() && std::none_of(bytes.begin(), bytes.end(), is_control);
}

class InspectCommand : public Command {
  public:
    std::string name() const override { return "inspect"; }
    std::string summary() const override {
        return "What is in a model, a statistics file or an encodings file";
    }

    void add_options(CLI::App& app) override {
        app.add_option("file", file_,
                       "An .onnx or .qstats file, encodings of any format, or what a converter printed")
            ->required();
        app.add_option("--tensor", pattern_, "Only tensors whose name fits this pattern (* and ?)");
        app.add_option("--widest", widest_, "Only this many tensors, those with the widest ranges");
        app.add_flag("--convergence", convergence_,
                     "The range of each tensor after half and after all samples as well");
        app.add_flag("--rows", rows_, "The entries of each sample as well");
    }

    ExitCode run(Console& console) override {
        if (std::filesystem::path(file_).extension() == ".qstats") {
            inspect_statistics(console);
        } else if (holds_encodings(file_)) {
            inspect_encodings(console);
        } else if (std::filesystem::path(file_).extension() != ".onnx" && is_text(file_)) {
            inspect_log(console);
        } else {
            inspect_model(console);
        }
        return ExitCode::fine;
    }

  private:
    void inspect_model(const Console& console) const;
    void inspect_encodings(const Console& console) const;
    void inspect_log(const Console& console) const;
    void inspect_statistics(const Console& console) const;
    std::vector<std::size_t> chosen_tensors(const StatisticsFile& file) const;
    static Table tensor_table(const StatisticsFile& file, std::span<const std::size_t> tensors);
    static Table row_table(const StatisticsFile& file, std::span<const std::size_t> tensors);
    static Table convergence_table(const StatisticsFile& file, std::span<const std::size_t> tensors);

    std::string file_;
    std::string pattern_ = "*";
    std::size_t widest_ = 0;
    bool rows_ = false;
    bool convergence_ = false;
};

void InspectCommand::inspect_encodings(const Console& console) const {
    constexpr std::size_t most_entries = 200;
    Remarks remarks;
    const EncodingFile file = read_encodings(file_, remarks);
    console.print(encodings_summary(file, pattern_, most_entries, console.width()));
    console.remarks(remarks);
}

void InspectCommand::inspect_log(const Console& console) const {
    ConverterReport report;
    std::vector<std::string> texts;
    read_converter_output(file_, report, texts);
    Remarks remarks;
    for (std::string& text : texts) remarks.add(std::move(text));
    console.print(log_summary(report, pattern_, console.width()));
    console.remarks(remarks);
}

void InspectCommand::inspect_model(const Console& console) const {
    const Model model = read_model(file_);
    const Graph& graph = *model.graph;
    Table facts;
    facts.column("").column("");
    facts.row({"producer", printable(model.producer)});
    facts.row({"IR version", std::to_string(model.ir_version)});
    for (const auto& [domain, version] : model.opsets) {
        facts.row({"opset", fmt::format("{}{}", domain.empty() ? "" : domain + " ", version)});
    }
    facts.row({"SHA-256", model.hash});
    for (const ValueId input : graph.inputs) {
        const Value& value = graph.values[input];
        facts.row({"input", fmt::format("{} {} {}", printable(value.name), name_of(value.declared_type),
                                        to_string(value.declared_shape))});
    }
    for (const ValueId output : graph.outputs) {
        const Value& value = graph.values[output];
        facts.row({"output", fmt::format("{} {} {}", printable(value.name), name_of(value.declared_type),
                                         to_string(value.declared_shape))});
    }
    std::map<std::string, std::size_t> operators;
    for (const Node& node : graph.nodes) ++operators[node.op_type];
    std::vector<std::string> counts;
    counts.reserve(operators.size());
    for (const auto& [name, count] : operators) counts.push_back(fmt::format("{} {}", count, name));
    facts.row({"nodes", fmt::format("{}: {}", graph.nodes.size(), join(counts, ", "))});
    console.print(facts.text(std::max<std::size_t>(console.width(), 4096)));
}

std::vector<std::size_t> InspectCommand::chosen_tensors(const StatisticsFile& file) const {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < file.header().tensors.size(); ++i) {
        const TensorInfo& info = file.header().tensors[i];
        if (glob_match(pattern_, info.name) && !(widest_ > 0 && info.constant)) chosen.push_back(i);
    }
    if (chosen.empty()) {
        std::vector<std::string> names;
        for (const TensorInfo& info : file.header().tensors) names.push_back(info.name);
        fail("{}: no tensor fits '{}'{}", printable(file_), printable(pattern_),
             did_you_mean(pattern_, names));
    }
    if (widest_ == 0) return chosen;
    const auto width = [&](std::size_t tensor) {
        const std::optional<Range>& extremes = file.tensor(tensor).extremes;
        return extremes ? extremes->max - extremes->min : -1.0;
    };
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](std::size_t a, std::size_t b) { return width(a) > width(b); });
    if (chosen.size() > widest_) chosen.resize(widest_);
    return chosen;
}

Table InspectCommand::tensor_table(const StatisticsFile& file, std::span<const std::size_t> tensors) {
    using enum Table::Align;
    Table table;
    table.column("tensor").column("kind").column("min", right).column("max", right).column("mean", right);
    table.column("0.01 %", right).column("99.99 %", right).column("zeros", right).column("odd", right);
    for (const std::size_t tensor : tensors) {
        const TensorInfo& info = file.header().tensors[tensor];
        const TensorStatistics& statistics = file.tensor(tensor);
        std::vector<std::string> cells = {printable(info.name), info.constant ? "constant" : "activation"};
        const std::uint64_t elements = statistics.elements();
        const std::uint64_t odd = elements - statistics.counted();
        if (statistics.extremes) {
            cells.push_back(number(statistics.extremes->min));
            cells.push_back(number(statistics.extremes->max));
        } else {
            cells.insert(cells.end(), {"no data", ""});
        }
        const bool counted = statistics.extremes && statistics.counted() > 0;
        cells.push_back(counted ? number(moments(statistics).mean) : "");
        cells.push_back(counted ? number(quantile(statistics, 0.0001)) : "");
        cells.push_back(counted ? number(quantile(statistics, 0.9999)) : "");
        cells.push_back(elements == 0
                            ? ""
                            : fmt::format("{:.1f} %", 100.0 * static_cast<double>(statistics.zeros) /
                                                          static_cast<double>(elements)));
        cells.push_back(odd == 0 ? "" : std::to_string(odd));
        table.row(std::move(cells));
    }
    return table;
}

Table InspectCommand::row_table(const StatisticsFile& file, std::span<const std::size_t> tensors) {
    using enum Table::Align;
    Table table;
    table.column("tensor").column("sample", right).column("min", right).column("max", right);
    table.column("low tail", right).column("high tail", right);
    for (const std::size_t tensor : tensors) {
        if (file.header().tensors[tensor].constant) continue;
        const std::string name = printable(file.header().tensors[tensor].name);
        for (std::size_t row = 0; row < file.rows(); ++row) {
            const SampleSummary entry = file.entry(row, tensor);
            const std::string sample = sample_text(file, row);
            if (entry.has_data) {
                table.row({name, sample, number(entry.min), number(entry.max), number(entry.low_tail),
                           number(entry.high_tail)});
            } else {
                table.row({name, sample, "no data", "", "", ""});
            }
        }
    }
    return table;
}

// Ranges after half -> after all samples, and how many steps of 8 bits lie between.
Table InspectCommand::convergence_table(const StatisticsFile& file, std::span<const std::size_t> tensors) {
    using enum Table::Align;
    Table table;
    table.column("tensor").column("min, half", right).column("all", right);
    table.column("max, half", right).column("all", right).column("steps", right);
    table.column("low tail, half", right).column("all", right);
    table.column("high tail, half", right).column("all", right).column("steps", right);
    for (const std::size_t tensor : tensors) {
        if (file.header().tensors[tensor].constant) continue;
        std::vector<std::string> cells = {printable(file.header().tensors[tensor].name)};
        if (const std::optional<RangeMovement> found = movement_of(file, tensor)) {
            const auto add = [&](Range half, Range all, double steps) {
                for (const double end : {half.min, all.min, half.max, all.max}) cells.push_back(number(end));
                cells.push_back(fmt::format("{:.2f}", steps));
            };
            add(found->half, found->all, found->moved());
            if (found->tails) add(found->half_tails, found->all_tails, found->tails_moved());
        } else {
            cells.emplace_back("no data");
        }
        cells.resize(11);
        table.row(std::move(cells));
    }
    return table;
}

void InspectCommand::inspect_statistics(const Console& console) const {
    const StatisticsFile file{file_};
    const StatisticsHeader& header = file.header();
    const StatisticsSummary summary = summarize_statistics(file);
    Table facts;
    facts.column("").column("");
    facts.row({"model SHA-256", header.model_hash});
    facts.row({"instruction set", header.instruction_set});
    if (header.sequences) {
        facts.row(
            {"samples", fmt::format("{} steps of {} of {} selected sequences, {} skipped", summary.samples,
                                    summary.sequences, header.selected, summary.skipped)});
    } else {
        facts.row({"samples", fmt::format("{} of {} selected, {} skipped", summary.samples, header.selected,
                                          summary.skipped)});
    }
    if (header.shards > 1) facts.row({"shard", fmt::format("{} of {}", header.shard, header.shards)});
    facts.row(
        {"tensors", fmt::format("{} activations, {} constants", summary.activations, summary.constants)});
    facts.row({"statistics", header.counter.extremes_only ? "extremes only" : "full"});
    add_rows(facts, "convergence", convergence_lines(convergence_of(file)));
    for (const std::string& line : split(header.settings, '\n')) facts.row({"setting", printable(line)});
    const std::vector<std::size_t> tensors = chosen_tensors(file);
    console.print(facts.text(console.width()) + "\n");
    console.print(tensor_table(file, tensors).text(console.width()));
    if (convergence_) console.print("\n" + convergence_table(file, tensors).text(console.width()));
    if (rows_) console.print("\n" + row_table(file, tensors).text(console.width()));
}

}  // namespace

std::unique_ptr<Command> make_inspect_command() {
    return std::make_unique<InspectCommand>();
}

}  // namespace qcalib
