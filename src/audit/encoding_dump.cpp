// Files of encodings as what a converter found: --dump_encoding_json, a quantized .circle, or what another
// file says.
#include "audit/audit.h"
#include "audit/log_reader.h"
#include "audit/tidl_log.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "format/format.h"
#include "graph/circle_file.h"

namespace qcalib {

namespace {

// Whether it is a folder of q-params or a .circle or .tflite file.
bool is_circle_output(const std::filesystem::path& path) {
    return std::filesystem::is_directory(path) ||
           (std::filesystem::is_regular_file(path) && is_circle_file(MappedFile(path).bytes()));
}

void add_encodings(const std::filesystem::path& path, ConverterReport& report,
                   std::vector<std::string>& remarks) {
    Remarks format_remarks;
    ConverterReport dumped = report_of(read_encodings(path, format_remarks));
    const std::vector<std::string> texts = format_remarks.all();
    remarks.insert(remarks.end(), texts.begin(), texts.end());
    report.shows_parameters |= dumped.shows_parameters;
    report.shows_activations |= dumped.shows_activations;
    report.quantizer_ran = true;
    for (FoundTensor& tensor : dumped.tensors) report.add(std::move(tensor), true, remarks);
}

// Whether the file is no log: JSON, or a calibration table of TensorRT.
bool holds_encodings(const LogText& log) {
    if (log.lines().empty()) return false;
    const std::string_view first = trim(log.lines().front().text);
    return first.starts_with('{') || first.starts_with("TRT-");
}

}  // namespace

void read_converter_output(const std::filesystem::path& path, ConverterReport& report,
                           std::vector<std::string>& remarks) {
    if (is_circle_output(path)) return add_encodings(path, report, remarks);
    const LogText log(path);
    if (read_tidl_params(log, report, remarks)) return;
    if (!holds_encodings(log)) return read_log(log, report, remarks);
    add_encodings(path, report, remarks);
}

}  // namespace qcalib
