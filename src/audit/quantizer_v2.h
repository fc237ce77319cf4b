#pragma once

#include "audit/log_reader.h"

namespace qcalib {

// The summaries of QAIRT's Quantizer V2 (encodings of version 2.0.0, --use_quantize_v2).
class QuantizerV2 : public LogReader {
  public:
    std::string name() const override { return "quantizer-v2"; }
    std::string summary() const override;
    std::size_t read(const LogText& log, ConverterReport& report,
                     std::vector<std::string>& remarks) const override;
};

}  // namespace qcalib
