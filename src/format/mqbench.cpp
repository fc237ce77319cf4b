#include "format/all_formats.h"
#include "format/dictionary_form.h"
#include "format/format_reader.h"

namespace qcalib {

namespace {

class MqbenchFormat : public DictionaryForm {
  public:
    MqbenchFormat() : DictionaryForm(schema()) {}

    std::string name() const override { return "mqbench"; }
    std::string summary() const override {
        return "The plain form that MQBench's SNPE backend writes (<model>_clip_ranges.json): "
               "activation_encodings and "
               "param_encodings by ONNX tensor name, bitwidth, min and max alone, no version. Read by "
               "snpe-onnx-to-dlc --quantization_overrides.";
    }
    std::string limits() const override {
        return "Has no symmetry, no float types, no blocks and no widths without a range; the scale follows "
               "from the "
               "range and may differ by a rounding of the last bit.";
    }
    int recognise(const FormatReader& reader) const override {
        if (!has_dictionaries(reader) || !version_of(reader).empty()) return 0;
        const DictionaryTraits traits = traits_of(reader);
        return traits.encodings > 0 && traits.only_ranges ? 60 : 0;
    }

  private:
    static DictionarySchema schema() {
        DictionarySchema schema;
        schema.scale_offset = false;
        schema.symmetric = false;
        schema.dtype = false;
        return schema;
    }
};

}  // namespace

const Format& mqbench_format() {
    static const MqbenchFormat format;
    return format;
}

}  // namespace qcalib
