#include "format/all_formats.h"
#include "format/dictionary_form.h"
#include "format/format_reader.h"

namespace qcalib {

namespace {

class PpqFormat : public DictionaryForm {
  public:
    PpqFormat() : DictionaryForm(schema()) {}

    std::string name() const override { return "ppq"; }
    std::string summary() const override {
        return "What PPQ's QNN_DSP_INT8 exporter writes: as SNPE's form without is_symmetric, dtype and "
               "version, but with "
               "the zero point itself, which is positive, as the offset.";
    }
    std::string limits() const override {
        return "Only read; write snpe, which has Qualcomm's sign of the offset.";
    }
    bool writable() const override { return false; }
    int recognise(const FormatReader& reader) const override {
        if (!has_dictionaries(reader) || !version_of(reader).empty()) return 0;
        const DictionaryTraits traits = traits_of(reader);
        return !traits.has_flags && traits.positive > traits.negative ? 70 : 0;
    }

  private:
    static DictionarySchema schema() {
        DictionarySchema schema;
        schema.symmetric = false;
        schema.dtype = false;
        return schema;
    }
};

}  // namespace

const Format& ppq_format() {
    static const PpqFormat format;
    return format;
}

}  // namespace qcalib
