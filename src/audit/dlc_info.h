#pragma once

#include "audit/log_reader.h"

namespace qcalib {

// The tables of snpe-dlc-info (1.x and 2.x) and qairt-dlc-info.
class DlcInfo : public LogReader {
  public:
    std::string name() const override { return "dlc-info"; }
    std::string summary() const override;
    std::size_t read(const LogText& log, ConverterReport& report,
                     std::vector<std::string>& remarks) const override;
};

}  // namespace qcalib
