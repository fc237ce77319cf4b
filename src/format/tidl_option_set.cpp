#include <algorithm>

#include "base/text.h"
#include "format/format_reader.h"
#include "format/tidl_layer_map.h"
#include "format/tidl_options.h"

namespace qcalib {

namespace {

constexpr int wide_bits = 16;

// A text in double quotes, as YAML and Python both read it.
std::string in_quotes(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + "\"";
}

bool all_wide(const EncodingSet& encodings) {
    const auto is_wide = [](const TensorEncoding& one) { return one.width() == wide_bits; };
    return !encodings.activations.empty() &&
           std::all_of(encodings.activations.begin(), encodings.activations.end(), is_wide);
}

int scale_type_of(const EncodingSet& encodings, const EmittedModel& model) {
    bool powers = false;
    for (const Decision& decision : model.decisions)
        powers |= decision.kind == Decision::Kind::activation && decision.rules.power_of_two;
    for (const TensorEncoding& one : encodings.activations) {
        if (!one.encodings.empty() && !one.encodings.front().symmetric) return 4;
    }
    return powers ? 1 : 0;
}

}  // namespace

std::string to_yaml(const TidlOptionSet& options) {
    std::string text =
        "# Options of a TIDL compilation, by the names that TIDL's runtimes take: load this file and hand it "
        "over "
        "as the\n# dictionary of options, with tidl_tools_path and artifacts_folder.\n";
    text += fmt::format("tensor_bits: {}\n", options.tensor_bits);
    text += "# 0: TIDL keeps the ranges it is given; others calibrate, and calibrate biases.\n";
    text += fmt::format("accuracy_level: {}\n", options.accuracy_level);
    text +=
        "# 0: any scale; 1: scales are powers of two, as ranges in Clip nodes are meant; 4: asymmetric (not "
        "TDA4VM).\n";
    text += fmt::format("\"advanced_options:quantization_scale_type\": {}\n", options.scale_type);
    text +=
        "# Outputs of layers (of a Conv with Relu the name of Relu's), and of layers whose parameters have "
        "16 bits.\n";
    text += fmt::format("\"advanced_options:output_feature_16bit_names_list\": {}\n",
                        in_quotes(join(options.wide_features, ", ")));
    text += fmt::format("\"advanced_options:params_16bit_names_list\": {}\n",
                        in_quotes(join(options.wide_parameters, ", ")));
    if (!options.params_path.empty()) {
        text +=
            "# Read where the file is there and has every layer of TIDL's network, else written by TIDL: "
            "then qcalib\n"
            "# emit --patch puts the ranges into what it wrote. Drop it where the model carries them in Clip "
            "nodes.\n";
        text +=
            fmt::format("\"advanced_options:quant_params_proto_path\": {}\n", in_quotes(options.params_path));
    }
    if (!options.clip_model.empty())
        text += fmt::format("# The model with its ranges in Clip nodes: {}\n", printable(options.clip_model));
    return text;
}

std::string tidl_options_text(const EncodingSet& encodings, const EmittedModel& model,
                              const std::filesystem::path& name, Remarks& remarks) {
    TidlOptionSet options;
    options.scale_type = scale_type_of(encodings, model);
    if (all_wide(encodings)) {
        options.tensor_bits = wide_bits;
    } else {
        for (const TensorEncoding& one : encodings.activations) {
            if (one.width() == wide_bits) options.wide_features.push_back(one.tensor);
        }
        options.wide_parameters = layers_with_wide_weights(encodings, model, remarks);
    }
    const std::filesystem::path stem = std::filesystem::path(name).replace_extension();
    const std::vector<std::string>& written = model.target.default_formats;
    const auto writes = [&](const char* format) {
        return std::find(written.begin(), written.end(), format) != written.end();
    };
    if (options.scale_type != 4 && writes("tidl-prototxt")) options.params_path = stem.string() + ".prototxt";
    if (writes("tidl-onnx")) options.clip_model = stem.string() + ".onnx";
    if (options.tensor_bits == wide_bits && options.scale_type == 1) {
        remarks.add(
            "tidl-options: 16 bits with scales that are powers of two: a model trained for 8 bits gains "
            "nothing "
            "by them, and TI advises against it; take the target without powers of two");
    }
    return to_yaml(options);
}

}  // namespace qcalib
