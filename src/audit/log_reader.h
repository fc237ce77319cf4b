#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "audit/converter_report.h"
#include "audit/log_text.h"

namespace qcalib {

// Reads what one kind of tool prints. A log may hold the output of several: every reader sees every line and
// takes what is its own.
class LogReader {
  public:
    virtual ~LogReader() = default;
    virtual std::string name() const = 0;
    virtual std::string summary() const = 0;  // what prints it, what it looks like, one paragraph
    // Adds what it understands to `report` and answers in how many lines that was. What is broken (a pair
    // whose second line is missing) is left out with a remark "file:line: ...". Never throws for a text.
    virtual std::size_t read(const LogText& log, ConverterReport& report,
                             std::vector<std::string>& remarks) const = 0;
};

// All of them; listed in audit/log_reader.cpp.
std::span<const LogReader* const> log_readers();

// Adds a file to the report: a file of encodings in any format that read_encodings() knows, or a log for the
// readers above. An Error where nothing in it is understood.
void read_converter_output(const std::filesystem::path& path, ConverterReport& report,
                           std::vector<std::string>& remarks);

// The same for a text that is a log.
void read_log(const LogText& log, ConverterReport& report, std::vector<std::string>& remarks);

}  // namespace qcalib
