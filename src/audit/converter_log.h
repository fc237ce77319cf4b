#pragma once

#include "audit/log_reader.h"

namespace qcalib {

// snpe-onnx-to-dlc, qnn-onnx-converter, qairt-converter, and the lines of quantizers that are about no
// tensor.
class ConverterLog : public LogReader {
  public:
    std::string name() const override { return "converter"; }
    std::string summary() const override;
    std::size_t read(const LogText& log, ConverterReport& report,
                     std::vector<std::string>& remarks) const override;
};

}  // namespace qcalib
