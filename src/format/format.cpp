#include "format/format.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/circle_quantization.h"
#include "format/dictionary_form.h"
#include "format/format_reader.h"
#include "format/json_writer.h"

namespace qcalib {

namespace {

void check_names(const EncodingFile& file) {
    std::vector<std::string> refused;
    for (const FileEntry& entry : file.entries) {
        const std::string& name = entry.encoding.tensor;
        if (!is_utf8(name)) refused.push_back(fmt::format("'{}'", printable(name)));
    }
    if (refused.empty()) return;
    fail(
        "{}: expected tensor names in UTF-8, which a JSON file can hold, found other bytes; rename in the "
        "model",
        join(refused, ", "));
}

// The format that recognises the file most surely; an Error says what was found instead.
const Format& recognised(const FormatReader& reader) {
    const Format* best = nullptr;
    int most = 0;
    for (const Format* format : formats()) {
        const int surety = format->recognise(reader);
        if (surety <= most) continue;
        most = surety;
        best = format;
    }
    if (best != nullptr) return *best;
    const std::string path = printable(reader.path().string());
    if (reader.json() == nullptr) {
        fail("{}: expected an encodings file, found neither JSON nor a calibration table", path);
    }
    if (reader.object() == nullptr)
        fail("{}: expected a JSON object, found {}", path, shown(reader.json()->root()));
    const std::string version = version_of(reader);
    if (!version.empty()) {
        fail(
            "{}:{}: version: expected 0.4.0, 0.5.0, 0.6.1 (dictionaries), 1.0.0 (lists) or 2.0.0 (one list "
            "\"encodings\"), found {}",
            path, reader.line(*reader.member("version")), printable(version));
    }
    constexpr std::size_t most_keys = 5;
    std::vector<std::string> keys = reader.object()->keys;
    const std::size_t count = keys.size();
    keys.resize(std::min(count, most_keys));
    for (std::string& key : keys) key = fmt::format("'{}'", printable(key));
    fail(
        "{}: expected activation_encodings and param_encodings, or another form that `qcalib list formats` "
        "names, found "
        "{}{}",
        path, count == 0 ? "an empty object" : "the keys " + join(keys, ", "),
        count > most_keys ? ", ..." : "");
}

}  // namespace

std::string Format::emit(const EncodingFile& file, Remarks& remarks) const {
    if (!writable()) {
        std::vector<std::string> names;
        for (const Format* format : formats()) {
            if (format->writable()) names.push_back(format->name());
        }
        fail("format '{}': is only read; expected one of {}", name(), join(names, ", "));
    }
    check_names(file);
    return write(file, remarks);
}

std::string Format::emit(const EncodingSet& encodings, Remarks& remarks) const {
    return emit(encoding_file(encodings), remarks);
}

std::vector<FormattedFile> Format::files(const EncodingSet& encodings, const EmittedModel& model,
                                         const std::filesystem::path& name, Remarks& remarks) const {
    if (!model.patch.empty()) {
        fail("{}: format '{}' cannot change a file, it writes its own", printable(model.patch.string()),
             this->name());
    }
    return {{name, emit(encodings, remarks)}};
}

std::span<const Format* const> formats() {
    static const std::array<const Format*, 17> all{
        &snpe_format(),          &mqbench_format(),   &aimet_040_format(),     &aimet_050_format(),
        &aimet_061_format(),     &aimet_100_format(), &aimet_200_format(),     &ppq_format(),
        &qairt_format(),         &ort_table_format(), &ort_overrides_format(), &tensorrt_format(),
        &tidl_prototxt_format(), &tidl_onnx_format(), &tidl_options_format(),  &circle_qparam_format(),
        &circle_model_format()};
    return all;
}

const Format& find_format(const std::string& name) {
    std::vector<std::string> names;
    for (const Format* format : formats()) {
        if (format->name() == name) return *format;
        names.push_back(format->name());
    }
    fail("format '{}': expected one of {}{}", printable(name), join(names, ", "), did_you_mean(name, names));
}

EncodingFile parse_encodings(std::string text, const std::filesystem::path& path, Remarks& remarks,
                             std::vector<EntryFault>* faults) {
    FormatReader reader(std::move(text), path);
    const Format& format = recognised(reader);
    reader.file().format = format.name();
    if (reader.object() != nullptr) reader.file().version = version_of(reader);
    format.read(reader);
    return reader.finish(remarks, faults);
}

EncodingFile read_encodings(const std::filesystem::path& path, Remarks& remarks,
                            std::vector<EntryFault>* faults) {
    if (std::filesystem::is_directory(path)) return read_encodings(path / "qparam.json", remarks, faults);
    if (holds_circle_model(path)) return read_circle_quantization(path, remarks);
    return parse_encodings(read_text_file(path), path, remarks, faults);
}

}  // namespace qcalib
