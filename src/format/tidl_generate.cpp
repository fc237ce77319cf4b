#include "format/tidl_generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/files.h"
#include "base/text.h"
#include "format/format_reader.h"
#include "format/tidl_folding.h"
#include "format/tidl_layer_map.h"
#include "format/tidl_params.h"
#include "format/tidl_patch.h"

namespace qcalib {

namespace {

// A text in quotes, as protobuf's text form has it.
std::string proto_text(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            result += fmt::format("\\{:03o}", byte);
        } else {
            result += c;
        }
    }
    return result + "\"";
}

double greatest_magnitude(Range range) {
    return std::max(std::abs(range.min), std::abs(range.max));
}

class TidlParamsWriter {
  public:
    TidlParamsWriter(const EncodingSet& encodings, const EmittedModel& model)
        : model_(model), map_(encodings, model) {}

    std::string run(Remarks& remarks) {
        std::size_t blocks = 0;
        for (const TidlLayer& one : map_.layers().all()) {
            if (one.outputs.empty()) continue;
            if (one.type.empty()) {
                note(
                    "TIDL has no layer for its operator, and takes this file only where it runs the model as "
                    "a whole",
                    one);
                continue;
            }
            layer(one);
            ++blocks;
        }
        report(remarks);
        return fmt::format("num_layers: {}\nquant_type: SYMMETRIC\ncalib_type: PERTENSOR\n{}", blocks, text_);
    }

  private:
    void note(const std::string& text, const TidlLayer& layer) {
        notes_[text].push_back(map_.name_of(layer.output()));
    }

    void layer(const TidlLayer& layer) {
        const TensorEncoding* encoding = map_.output(layer, 0);
        const int bits = encoding != nullptr && encoding->width() > 8 ? 16 : 8;
        text_ += fmt::format("layers {{\n  layer_name: {}\n  layer_type: {}\n  bit_depth: {}\n",
                             proto_text(map_.name_of(layer.output())), proto_text(std::string(layer.type)),
                             bits / 8);
        for (std::size_t i = 0; i < layer.outputs.size(); ++i) output(layer, i);
        parameters(layer);
        text_ += "}\n";
    }

    void tensor(const char* field, Range range, int element_type, double scale,
                const std::vector<float>& values) {
        text_ += fmt::format(
            "  {} {{\n    min: {}\n    max: {}\n    size: {}\n    element_type: {}\n    scale: {:.17g}\n    "
            "zero_point: 0\n",
            field, tidl_number(range.min), tidl_number(range.max), std::max<std::size_t>(1, values.size()),
            element_type, scale);
        for (const float one : values) text_ += fmt::format("    value: {}\n", tidl_number(one));
        text_ += "  }\n";
    }

    void output(const TidlLayer& layer, std::size_t index) {
        const TensorEncoding* encoding = map_.output(layer, index);
        const bool has_range = encoding != nullptr && encoding->encodings.size() == 1;
        if (has_range && encoding->encodings.front().symmetric) {
            const Encoding& one = encoding->encodings.front();
            const double end = tidl_range_end(one);
            const bool is_signed = !tidl_unsigned(one);
            return tensor("outputs", {is_signed ? -end : 0, end}, tidl_element_code(one.bits, is_signed),
                          1 / one.scale, {});
        }
        note(has_range ? "its range is asymmetric, which TIDL does not take from this file: left unset, so "
                         "that TIDL "
                         "calibrates"
                       : "no range: left unset, so that TIDL calibrates all layers",
             layer);
        constexpr double unset = std::numeric_limits<float>::max();
        tensor("outputs", {-unset, unset}, tidl_element_code(8, !layer.is_unsigned), 1, {});
    }

    void parameters(const TidlLayer& layer) {
        const TidlParameters folded = tidl_parameters(layer, map_.graph(), model_.constant);
        for (const std::string& fault : folded.faults) note(fault, layer);
        if (!folded.weights) return;
        const TensorEncoding* encoding = map_.weights(layer);
        const int bits = encoding != nullptr && encoding->width() > 8 ? 16 : 8;
        Range range = *folded.weights;
        if (layer.norm == no_node && encoding != nullptr && encoding->encodings.size() == 1) {
            const double end = tidl_range_end(encoding->encodings.front());
            if (encoding->encodings.front().symmetric) range = {-end, end};
        }
        const auto scale = [&](Range of) {
            const double greatest = greatest_magnitude(of);
            return greatest > 0 ? std::ldexp(1.0, bits - 1) / greatest : 1.0;
        };
        tensor("weights", range, tidl_element_code(bits, true), scale(range), {});
        if (folded.bias.empty()) return;
        const auto [least, greatest] = std::minmax_element(folded.bias.begin(), folded.bias.end());
        const Range bias{*least, *greatest};
        constexpr int bias_type = 3;
        tensor("bias", bias, bias_type, scale(bias), folded.bias);
    }

    void report(Remarks& remarks) const {
        remarks.add(
            "tidl-prototxt: made from the model: which layers TIDL's network has in the end cannot be known "
            "(it merges "
            "some, and adds TIDL_DataConvertLayer and others), and where one lacks here TIDL prints "
            "\"Inadequate "
            "pararameters provided, running calibration!\" and ignores the file; to be sure, compile once "
            "with "
            "quant_params_proto_path naming no file, and patch what TIDL writes there: --patch FILE");
        for (const auto& [text, names] : notes_) {
            remarks.add(fmt::format("tidl-prototxt: {} {} ({}): {}", names.size(),
                                    names.size() == 1 ? "layer" : "layers", name_list(names), text));
        }
    }

    const EmittedModel& model_;
    TidlLayerMap map_;
    std::string text_;
    std::map<std::string, std::vector<std::string>> notes_;
};

}  // namespace

std::string generate_tidl_params(const EncodingSet& encodings, const EmittedModel& model, Remarks& remarks) {
    return TidlParamsWriter(encodings, model).run(remarks);
}

std::string patch_tidl_params(const EncodingSet& encodings, const EmittedModel& model, Remarks& remarks) {
    const TidlLayerMap map(encodings, model);
    // Weights are compared as TIDL has them, with normalizations folded in.
    std::map<std::string, TensorEncoding> folded;
    TidlPatchSource source;
    source.output = [&](const TidlLayerParams& layer, std::size_t index) -> const TensorEncoding* {
        const TidlLayer* own = map.find(layer.name);
        return own == nullptr ? nullptr : map.output(*own, index);
    };
    source.weights = [&](const TidlLayerParams& layer) -> const TensorEncoding* {
        const TidlLayer* own = map.find(layer.name);
        const TensorEncoding* weights = own == nullptr ? nullptr : map.weights(*own);
        if (weights == nullptr || own->norm == no_node || weights->encodings.size() != 1) return weights;
        const TidlParameters parameters = tidl_parameters(*own, map.graph(), model.constant);
        if (!parameters.weights || greatest_magnitude(*parameters.weights) == 0) return nullptr;
        TensorEncoding& one = folded[layer.name] = *weights;
        one.encodings = {
            tidl_encoding(parameters.weights->min, parameters.weights->max, weights->width(), true)};
        return &one;
    };
    return patch_tidl_params(read_text_file(model.patch), model.patch, source, remarks);
}

}  // namespace qcalib
