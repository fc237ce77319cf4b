#include "format/tidl_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/text.h"
#include "base/yaml_reader.h"
#include "format/all_formats.h"
#include "format/format_reader.h"
#include "format/tidl_option_table.h"
#include "format/tidl_params.h"

namespace qcalib {

namespace {

constexpr std::string_view advanced = "advanced_options:";

// The options of a file, looked up by name.
class TidlOptionValues {
  public:
    void set(const std::string& name, std::string value, std::size_t line) {
        values_[name] = {std::move(value), line};
    }
    bool has(const std::string& name) const { return values_.contains(name); }
    std::size_t line(const std::string& name) const { return values_.at(name).second; }
    std::string text(const std::string& name) const { return has(name) ? values_.at(name).first : ""; }
    double number(const std::string& name, double otherwise) const {
        return has(name) ? parse_real(values_.at(name).first, name) : otherwise;
    }

  private:
    std::map<std::string, std::pair<std::string, std::size_t>> values_;
};

// What TIDL makes of options that do not go together, a sentence each.
std::vector<std::string> conflicts(const TidlOptionValues& options) {
    constexpr std::array switches = {"activation_clipping", "weight_clipping", "bias_calibration",
                                     "channel_wise_quantization", "bias_clipping"};
    std::vector<std::string> found;
    const double level = options.number("accuracy_level", 1);
    const double style = options.number("advanced_options:quantization_scale_type", 0);
    const double bits = options.number("tensor_bits", 8);
    const auto say = [&](const std::string& name, const std::string& text) {
        found.push_back(fmt::format("line {}: {}: {}", options.line(name), name, text));
    };
    const bool tells_style = options.has("advanced_options:quantization_scale_type");
    for (const char* one : switches) {
        const std::string name = std::string(advanced) + one;
        if (options.has(name) && level != 9)
            say(name, fmt::format("ignored: it counts at accuracy_level 9 alone, found {}", level));
    }
    for (const char* one : {"calibration_frames", "calibration_iterations"}) {
        const std::string name = std::string(advanced) + one;
        if (options.has(name) && level == 0)
            say(name, "ignored: it counts where there is a calibration to do, found accuracy_level 0");
    }
    if (tells_style && style == 1 && level != 0) {
        say("advanced_options:quantization_scale_type",
            fmt::format("a model trained with quantization, whose ranges are powers of two, is compiled with "
                        "accuracy_level 0, found {}",
                        level));
    }
    if (options.has("tensor_bits") && bits == 16 && style == 1) {
        say("tensor_bits", "ranges of a model trained for 8 bits are no gain in 16: TI advises against it");
    }
    if (options.has("tensor_bits") && bits == 32)
        say("tensor_bits", "32 bits are float, on a PC alone: nothing is quantized");
    if (tells_style && style == 4 &&
        (options.text("platform") == "J7" || options.text("platform") == "J721E"))
        say("advanced_options:quantization_scale_type",
            "TDA4VM (J721E) takes symmetric encodings alone: 0 or 1");
    if (options.has("advanced_options:channel_wise_quantization") && level == 9 && style != 4) {
        say("advanced_options:channel_wise_quantization",
            "reaches depthwise convolutions alone with quantization_scale_type other than 4");
    }
    const std::string path = "advanced_options:quant_params_proto_path";
    if (!options.text(path).empty() && style != 0 && style != 1)
        say(path, fmt::format("holds symmetric ranges alone, found quantization_scale_type {}", style));
    if (options.number("advanced_options:prequantized_model", 0) == 1) {
        if (level != 0)
            say("advanced_options:prequantized_model",
                fmt::format("needs accuracy_level 0, found {}", level));
        if (!options.text(path).empty()) say(path, "has to be empty beside prequantized_model 1");
    }
    return found;
}

// Reads the options of a file, and its lists of names as entries with a width alone.
class TidlOptionReader {
  public:
    explicit TidlOptionReader(FormatReader& reader) : reader_(reader) {}

    void read() {
        const YAML::Node root = parse_yaml(reader_.text(), reader_.path().string());
        if (!root.IsMap()) {
            reader_.fault("", 1, "expected a map of options, found something else");
            return;
        }
        for (const auto& item : root) option(item.first, item.second);
        if (faulty_) return;
        for (const std::string& text : conflicts(values_)) reader_.note_file(text);
        add("advanced_options:output_feature_16bit_names_list", Section::activation);
        add("advanced_options:params_16bit_names_list", Section::parameter);
    }

  private:
    static std::size_t line_of(const YAML::Node& node) {
        return static_cast<std::size_t>(node.Mark().line) + 1;
    }

    void fault(const YAML::Node& node, std::string text) {
        faulty_ = true;
        reader_.fault("", line_of(node), std::move(text));
    }

    void option(const YAML::Node& key, const YAML::Node& value) {
        if (!key.IsScalar()) return fault(key, "expected the name of an option, found something else");
        const std::string name = key.Scalar();
        if (name == advanced.substr(0, advanced.size() - 1) && value.IsMap()) {
            fault(key, "advanced_options: expected options called advanced_options:NAME, found a map");
            return;
        }
        const TidlOption* known = tidl_option(name);
        if (known == nullptr) return fault(key, unknown(name));
        if (values_.has(name)) return fault(key, fmt::format("{}: given twice", name));
        const std::string text = value.IsScalar() ? value.Scalar() : joined(value);
        const std::string wrong = value.IsMap() ? "a map" : known->objection(text);
        if (!wrong.empty()) {
            fault(value.IsNull() ? key : value,
                  fmt::format("{}: expected {}, found {}", name, known->expected(),
                              value.IsMap() ? "a map" : wrong));
            return;
        }
        values_.set(name, text, line_of(key));
    }

    // A list of names as the one text that TIDL takes.
    static std::string joined(const YAML::Node& list) {
        std::vector<std::string> names;
        if (!list.IsSequence()) return "";
        for (const YAML::Node& one : list) names.push_back(one.IsScalar() ? one.Scalar() : "");
        return join(names, ", ");
    }

    static std::string unknown(const std::string& name) {
        // By the part behind "advanced_options:", which may be another one or lack.
        std::vector<std::string> names;
        for (const TidlOption& one : tidl_options())
            names.emplace_back(one.name.substr(one.name.find(':') + 1));
        const std::string nearest = nearest_name(std::string_view(name).substr(name.find(':') + 1), names);
        const auto place = std::find(names.begin(), names.end(), nearest) - names.begin();
        const std::string near =
            nearest.empty()
                ? ""
                : fmt::format(" (did you mean '{}'?)", tidl_options()[static_cast<std::size_t>(place)].name);
        return fmt::format("expected an option of TIDL's, found '{}'{}", printable(name), near);
    }

    void add(const std::string& option, Section section) {
        if (!values_.has(option)) return;
        for (const std::string& item : split(values_.text(option), ',')) {
            const std::string name(trim(item));
            if (name.empty()) continue;
            FileEntry entry;
            entry.encoding.tensor = section == Section::parameter ? tidl_weights_name(name) : name;
            entry.encoding.bits = 16;
            entry.section = section;
            entry.line = values_.line(option);
            reader_.add(std::move(entry), 16, {});
        }
    }

    FormatReader& reader_;
    TidlOptionValues values_;
    bool faulty_ = false;
};

bool names_option(std::string_view line) {
    line = trim(line);
    if (line.starts_with('"') || line.starts_with('\'')) line.remove_prefix(1);
    if (line.starts_with(advanced)) return true;
    for (const std::string_view name : {"accuracy_level", "tensor_bits"}) {
        if (line.starts_with(name) && line.size() > name.size() &&
            std::string_view("\"': \t").find(line[name.size()]) != std::string_view::npos)
            return true;
    }
    return false;
}

class TidlOptionsFormat : public Format {
  public:
    std::string name() const override { return "tidl-options"; }
    std::string summary() const override {
        return "Options of a TIDL compilation as YAML, by the names that the runtimes take: tensor_bits, "
               "accuracy_level, advanced_options:quantization_scale_type, the lists of tensors and "
               "parameters in 16 bits, advanced_options:quant_params_proto_path. For a script to load and "
               "hand to the runtime as a dictionary.";
    }
    std::string limits() const override {
        return "Widths of 8 and 16 bits alone, no ranges: those are in tidl-prototxt and tidl-onnx.";
    }
    std::string suffix() const override { return ".yaml"; }
    bool writable() const override { return true; }
    int recognise(const FormatReader& reader) const override {
        if (reader.json() != nullptr) return 0;
        const std::vector<std::string> lines = split(reader.text().substr(0, 8000), '\n');
        if (std::any_of(lines.begin(), lines.end(), names_option)) return 70;
        const auto extension = reader.path().extension();
        return extension == ".yaml" || extension == ".yml" ? 10 : 0;
    }
    void read(FormatReader& reader) const override { TidlOptionReader(reader).read(); }
    std::vector<FormattedFile> files(const EncodingSet& encodings, const EmittedModel& model,
                                     const std::filesystem::path& name, Remarks& remarks) const override {
        return {{name, tidl_options_text(encodings, model, name, remarks)}};
    }

  protected:
    std::string write(const EncodingFile& file, Remarks& remarks) const override;
};

// Without a model: the names of what has 16 bits, parameters by the layer's name where the file has it.
std::string TidlOptionsFormat::write(const EncodingFile& file, Remarks& remarks) const {
    TidlOptionSet options;
    std::vector<std::string> parameters;
    std::size_t wide = 0;
    std::size_t activations = 0;
    for (const FileEntry& entry : file.entries) {
        const int bits = entry.encoding.width();
        const std::string& tensor = entry.encoding.tensor;
        if (entry.section != Section::parameter) ++activations;
        if (bits != 16) continue;
        if (entry.section != Section::parameter) {
            ++wide;
            options.wide_features.push_back(tensor);
        } else if (constexpr std::string_view weights = ".weights"; tensor.ends_with(weights)) {
            options.wide_parameters.push_back(tensor.substr(0, tensor.size() - weights.size()));
        } else {
            parameters.push_back(tensor);
        }
    }
    if (wide > 0 && wide == activations) {
        options.tensor_bits = 16;
        options.wide_features.clear();
    }
    if (!parameters.empty()) {
        remarks.add(fmt::format(
            "tidl-options: {} {} ({}): 16-bit parameters are listed by the output of their layer, "
            "which only the model tells (qcalib emit); left out",
            parameters.size(), parameters.size() == 1 ? "entry" : "entries", name_list(parameters)));
    }
    remarks.add("tidl-options: ranges have no place in it: it lists widths");
    return to_yaml(options);
}

}  // namespace

const Format& tidl_options_format() {
    static const TidlOptionsFormat format;
    return format;
}

}  // namespace qcalib
