#include "cli/pipeline_settings.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "format/format.h"
#include "pipeline/schema.h"
#include "ranges/range_method.h"
#include "target/target.h"

namespace qcalib {

namespace {

using Kind = PipelineNode::Kind;

// Calls `function` for each key of the schema that has a flag, with its path.
template <typename Function>
void for_each_flag(Function&& function) {
    for (const PipelineSection& section : pipeline_schema()) {
        const std::string prefix = section.name == "pipeline" ? "" : section.name + ".";
        for (const PipelineKey& key : section.keys) {
            if (!key.flag.empty()) function(key, section.name == "target" ? "targets" : prefix + key.name);
        }
    }
}

// A map that was put together from several files as one map for each of them.
std::vector<PipelineNode> parts_by_source(const PipelineNode& node) {
    if (node.kind != Kind::map || !node.changed) return {node};
    std::vector<PipelineNode> parts;
    for (const PipelineNode::Entry& entry : node.entries) {
        if (parts.empty() || parts.back().place.source != entry.place.source) {
            PipelineNode& part = parts.emplace_back();
            part.kind = Kind::map;
            part.place = entry.place;
            part.changed = true;
        }
        parts.back().entries.push_back(entry);
    }
    return parts;
}

class Binding {
  public:
    Binding(const Pipeline& pipeline, FlagPlaces& places, PipelineFaults& faults)
        : pipeline_(pipeline), places_(places), faults_(faults) {}

    CalibrationSettings settings() {
        CalibrationSettings settings;
        settings.model = pipeline_.text("model");
        settings.output = pipeline_.text("output", settings.output);
        data(settings.data);
        selection(settings.data);
        run(settings.run);
        tensors(settings.tensors);
        encodings(settings.encodings);
        methods("calibration.method", settings.encodings.methods);
        methods("calibration.weight-method", settings.encodings.weight_methods);
        targets(settings.encodings);
        settings.explain = pipeline_.texts("report.explain");
        settings.audit.logs = pipeline_.texts("audit.log");
        settings.audit.target = pipeline_.text("audit.target");
        settings.audit.allow = pipeline_.text("audit.allow");
        settings.audit.all = pipeline_.boolean("audit.all", false);
        for (const char* key : {"audit.target", "audit.allow"}) {
            if (settings.audit.logs.empty() && pipeline_.has(key)) {
                faults_.add(pipeline_.place(key), fmt::format("{}: expected audit.log beside it", key));
            }
        }
        settings.run.perf = pipeline_.boolean("report.costs", settings.run.perf);
        settings.json = pipeline_.text("report.format") == "json";
        name_flags();
        return settings;
    }

  private:
    void data(DataSettings& data) {
        for (const char* source : {"list", "folder", "glob", "npz", "hdf5"}) {
            const std::string path = std::string("data.") + source;
            if (pipeline_.has(path)) data.list = pipeline_.text(path);
        }
        check_ending("data.npz", {".npz", ".npy"});
        check_ending("data.hdf5", {".h5", ".hdf5"});
        named("data.shapes", "--shape", data.shapes);
        named("data.values", "--input", data.values);
        named("data.carry", "--carry", data.carries);
        preprocessing(data);
    }

    void check_ending(const std::string& path, const std::vector<std::string>& endings) {
        const PipelineNode* node = pipeline_.find(path);
        if (node == nullptr) return;
        const auto ends = [&](const std::string& ending) { return node->scalar.ends_with(ending); };
        if (std::any_of(endings.begin(), endings.end(), ends)) return;
        faults_.add(node->place, fmt::format("{}: expected a file that ends with {}, found '{}'", path,
                                             join(endings, " or "), printable(node->scalar)));
    }

    // A map from names as texts of a flag, "name=1,2".
    void named(const std::string& path, const std::string& flag, std::vector<std::string>& texts) {
        const PipelineNode* node = pipeline_.find(path);
        if (node == nullptr) return;
        for (const PipelineNode::Entry& entry : node->entries) {
            std::vector<std::string> values;
            for (const PipelineNode& item : entry.value.items) values.push_back(item.scalar);
            if (entry.value.kind == Kind::scalar) values.push_back(entry.value.scalar);
            texts.push_back(entry.key + "=" + join(values, ","));
            places_.add(flag + " " + printable(texts.back()),
                        fmt::format("{}: {}.{}", entry.place.text(), path, printable(entry.key)));
        }
    }

    void preprocessing(DataSettings& data);

    void selection(DataSettings& data) {
        if (const auto seed = pipeline_.integer("selection.shuffle")) {
            data.shuffle = static_cast<std::uint64_t>(*seed);
        }
        if (const auto limit = pipeline_.integer("selection.limit")) {
            data.limit = static_cast<std::uint64_t>(*limit);
        }
        data.shard = pipeline_.text("selection.shard");
    }

    void run(RunSettings& run) {
        run.jobs = static_cast<unsigned>(pipeline_.integer("calibration.jobs").value_or(run.jobs));
        run.memory = pipeline_.text("calibration.memory");
        run.checkpoint = pipeline_.integer("calibration.checkpoint");
        run.mask_below = pipeline_.real("calibration.mask-below");
        run.isa = pipeline_.text("calibration.isa", run.isa);
        run.export_inputs = pipeline_.text("calibration.export-inputs");
        run.dump_input = pipeline_.text("calibration.dump-input");
        run.reference_kernels = pipeline_.boolean("calibration.reference-kernels", run.reference_kernels);
        run.quantized_weights = pipeline_.boolean("calibration.quantized-weights", run.quantized_weights);
        run.strict = pipeline_.boolean("calibration.strict", run.strict);
    }

    void tensors(TensorSettings& tensors) {
        tensors.statistics = pipeline_.text("calibration.statistics", tensors.statistics);
        if (pipeline_.has("calibration.tensors")) tensors.tensors = pipeline_.texts("calibration.tensors");
        tensors.no_derivation = !pipeline_.boolean("calibration.derivation", true);
    }

    void methods(const std::string& path, std::vector<std::string>& methods) {
        for (const PipelineNode* item : pipeline_.items(path)) {
            try {
                parse_method_rule(item->scalar);
                methods.push_back(item->scalar);
            } catch (const Error& error) {
                faults_.add(item->place, fmt::format("{}: {}", path, error.what()));
            }
        }
    }

    void encodings(EncodingSettings& encodings) {
        const auto width = [&](const std::string& path) {
            const std::optional<std::int64_t> bits = pipeline_.integer(path);
            return bits ? std::optional<int>(static_cast<int>(*bits)) : std::nullopt;
        };
        const auto flag = [&](const std::string& path) {
            return pipeline_.has(path) ? std::optional<bool>(pipeline_.boolean(path, false)) : std::nullopt;
        };
        const auto yes_or_no = [&](const std::string& path) {
            const std::optional<bool> value = flag(path);
            return value ? *value ? "yes" : "no" : "";
        };
        encodings.activation_bits = width("encodings.act-bits");
        encodings.weight_bits = width("encodings.weight-bits");
        encodings.weights = pipeline_.text("encodings.weights");
        encodings.symmetric_weights = flag("encodings.symmetric-weights");
        encodings.symmetric_activations = flag("encodings.symmetric-activations");
        encodings.unsigned_symmetric = flag("encodings.unsigned-symmetric");
        encodings.power_of_two = yes_or_no("encodings.power-of-two");
        encodings.include_zero = yes_or_no("encodings.include-zero");
        encodings.bias_bits = width("encodings.bias-bits");
        if (const PipelineNode* range = pipeline_.find("encodings.least-range")) {
            at(*range, "least-range", [&] { set_least_range(range->scalar, encodings); });
        }
        encodings.base = pipeline_.text("base");
        encodings.onnx = pipeline_.text("onnx");
        encodings.patch = pipeline_.text("patch");
        overrides(encodings.overrides);
        encodings.nonfinite = pipeline_.text("encodings.nonfinite");
        encodings.masks = pipeline_.text("encodings.masks");
    }

    // Entries of several files are read file by file, as their places are.
    void overrides(std::vector<Override>& overrides) {
        const PipelineNode* node = pipeline_.find("overrides");
        if (node == nullptr) return;
        for (const PipelineNode& part : parts_by_source(*node)) {
            YamlFaults found(part.place.source);
            const std::vector<Override> read = parse_overrides(to_yaml_node(part), part.place.source, found);
            overrides.insert(overrides.end(), read.begin(), read.end());
            for (const YamlFaults::Fault& fault : found.all()) {
                PipelinePlace place = part.place;
                if (place.line != 0) std::tie(place.line, place.column) = std::pair(fault.line, fault.column);
                faults_.add(place, fault.text);
            }
        }
    }

    void targets(EncodingSettings& encodings) {
        for (const PipelineNode* item : pipeline_.items("targets")) {
            const PipelineNode* name = item->find("name");
            if (name == nullptr) continue;
            const PipelineNode* format = item->find("format");
            const PipelineNode* config = item->find("config");
            std::string text = name->scalar;
            if (format != nullptr) {
                if (text.find(':') != std::string::npos) {
                    faults_.add(format->place,
                                fmt::format("format: expected one format, found '{}' beside '{}'",
                                            printable(format->scalar), printable(text)));
                    continue;
                }
                text += ":" + format->scalar;
            }
            check_target(*name, format, config);
            encodings.emit.push_back(text);
            if (config != nullptr) encodings.target_configs.push_back(config->scalar);
        }
    }

    void check_target(const PipelineNode& name, const PipelineNode* format, const PipelineNode* config) {
        const std::size_t colon = name.scalar.find(':');
        at(config != nullptr ? *config : name, config != nullptr ? "config" : "name", [&] {
            load_target(
                name.scalar.substr(0, colon),
                config == nullptr ? std::nullopt : std::optional<std::filesystem::path>(config->scalar));
        });
        if (format != nullptr) at(*format, "format", [&] { find_format(format->scalar); });
        if (format == nullptr && colon != std::string::npos) {
            at(name, "name", [&] { find_format(name.scalar.substr(colon + 1)); });
        }
    }

    // An Error of `check` is a fault of the node.
    template <typename Check>
    void at(const PipelineNode& node, const std::string& key, Check&& check) {
        try {
            check();
        } catch (const Error& error) {
            faults_.add(node.place, fmt::format("{}: {}", key, error.what()));
        }
    }

    void name_flags() {
        for_each_flag([&](const PipelineKey& key, const std::string& path) {
            if (!pipeline_.has(path)) return;
            const PipelinePlace place = pipeline_.place(path);
            places_.add(key.flag, fmt::format("{}: {}", place.text(), path));
            for (const PipelineNode* item : pipeline_.items(path)) {
                if (item->kind != Kind::scalar) continue;
                places_.add(fmt::format("{}: no float tensor of the model matches '{}'", key.flag,
                                        printable(item->scalar)),
                            fmt::format("{}: {}: no float tensor of the model matches '{}'",
                                        item->place.text(), path, printable(item->scalar)));
            }
        });
    }

    const Pipeline& pipeline_;
    FlagPlaces& places_;
    PipelineFaults& faults_;
};

StepText step_text(const PipelineNode::Entry& entry) {
    StepText text{entry.key, {}};
    for (const PipelineNode::Entry& parameter : entry.value.entries) {
        std::vector<std::string> values;
        for (const PipelineNode& item : parameter.value.items) values.push_back(item.scalar);
        if (parameter.value.kind == Kind::scalar) values.push_back(parameter.value.scalar);
        text.parameters.emplace(parameter.key, join(values, ","));
    }
    return text;
}

bool has_name(std::span<const StepInfo> infos, const std::string& name) {
    return std::any_of(infos.begin(), infos.end(), [&](const StepInfo& info) { return info.name == name; });
}

void Binding::preprocessing(DataSettings& data) {
    if (!pipeline_.has("data.preprocessing")) return;
    std::vector<PictureStep> steps;
    for (const PipelineNode* item : pipeline_.items("data.preprocessing")) {
        if (item->entries.empty()) continue;
        const PipelineNode::Entry& entry = item->entries.front();
        const auto fault = [&](const std::string& parameter, const std::string& text) {
            const auto place = [&] {
                for (const PipelineNode::Entry& one : entry.value.entries) {
                    if (one.key == parameter) return one.value.place;
                }
                return entry.place;
            };
            faults_.add(place(), fmt::format("{}: {}", entry.key, text));
        };
        const StepText text = step_text(entry);
        if (has_name(preprocessing_presets(), text.name)) {
            const auto preset = parse_preset(text, fault);
            if (preset) steps.insert(steps.end(), preset->begin(), preset->end());
        } else if (has_name(preprocessing_steps(), text.name)) {
            if (const auto step = parse_step(text, fault)) steps.push_back(*step);
        } else {
            std::vector<std::string> names;
            for (const StepInfo& info : preprocessing_steps()) names.push_back(info.name);
            for (const StepInfo& info : preprocessing_presets()) names.push_back(info.name);
            faults_.add(entry.place,
                        fmt::format("preprocessing: expected one of {}, found '{}'{}", join(names, ", "),
                                    printable(text.name), did_you_mean(text.name, names)));
        }
    }
    data.preprocessing = Preprocessing(std::move(steps));
}

std::string documented_steps(const std::string& title, const std::string& text,
                             std::span<const StepInfo> infos) {
    std::string result = fmt::format("\n## {}\n\n{}\n", title, text);
    for (const StepInfo& info : infos) {
        result += fmt::format("\n### {}\n\n{}\n", info.name, info.summary);
        if (info.parameters.empty()) continue;
        result += "\n| parameter | value | default | meaning |\n| --- | --- | --- | --- |\n";
        for (const StepParameterInfo& parameter : info.parameters) {
            const std::vector<std::string> cells = {
                "`" + parameter.name + "`", parameter.values,
                parameter.default_value.empty() ? "" : "`" + parameter.default_value + "`",
                parameter.description};
            result += documentation_row(cells);
        }
    }
    return result;
}

std::string documented_overrides() {
    std::string text =
        "\n## overrides\n\nWhat may stand for a tensor under `overrides` of the document. The command line "
        "goes before "
        "the pipeline, an exact name before a pattern, one for a target alone before one for all, a later "
        "one before "
        "an earlier one.\n\n| key | value | meaning |\n| --- | --- | --- |\n";
    for (const OverrideKey& key : override_keys()) {
        const std::vector<std::string> cells = {fmt::format("`{}`", key.name), std::string(key.value),
                                                std::string(key.summary)};
        text += documentation_row(cells);
    }
    return text;
}

}  // namespace

std::string registry_documentation() {
    return documented_steps("Preprocessing steps",
                            "What stands under `preprocessing` of [data](#data), in the order given.",
                            preprocessing_steps()) +
           documented_steps(
               "Preprocessing presets",
               "Names for the steps that a training library or model family uses; other steps may stand "
               "before and behind them.",
               preprocessing_presets()) +
           documented_overrides();
}

void FlagPlaces::add(std::string text, std::string place) {
    places_.emplace_back(std::move(text), std::move(place));
}

std::string FlagPlaces::translated(const std::string& message) const {
    std::vector<std::string> lines = split(message, '\n');
    for (std::string& line : lines) line = translated_line(std::move(line));
    return join(lines, "\n");
}

std::string FlagPlaces::translated_line(std::string line) const {
    const std::pair<std::string, std::string>* longest = nullptr;
    for (const auto& place : places_) {
        const bool starts = line.starts_with(place.first) &&
                            (line.size() == place.first.size() || line[place.first.size()] == ':' ||
                             line[place.first.size()] == ' ');
        if (starts && (longest == nullptr || place.first.size() > longest->first.size())) longest = &place;
    }
    std::string start;
    if (longest != nullptr) {
        start = longest->second;
        line = line.substr(longest->first.size());
    }
    // Advice: "add --tensors target" is "add calibration.tensors: target" here.
    for_each_flag([&](const PipelineKey& key, const std::string& path) {
        for (std::size_t found = 0; (found = line.find(key.flag, found)) != std::string::npos;) {
            const std::size_t end = found + key.flag.size();
            const bool whole = end == line.size() ||
                               (!std::isalnum(static_cast<unsigned char>(line[end])) && line[end] != '-');
            const bool valued = whole && end + 1 < line.size() && line[end] == ' ';
            const std::string text = path + (valued ? ":" : "");
            if (whole) line.replace(found, key.flag.size(), text);
            found += whole ? text.size() : key.flag.size();
        }
    });
    return start + line;
}

CalibrationSettings pipeline_settings(const Pipeline& pipeline, FlagPlaces& places, PipelineFaults& faults) {
    return Binding(pipeline, places, faults).settings();
}

}  // namespace qcalib
