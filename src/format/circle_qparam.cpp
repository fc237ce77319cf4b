// Samsung ONE's q-implant: qparam.json and the .npy files it names.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/circle_qparam_files.h"
#include "format/circle_quantization.h"
#include "format/element.h"
#include "format/format_reader.h"
#include "target/circle_rules.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

// Reads the entry of one tensor and the arrays it names.
class QparamEntryReader {
  public:
    QparamEntryReader(FormatReader& reader, const JsonValue& value, const std::string& tensor)
        : reader_(reader), element_(reader, value, tensor), tensor_(tensor), line_(reader.line(value)) {}

    void read() {
        const std::optional<std::string> dtype = required("dtype");
        const std::optional<std::string> scale = required("scale");
        const std::optional<std::string> zero_point = required("zerop");
        const std::optional<std::int64_t> axis = element_.integer("quantized_dimension");
        const std::optional<std::string> value = element_.text("value");
        if (!axis) element_.fault("quantized_dimension: expected a whole number, found none");
        if (!dtype || !scale || !zero_point || !axis) return;
        const std::vector<float> scales = array<float>("scale", *scale);
        const std::vector<std::int64_t> zeros = array<std::int64_t>("zerop", *zero_point);
        if (value) check_codes(*value, *dtype);
        if (!element_.good()) return;
        if (scales.size() != zeros.size() || scales.empty()) {
            element_.fault(
                fmt::format("expected as many scales as zero points and one at least, found {} and {}",
                            scales.size(), zeros.size()));
            return;
        }
        add(*dtype, scales, zeros, *axis, value.has_value());
    }

  private:
    std::optional<std::string> required(std::string_view key) {
        std::optional<std::string> text = element_.text(key);
        if (!text && element_.good()) element_.fault(fmt::format("{}: expected a text, found none", key));
        return text;
    }

    std::optional<Tensor> load(std::string_view key, const std::string& name) {
        try {
            return read_npy(reader_.path().parent_path() / name);
        } catch (const Error& error) {
            element_.fault(fmt::format("{}: {}", key, error.what()));
            return std::nullopt;
        }
    }

    template <typename T>
    std::vector<T> array(std::string_view key, const std::string& name) {
        const std::optional<Tensor> tensor = load(key, name);
        if (!tensor) return {};
        if (tensor->type() != data_type_of<T>() || tensor->shape().size() != 1) {
            element_.fault(fmt::format("{}: expected {} of one dimension in {}, found {} {}", key,
                                       name_of(data_type_of<T>()), printable(name), name_of(tensor->type()),
                                       to_string(tensor->shape())));
            return {};
        }
        const auto values = tensor->view().as<T>();
        return {values.begin(), values.end()};
    }

    void check_codes(const std::string& name, const std::string& dtype) {
        const std::optional<Tensor> tensor = load("value", name);
        if (!tensor || name_of(tensor->type()) == dtype) return;
        element_.fault(fmt::format("value: expected {} in {}, as dtype says, found {}", printable(dtype),
                                   printable(name), name_of(tensor->type())));
    }

    void add(const std::string& dtype, const std::vector<float>& scales,
             const std::vector<std::int64_t>& zeros, std::int64_t axis, bool constant) {
        FileEntry entry;
        entry.line = line_;
        entry.section = constant ? Section::parameter : Section::activation;
        entry.encoding.tensor = tensor_;
        if (scales.size() > 1)
            entry.encoding.axis = static_cast<int>(std::clamp<std::int64_t>(axis, 0, 1000));
        for (std::size_t i = 0; i < scales.size(); ++i) {
            const std::optional<Encoding> one = circle_file_encoding(scales[i], zeros[i], dtype);
            if (!one) {
                element_.fault(
                    fmt::format("expected uint8, int8, int16, int32 or int64 with a zero point of that type, "
                                "found {} with {}",
                                printable(dtype), zeros[i]));
                return;
            }
            entry.encoding.encodings.push_back(*one);
        }
        entry.unknown = {element_.unknown()};
        reader_.add(std::move(entry), 0, {});
    }

    FormatReader& reader_;
    Element element_;
    std::string tensor_;
    std::size_t line_;
};

class CircleQparamFormat final : public Format {
  public:
    std::string name() const override { return "circle-qparam"; }
    std::string summary() const override {
        return "Samsung ONE's q-implant: qparam.json by the tensor names of a .circle file (dtype, "
               "quantized_dimension, and the names of .npy files with scale, zerop and, for constants, "
               "value), "
               "and these files, numbered, in a folder <stem>.circle.";
    }
    std::string limits() const override {
        return "Is for one .circle or .tflite model, whose constants it holds as codes; has no blocks and no "
               "floating-point codes, and needs an entry for every float tensor.";
    }
    std::string suffix() const override { return "/qparam.json"; }
    bool writable() const override { return true; }

    int recognise(const FormatReader& reader) const override {
        const JsonValue* root = reader.object();
        if (root == nullptr || root->items.empty()) return 0;
        const bool all = std::ranges::all_of(root->items, [](const JsonValue& item) {
            return item.is(JsonValue::Kind::object) && item.find("zerop") != nullptr &&
                   item.find("quantized_dimension") != nullptr;
        });
        return all ? 90 : 0;
    }

    void read(FormatReader& reader) const override {
        const JsonValue& root = *reader.object();
        for (std::size_t i = 0; i < root.items.size(); ++i)
            QparamEntryReader(reader, root.items[i], root.keys[i]).read();
    }

    std::vector<FormattedFile> files(const EncodingSet& encodings, const EmittedModel& model,
                                     const std::filesystem::path& name, Remarks& /*remarks*/) const override {
        if (!model.patch.empty()) {
            fail("{}: format '{}' cannot change a file, it writes its own", printable(model.patch.string()),
                 this->name());
        }
        if (model.model.form == ModelForm::onnx) {
            fail("{}: expected a .circle or .tflite model for format '{}', found an ONNX one",
                 printable(model.model.path), this->name());
        }
        if (model.target.circle == nullptr) {
            fail("format '{}': expected target 'circle', found '{}', whose rules are for other operators",
                 this->name(), model.target.name);
        }
        const CircleFile file = read_circle_file(model.model.path);
        const std::vector<CircleQparam> entries = circle_qparams(file, encodings, model);
        throw_circle_faults(model.model.path, check_circle_qparams(file, entries));
        return circle_qparam_files(entries, name);
    }

  protected:
    std::string write(const EncodingFile& /*file*/, Remarks& /*remarks*/) const override {
        fail(
            "format '{}': is written for a model, whose constants it holds as codes: use `qcalib --model "
            "m.circle --emit circle`, with --base for encodings that exist",
            name());
    }
};

}  // namespace

const Format& circle_qparam_format() {
    static const CircleQparamFormat format;
    return format;
}

}  // namespace qcalib
