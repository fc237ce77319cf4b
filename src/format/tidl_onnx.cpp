#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/clip_onnx.h"
#include "format/format_reader.h"
#include "format/tidl_layer_map.h"
#include "format/tidl_params.h"

namespace qcalib {

namespace {

std::int32_t onnx_code(DataType type) {
    constexpr std::int32_t float32 = 1;
    constexpr std::int32_t float16 = 10;
    constexpr std::int32_t float64 = 11;
    constexpr std::int32_t bfloat16 = 16;
    if (type == DataType::float16) return float16;
    if (type == DataType::float64) return float64;
    return type == DataType::bfloat16 ? bfloat16 : float32;
}

bool is_float(DataType type) {
    return type == DataType::undefined || type == DataType::float32 || type == DataType::float16 ||
           type == DataType::bfloat16 || type == DataType::float64;
}

// 0 to c or -c to c, as TIDL takes them.
bool has_clip_form(Range bounds) {
    return bounds.max > 0 && std::isfinite(bounds.max) && (bounds.min == 0 || bounds.min == -bounds.max);
}

// Chooses what Clip each tensor gets and has them put in.
class ClipWriter {
  public:
    ClipWriter(const EncodingSet& encodings, const EmittedModel& model)
        : encodings_(encodings),
          model_(model),
          graph_(*model.model.graph),
          map_(encodings, model),
          file_(model.model.path) {
        for (const Decision& decision : model.decisions) decisions_.emplace(decision.tensor, &decision);
    }

    std::vector<FormattedFile> run(const std::filesystem::path& name, Remarks& remarks) {
        for (const TensorEncoding& encoding : encodings_.activations) clip(encoding);
        for (const TidlLayer& layer : map_.layers().all()) complete(layer);
        for (const TensorEncoding& encoding : encodings_.parameters) clip_weights(encoding);
        note_opset();
        for (const auto& [text, names] : notes_) {
            remarks.add(fmt::format("tidl-onnx: {} {} ({}): {}", names.size(),
                                    names.size() == 1 ? "tensor" : "tensors", name_list(names), text));
        }
        for (const std::string& text : file_notes_) remarks.add("tidl-onnx: " + text);
        return file_.files(name);
    }

  private:
    void note(const std::string& text, const std::string& tensor) { notes_[text].push_back(tensor); }

    // The range that TIDL is to take: from 0 where the data has nothing below.
    std::optional<Range> wanted(const TensorEncoding& encoding) {
        const std::string& tensor = encoding.tensor;
        if (encoding.encodings.size() != 1) {
            note("no range of its own, so no Clip", tensor);
            return std::nullopt;
        }
        const Encoding& one = encoding.encodings.front();
        const double end =
            one.symmetric ? tidl_range_end(one) : std::max(std::abs(one.min), std::abs(one.max));
        if (!one.symmetric)
            note("its range is asymmetric; the Clip has both sides alike, or starts at 0", tensor);
        const auto found = decisions_.find(tensor);
        const bool has_data = found != decisions_.end() && !found->second->ranges.empty();
        const double least = has_data ? found->second->ranges.front().min : one.min;
        return Range{tidl_unsigned(one) || least >= 0 ? 0 : -end, end};
    }

    bool by_override(const std::string& tensor) const {
        const auto found = decisions_.find(tensor);
        return found != decisions_.end() && found->second->method == "override";
    }

    // Layers that hand a scale on have no range of their own, but make TIDL calibrate where they have no
    // Clip.
    void complete(const TidlLayer& layer) {
        if (layer.is_data() || layer.type.empty() || !layer.lacks_range()) return;
        for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
            const std::string& tensor = map_.name_of(layer.outputs[i]);
            if (looked_at_.contains(tensor)) continue;
            const TensorEncoding* encoding = map_.output(layer, i);
            if (encoding == nullptr) {
                note("no range, so no Clip: TIDL calibrates all layers anew", tensor);
                continue;
            }
            TensorEncoding own = *encoding;
            own.tensor = tensor;
            clip(own);
        }
    }

    void clip(const TensorEncoding& encoding) {
        const std::string& tensor = encoding.tensor;
        looked_at_.insert(tensor);
        const ValueId id = graph_.find(tensor);
        if (id == no_value) return note("the model has no such tensor", tensor);
        const Value& value = graph_.values[id];
        if (std::find(graph_.inputs.begin(), graph_.inputs.end(), id) != graph_.inputs.end()) {
            return note(
                "an input gets no Clip: TIDL would make a layer of it whose weight saturates at 127/128, and "
                "codes the input by its own rule all the same (signed, 128 / 2^ceil(log2(greatest "
                "magnitude)))",
                tensor);
        }
        if (!is_float(value.declared_type)) return note("no float tensor, so no Clip", tensor);
        if (!file_.makes(tensor))
            return note("made inside a body or a function, where no Clip is put", tensor);
        const std::optional<Range> bounds = wanted(encoding);
        if (!bounds) return;
        const Node& node = graph_.nodes[value.producer];
        const std::optional<Range> present = clip_of(node);
        if (present) {
            move(value, *present, *bounds, encoding.encodings.front().scale);
        } else {
            file_.insert(tensor, *bounds, onnx_code(value.declared_type));
            if (bounds->min == 0 && !tidl_unsigned(encoding.encodings.front())) note_gain(tensor);
        }
    }

    void note_gain(const std::string& tensor) {
        note(
            "the Clip put in gains a bit: the data is never below zero, but TIDL codes what no ReLU or Clip "
            "makes as "
            "signed; a value below zero would now be cut off",
            tensor);
    }

    // The constant bounds of a Clip, or nothing.
    std::optional<Range> clip_of(const Node& node) const {
        if (node.op_type != "Clip" || !node.domain.empty()) return std::nullopt;
        Range bounds{node.attribute("min", -std::numeric_limits<float>::infinity()),
                     node.attribute("max", std::numeric_limits<float>::infinity())};
        for (std::size_t i = 1; i < std::min<std::size_t>(node.inputs.size(), 3); ++i) {
            if (node.inputs[i] == no_value) continue;
            const Tensor* bound = model_.constant(node.inputs[i]);
            if (bound == nullptr || bound->descriptor().elements() != 1) return std::nullopt;
            (i == 1 ? bounds.min : bounds.max) = numbers_of(bound->view()).front();
        }
        return bounds;
    }

    // A Clip that is there is made narrower, never wider: what it cuts off the model does not compute.
    void move(const Value& value, Range present, Range wanted, double step) {
        const std::string& tensor = value.name;
        Range bounds{std::max(present.min, wanted.min), std::min(present.max, wanted.max)};
        if (by_override(tensor)) {
            bounds = wanted;
        } else if (!has_clip_form(bounds)) {
            bounds = widened(bounds, present, tensor);
        }
        const auto same = [](double a, double b) { return static_cast<float>(a) == static_cast<float>(b); };
        if (bounds.max + 2 * step < wanted.max) {
            note(fmt::format(
                     "its Clip keeps {:g} to {:g}: opening it to {:g} would change what the model computes",
                     bounds.min, bounds.max, wanted.max),
                 tensor);
        }
        if (same(bounds.min, present.min) && same(bounds.max, present.max)) return;
        file_.move(tensor, bounds, onnx_code(value.declared_type));
    }

    // The nearest bounds that TIDL takes for a Clip of other ones.
    Range widened(Range bounds, Range present, const std::string& tensor) {
        const double low = std::isfinite(bounds.min) ? bounds.min : 0;
        const double end = std::max(std::abs(low), std::abs(std::isfinite(bounds.max) ? bounds.max : 0));
        const Range result{low < 0 ? -end : 0, end};
        const char* why =
            present.min <= 0 && present.max > 0
                ? "TIDL gives a Clip whose sides differ no scale of its own"
                : "TIDL refuses a Clip without zero inside, and leaves it and what is behind to ARM";
        note(fmt::format("its Clip, {:g} to {:g}, becomes {:g} to {:g}: {}; what it cut off between the two "
                         "is no longer "
                         "cut off",
                         present.min, present.max, result.min, result.max, why),
             tensor);
        return result;
    }

    void clip_weights(const TensorEncoding& encoding) {
        constexpr double slack = 1e-6;
        const ValueId id = graph_.find(encoding.tensor);
        if (id == no_value || encoding.encodings.size() != 1 || !encoding.encodings.front().symmetric) return;
        const Value& value = graph_.values[id];
        if (!value.initializer || value.initializer->type() != DataType::float32) return;
        const double end = tidl_range_end(encoding.encodings.front());
        const TensorView view = value.initializer->view();
        Tensor copy(TensorDescriptor{DataType::float32, value.initializer->shape(), MemoryOrder::row_major});
        copy_to_order(view, copy.mutable_view());
        std::size_t clipped = 0;
        for (float& one : copy.mutable_view().as<float>()) {
            if (!(std::abs(one) > end * (1 + slack))) continue;
            one = static_cast<float>(std::copysign(end, one));
            ++clipped;
        }
        if (clipped == 0) return;
        if (value.declared_type != DataType::float32)
            return note("a weight that is no float32, which is not clipped", encoding.tensor);
        file_.replace(encoding.tensor, copy);
        note(
            "weights beyond the range given are clipped to it, since TIDL takes the range of weights from "
            "their values",
            encoding.tensor);
    }

    void note_opset() {
        constexpr std::int64_t newest = 11;
        if (file_.opset() <= newest) return;
        file_notes_.push_back(
            fmt::format("the model has opset {}: importers of older TIDL releases read a Clip of opset 6 to "
                        "11 alone, and take 0 for "
                        "both bounds else; where layers come out as zeros, export with opset 11",
                        file_.opset()));
    }

    const EncodingSet& encodings_;
    const EmittedModel& model_;
    const Graph& graph_;
    TidlLayerMap map_;
    ClippedOnnx file_;
    std::unordered_set<std::string> looked_at_;
    std::unordered_map<std::string, const Decision*> decisions_;
    std::map<std::string, std::vector<std::string>> notes_;
    std::vector<std::string> file_notes_;
};

class TidlOnnx : public Format {
  public:
    std::string name() const override { return "tidl-onnx"; }
    std::string summary() const override {
        return "The ONNX model with its ranges in Clip nodes, as TI's quantization-aware training exports "
               "it: "
               "0 to c or -c to c behind every layer; TIDL fuses each into its layer and takes its bounds "
               "instead of calibrating. The user's own model with nodes put in: inputs, outputs, names of "
               "tensors and all that is not known stay. Compiled with accuracy_level 0; where c is a power "
               "of "
               "two, with quantization_scale_type 1.";
    }
    std::string limits() const override {
        return "Has no ranges of inputs and of weights (weights are clipped to theirs), no widths, and "
               "nothing "
               "within bodies and functions; is read as a model (--base).";
    }
    std::string suffix() const override { return ".onnx"; }
    bool writable() const override { return true; }
    int recognise(const FormatReader& /*reader*/) const override { return 0; }
    void read(FormatReader& /*reader*/) const override {}
    std::vector<FormattedFile> files(const EncodingSet& encodings, const EmittedModel& model,
                                     const std::filesystem::path& name, Remarks& remarks) const override {
        if (!model.patch.empty() && model.patch.extension() == ".onnx")
            fail("{}: format 'tidl-onnx' changes the model itself, no other file",
                 printable(model.patch.string()));
        if (model.model.form != ModelForm::onnx)
            fail("{}: format 'tidl-onnx' puts Clip nodes into an ONNX model, found another form",
                 printable(model.model.path));
        return ClipWriter(encodings, model).run(name, remarks);
    }

  protected:
    std::string write(const EncodingFile& file, Remarks& /*remarks*/) const override {
        fail(
            "{}: format 'tidl-onnx' is the model with Clip nodes: expected the model (qcalib emit), found "
            "encodings alone",
            file.path.empty() ? "tidl-onnx" : printable(file.path.string()));
    }
};

}  // namespace

const Format& tidl_onnx_format() {
    static const TidlOnnx format;
    return format;
}

}  // namespace qcalib
