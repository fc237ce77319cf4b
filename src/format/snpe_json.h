#pragma once

#include "format/format.h"

namespace qcalib {

// Qualcomm's quantization_overrides in the form its SNPE documentation describes: a dictionary without a
// version, one list of encodings per tensor (one element, or one per channel).
class SnpeJson : public Format {
  public:
    std::string name() const override { return "snpe"; }
    std::string summary() const override;
    std::string suffix() const override { return ".json"; }
    // A tensor name that is no UTF-8 cannot be a JSON key: an Error names all such tensors.
    std::string emit(const EncodingSet& encodings) const override;
};

}  // namespace qcalib
