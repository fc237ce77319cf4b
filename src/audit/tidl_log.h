#pragma once

#include <string>
#include <vector>

#include "audit/log_reader.h"

namespace qcalib {

// What TIDL prints at debug_level 3, and its layer_info.txt, which has the names to it.
class TidlLog : public LogReader {
  public:
    std::string name() const override { return "tidl"; }
    std::string summary() const override;
    std::size_t read(const LogText& log, ConverterReport& report,
                     std::vector<std::string>& remarks) const override;
};

// The tables TIDL writes: *_paramDebug.csv and *_quant_info.csv.
class TidlTables : public LogReader {
  public:
    std::string name() const override { return "tidl-tables"; }
    std::string summary() const override;
    std::size_t read(const LogText& log, ConverterReport& report,
                     std::vector<std::string>& remarks) const override;
};

// A tensor of TIDL's with the grid of its scale. Without a name it is "data 73" until the report knows one.
FoundTensor tidl_found(const TidlTensor& tensor, std::string name, std::string where);

// Adds the parameter file that TIDL wrote: the scales in it are those it uses. False where the text is none.
bool read_tidl_params(const LogText& log, ConverterReport& report, std::vector<std::string>& remarks);

}  // namespace qcalib
