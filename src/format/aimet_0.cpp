#include "format/all_formats.h"
#include "format/dictionary_form.h"

namespace qcalib {

namespace {

// AIMET's formats before 1.0.0.
class AimetDictionary : public DictionaryForm {
  public:
    AimetDictionary(std::string summary, DictionarySchema schema)
        : DictionaryForm(schema),
          version_(schema.version),
          summary_(std::move(summary)),
          has_dtype_(schema.dtype) {}

    std::string name() const override { return "aimet-" + version_; }
    std::string summary() const override { return summary_; }
    std::string limits() const override {
        return has_dtype_ ? "Has no blocks, no axis and no widths without a range."
                          : "Has no float types, no blocks, no axis and no widths without a range.";
    }

  private:
    std::string version_;
    std::string summary_;
    bool has_dtype_;
};

DictionarySchema schema_of(std::string version) {
    DictionarySchema schema;
    schema.version = std::move(version);
    return schema;
}

}  // namespace

const Format& aimet_040_format() {
    static const AimetDictionary format = [] {
        DictionarySchema schema = schema_of("0.4.0");
        schema.dtype = false;
        return AimetDictionary(
            "AIMET's encodings of version 0.4.0: dictionaries by tensor name; bitwidth, min, max, scale, "
            "offset, is_symmetric. Read by SNPE's and QNN's converters and by AIMET.",
            std::move(schema));
    }();
    return format;
}

const Format& aimet_050_format() {
    static const AimetDictionary format(
        "AIMET's encodings of version 0.5.0: as 0.4.0 with dtype, so also float entries. Read by SNPE's and "
        "QNN's "
        "converters and by AIMET.",
        schema_of("0.5.0"));
    return format;
}

const Format& aimet_061_format() {
    static const AimetDictionary format = [] {
        DictionarySchema schema = schema_of("0.6.1");
        schema.other_keys = {"quantizer_args", "excluded_layers"};
        return AimetDictionary(
            "AIMET's encodings of version 0.6.1: as 0.5.0, with quantizer_args and excluded_layers. "
            "Read by QNN's and QAIRT's converters (--custom_io reads only this one) and by AIMET; "
            "written by AIMET and by qairt-quantizer --dump_encoding_json.",
            std::move(schema));
    }();
    return format;
}

}  // namespace qcalib
