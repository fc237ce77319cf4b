#include "format/tidl_patch.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "base/text.h"
#include "format/format_reader.h"

namespace qcalib {

namespace {

// Bytes of a text that are replaced; begin == end: put in.
struct TextEdit {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string text;
};

std::string edited(const std::string& text, std::vector<TextEdit> edits) {
    std::stable_sort(edits.begin(), edits.end(),
                     [](const TextEdit& a, const TextEdit& b) { return a.begin < b.begin; });
    std::string result;
    std::size_t at = 0;
    for (const TextEdit& edit : edits) {
        result.append(text, at, edit.begin - at);
        result += edit.text;
        at = edit.end;
    }
    return result.append(text, at, std::string::npos);
}

class TidlPatcher {
  public:
    TidlPatcher(const std::string& text, const std::filesystem::path& path, const TidlPatchSource& source)
        : text_(text), path_(path), source_(source), params_(parse_tidl_params(text, path)) {}

    std::string run(Remarks& remarks) {
        for (const TidlLayerParams& layer : params_.layers) patch(layer);
        report(remarks);
        return edited(text_, std::move(edits_));
    }

  private:
    void patch(const TidlLayerParams& layer) {
        for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
            const TensorEncoding* encoding = source_.output(layer, i);
            if (encoding != nullptr) {
                patch(layer, layer.outputs[i], *encoding, true);
            } else if (i == 0) {
                kept_.push_back(layer.name);
            }
        }
        if (layer.weights.empty()) return;
        const TensorEncoding* weights = source_.weights(layer);
        if (weights == nullptr) return;
        for (const TidlTensorParams& tensor : layer.weights) patch(layer, tensor, *weights, false);
    }

    void note(const char* text, const TidlLayerParams& layer) { notes_[text].push_back(layer.name); }

    void patch(const TidlLayerParams& layer, const TidlTensorParams& tensor, const TensorEncoding& given,
               bool output) {
        if (given.encodings.size() != 1) {
            return note(given.encodings.empty()
                            ? "a width without a range; its numbers are kept"
                            : "an encoding per channel, where the file has one for all; its numbers are kept",
                        layer);
        }
        const Encoding& encoding = given.encodings.front();
        if (!encoding.symmetric) {
            return note(
                "the encoding is asymmetric, which TIDL does not take from this file; its numbers are kept",
                layer);
        }
        if (encoding.bits != 8 && encoding.bits != 16)
            return note("the width is neither 8 nor 16 bits; its numbers are kept", layer);
        const bool is_signed = patch_type(layer, tensor, encoding, output);
        const double end = tidl_range_end(encoding);
        if (same_end(tensor, encoding, is_signed, output)) return;
        set(tensor.max, end);
        if (tensor.min) {
            set(tensor.min, is_signed ? -end : 0);
        } else if (tensor.max) {
            edits_.push_back({tensor.max->field_begin, tensor.max->field_begin,
                              fmt::format("min: {}{}", tidl_number(is_signed ? -end : 0),
                                          blanks_before(tensor.max->field_begin))});
        }
        if (!tensor.max) note("the file has no max to replace", layer);
    }

    // Gives the tensor the width of the encoding; answers whether its codes are signed.
    bool patch_type(const TidlLayerParams& layer, const TidlTensorParams& tensor, const Encoding& encoding,
                    bool output) {
        const bool asked = !tidl_unsigned(encoding);
        const auto type = tensor.element_type ? tidl_element(tensor.element_type->value) : std::nullopt;
        if (!type || type->is_float || type->bits > 16) {
            if (encoding.bits != 8) note("no integer element_type to change", layer);
            return type && !type->is_float ? type->is_signed : asked;
        }
        if (output && type->is_signed && !asked)
            note("TIDL has signed codes where the encoding has none below zero: half of them stay unused",
                 layer);
        if (output && !type->is_signed && asked)
            note("TIDL has unsigned codes where the encoding is signed: its negative side is left out",
                 layer);
        if (type->bits != encoding.bits) {
            edits_.push_back({tensor.element_type->begin, tensor.element_type->end,
                              std::to_string(tidl_element_code(encoding.bits, type->is_signed))});
        }
        return type->is_signed;
    }

    // Whether TIDL derives the same scale from what the file has: its own range, or the scale it wrote.
    static bool same_end(const TidlTensorParams& tensor, const Encoding& encoding, bool is_signed,
                         bool output) {
        if (!tensor.min || !tensor.max) return false;
        // Weights are folded in float32, in another order than TIDL's.
        const double slack = output ? 0x1p-24 : 1e-4;
        const double end = tidl_range_end(encoding);
        const auto same = [&](double a, double b) { return std::abs(a - b) <= slack * std::abs(b); };
        const double found = is_signed ? std::max(std::abs(tensor.min->value), std::abs(tensor.max->value))
                                       : tensor.max->value;
        if (same(found, end)) return is_signed || tensor.min->value == 0;
        const double codes = std::ldexp(1.0, is_signed ? encoding.bits - 1 : encoding.bits);
        return !output && tensor.scale.size() == 1 && same(codes / tensor.scale.front(), end);
    }

    void set(const std::optional<TidlNumber>& number, double value) {
        if (!number) return;
        if (static_cast<float>(number->value) == static_cast<float>(value)) return;
        edits_.push_back({number->begin, number->end, tidl_number(value)});
    }

    // The blanks (and the end of line) that lie before a field, so that what is put in stands as it does.
    std::string blanks_before(std::size_t at) const {
        std::size_t begin = at;
        while (begin > 0 && std::isspace(static_cast<unsigned char>(text_[begin - 1])) != 0) --begin;
        return begin == at ? " " : text_.substr(begin, at - begin);
    }

    void report(Remarks& remarks) const {
        const std::string file = printable(path_.string());
        for (const std::string& objection : tidl_objections(params_))
            remarks.add(fmt::format("{}: {}", file, objection));
        if (!params_.unknown.empty()) {
            remarks.add(fmt::format("{}: fields this program does not know are kept: {}", file,
                                    join(params_.unknown, ", ")));
        }
        if (!kept_.empty()) {
            remarks.add(fmt::format("{}: {} of {} layers ({}) have no encoding here and keep TIDL's numbers",
                                    file, kept_.size(), params_.layers.size(), name_list(kept_)));
        }
        for (const auto& [text, names] : notes_) {
            remarks.add(fmt::format("{}: {} {} ({}): {}", file, names.size(),
                                    names.size() == 1 ? "layer" : "layers", name_list(names), text));
        }
    }

    const std::string& text_;
    const std::filesystem::path& path_;
    const TidlPatchSource& source_;
    TidlNetParams params_;
    std::vector<TextEdit> edits_;
    std::vector<std::string> kept_;
    std::map<std::string, std::vector<std::string>> notes_;
};

}  // namespace

std::string patch_tidl_params(const std::string& text, const std::filesystem::path& path,
                              const TidlPatchSource& source, Remarks& remarks) {
    return TidlPatcher(text, path, source).run(remarks);
}

}  // namespace qcalib
