#include "format/all_formats.h"
#include "format/dictionary_form.h"
#include "format/format_reader.h"

namespace qcalib {

namespace {

class SnpeFormat : public DictionaryForm {
  public:
    SnpeFormat() : DictionaryForm(schema()) {}

    std::string name() const override { return "snpe"; }
    std::string summary() const override {
        return "Qualcomm's quantization_overrides JSON as SNPE documents it (activation_encodings and "
               "param_encodings by "
               "ONNX tensor name; bitwidth, min, max, scale, offset, is_symmetric, dtype; no version). Read "
               "by "
               "snpe-onnx-to-dlc --quantization_overrides, with --override_params given to "
               "snpe-dlc-quantize, and by "
               "qnn-onnx-converter.";
    }
    std::string limits() const override {
        return "Has no blocks and no axis: channels are those of the output.";
    }
    int recognise(const FormatReader& reader) const override {
        return has_dictionaries(reader) && version_of(reader).empty() ? 50 : 0;
    }

  private:
    static DictionarySchema schema() {
        DictionarySchema schema;
        schema.width_only = true;
        return schema;
    }
};

}  // namespace

const Format& snpe_format() {
    static const SnpeFormat format;
    return format;
}

}  // namespace qcalib
