#pragma once

#include "audit/log_reader.h"

namespace qcalib {

// snpe-dlc-quantize 1.x: two lines a tensor, in the order of the layers.
class QuantizerLog : public LogReader {
  public:
    std::string name() const override { return "snpe-dlc-quantize"; }
    std::string summary() const override;
    std::size_t read(const LogText& log, ConverterReport& report,
                     std::vector<std::string>& remarks) const override;
};

}  // namespace qcalib
