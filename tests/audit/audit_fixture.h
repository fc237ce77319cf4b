#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "audit/audit.h"
#include "audit/log_reader.h"
#include "target/target.h"

namespace qcalib::test {

inline ConverterReport report_of_log(const std::string& text, std::vector<std::string>* remarks = nullptr) {
    ConverterReport report;
    std::vector<std::string> own;
    read_log(LogText("x.log", text), report, remarks != nullptr ? *remarks : own);
    return report;
}

// A file of encodings as a reader leaves it.
class GivenFile {
  public:
    GivenFile() { file_.path = "e.json"; }

    GivenFile& add(const std::string& tensor, double min, double max, int bits = 8,
                   Section section = Section::activation) {
        return add_channels(tensor, {{min, max}}, bits, section);
    }

    GivenFile& add_channels(const std::string& tensor, const std::vector<Range>& ranges, int bits,
                            Section section) {
        FileEntry& entry = file_.entries.emplace_back();
        entry.encoding.tensor = tensor;
        for (const Range& range : ranges) {
            Encoding& encoding = entry.encoding.encodings.emplace_back();
            encoding.bits = bits;
            encoding.min = range.min;
            encoding.max = range.max;
            encoding.scale = (range.max - range.min) / (std::ldexp(1.0, bits) - 1);
            encoding.offset = std::lround(range.min / encoding.scale);
        }
        if (ranges.size() > 1) entry.encoding.axis = 0;
        entry.section = section;
        return *this;
    }

    EncodingFile& file() { return file_; }

  private:
    EncodingFile file_;
};

inline AuditResult audit_of(GivenFile& given, const ConverterReport& found, const Graph* graph = nullptr) {
    static const Target snpe = load_target("snpe");
    AuditInput input;
    input.given = &given.file();
    input.found = &found;
    input.target = &snpe;
    input.graph = graph;
    return audit(input);
}

inline AuditResult audit_of(GivenFile& given, const std::string& log, const Graph* graph = nullptr) {
    return audit_of(given, report_of_log(log), graph);
}

inline const Finding* find(const AuditResult& result, const std::string& tensor) {
    for (const Finding& finding : result.findings) {
        if (finding.tensor == tensor) return &finding;
    }
    return nullptr;
}

inline std::string status_of(const AuditResult& result, const std::string& tensor) {
    const Finding* finding = find(result, tensor);
    return finding == nullptr ? "no finding" : std::string(name_of(finding->status));
}

inline std::string cause_of(const AuditResult& result, const std::string& tensor) {
    const Finding* finding = find(result, tensor);
    return finding == nullptr ? "no finding" : finding->cause;
}

// The two lines snpe-dlc-quantize prints for a tensor.
inline std::string log_row(const std::string& layer, const std::string& buffer, int bits, double min,
                           double max) {
    const double delta = (max - min) / (std::ldexp(1.0, bits) - 1);
    return fmt::format(
        "[INFO] Setting activation for layer: {} and buffer: {}\n"
        "[INFO] bw: {}, min: {:.6f}, max: {:.6f}, delta: {:.6f}, offset: {:.6f}\n",
        layer, buffer, bits, min, max, delta, std::round(min / delta));
}

}  // namespace qcalib::test
