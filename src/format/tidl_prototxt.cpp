#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/format_reader.h"
#include "format/tidl_generate.h"
#include "format/tidl_params.h"
#include "format/tidl_patch.h"

namespace qcalib {

namespace {

// Adds the tensors of a quantization-parameter file to a reader.
class TidlEntryReader {
  public:
    explicit TidlEntryReader(FormatReader& reader) : reader_(reader) {}

    void add(const TidlLayerParams& layer) {
        for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
            const std::string name = i == 0 ? layer.name : fmt::format("{}.output{}", layer.name, i);
            add(name, layer, layer.outputs[i], Section::activation);
        }
        for (const TidlTensorParams& weights : layer.weights)
            add(tidl_weights_name(layer.name), layer, weights, Section::parameter);
        if (!layer.slope.empty()) reader_.note("slopes are not read", layer.name);
    }

  private:
    void add(const std::string& name, const TidlLayerParams& layer, const TidlTensorParams& tensor,
             Section section) {
        FileEntry entry;
        entry.encoding.tensor = name;
        entry.section = section;
        entry.line = tensor.line;
        entry.unknown.push_back(tensor.unknown);
        const TidlElement type = *tidl_element(tensor.element_type ? tensor.element_type->value : 0);
        entry.encoding.bits = type.bits;
        if (type.is_float) {
            entry.encoding.type = CodeType::floating;
        } else if (has_range(name, layer, tensor, type)) {
            entry.encoding.encodings.push_back(
                tidl_encoding(tensor.min->value, tensor.max->value, std::min(type.bits, 32), type.is_signed));
            look_at_scale(name, tensor, type);
        }
        reader_.add(std::move(entry), type.bits, {});
    }

    bool has_range(const std::string& name, const TidlLayerParams& layer, const TidlTensorParams& tensor,
                   const TidlElement& type) {
        constexpr double unset = 3.4e38;
        if (!tensor.min || !tensor.max || std::abs(tensor.min->value) >= unset ||
            std::abs(tensor.max->value) >= unset) {
            reader_.note("min or max is not set: TIDL takes no range from it", name);
            return false;
        }
        const double min = tensor.min->value;
        const double max = tensor.max->value;
        if (min > max) {
            reader_.fault(name, tensor.min->line,
                          fmt::format("expected min <= max, found min {} and max {}", min, max));
            return false;
        }
        if (layer.type == "TIDL_DataLayer" && type.is_signed && min == 0 && max == 255) {
            reader_.note("0 to 255 is the untouched default of a data layer, not a range", name);
            return false;
        }
        if (type.is_signed ? min == 0 && max == 0 : max <= 0) {
            reader_.note("the range has no width, so there is no scale", name);
            return false;
        }
        if (!type.is_signed && min < 0)
            reader_.note("min is below zero, but element_type has unsigned codes: they hold none of it",
                         name);
        return true;
    }

    // The file's own scale tells what TIDL made of the range.
    void look_at_scale(const std::string& name, const TidlTensorParams& tensor, const TidlElement& type) {
        if (tensor.scale.size() != 1 || !(tensor.scale.front() > 0)) return;
        const Encoding asked =
            tidl_encoding(tensor.min->value, tensor.max->value, std::min(type.bits, 32), type.is_signed);
        const double bits = -std::log2(asked.scale * tensor.scale.front());
        constexpr double least = 0.01;
        if (bits > least)
            reader_.note("its scale is coarser than min and max ask for; min and max are read, as TIDL does",
                         name);
    }

    FormatReader& reader_;
};

class TidlPrototxt : public Format {
  public:
    std::string name() const override { return "tidl-prototxt"; }
    std::string summary() const override {
        return "TI's quantization parameters (\"quantization proto\"): for each layer of the TIDL network "
               "min, max and element type of its output and weights, and its bias values, as protobuf text. "
               "Written by TIDL where advanced_options:quant_params_proto_path names a file that is not "
               "there, read where it is: then TIDL does not calibrate, if every layer of its network is in "
               "the file. Patched (--patch FILE) where TIDL's own file is given, which is sure; made from "
               "the "
               "model else, which cannot know the layers TIDL merges or adds.";
    }
    std::string limits() const override {
        return "Symmetric and per tensor alone; one subgraph that runs on TIDL as a whole; slopes of PRelu "
               "have no place; TIDL derives the scales from min and max and may make them coarser.";
    }
    std::string suffix() const override { return ".prototxt"; }
    bool writable() const override { return true; }
    int recognise(const FormatReader& reader) const override {
        if (reader.json() != nullptr) return 0;
        if (is_tidl_params(reader.text())) return 90;
        return reader.path().extension() == suffix() ? 10 : 0;
    }
    void read(FormatReader& reader) const override;
    std::vector<FormattedFile> files(const EncodingSet& encodings, const EmittedModel& model,
                                     const std::filesystem::path& name, Remarks& remarks) const override;

  protected:
    std::string write(const EncodingFile& file, Remarks& remarks) const override;
};

void TidlPrototxt::read(FormatReader& reader) const {
    std::vector<EntryFault> faults;
    const TidlNetParams params = parse_tidl_params(reader.text(), reader.path(), faults);
    for (EntryFault& fault : faults) reader.fault(fault.tensor, fault.line, fault.text);
    if (!faults.empty()) return;
    for (const std::string& objection : tidl_objections(params)) reader.note_file(objection);
    if (params.quant_type != "SYMMETRIC" || params.calib_type != "PERTENSOR") {
        reader.note_file(fmt::format("is {} and {}; TIDL reads SYMMETRIC and PERTENSOR alone",
                                     params.quant_type, params.calib_type));
    }
    if (!params.unknown.empty()) {
        reader.note_file(fmt::format("has fields this program does not know, and TIDL may not either: {}",
                                     join(params.unknown, ", ")));
    }
    TidlEntryReader entries(reader);
    for (const TidlLayerParams& layer : params.layers) entries.add(layer);
}

std::vector<FormattedFile> TidlPrototxt::files(const EncodingSet& encodings, const EmittedModel& model,
                                               const std::filesystem::path& name, Remarks& remarks) const {
    return {{name, model.patch.empty() ? generate_tidl_params(encodings, model, remarks)
                                       : patch_tidl_params(encodings, model, remarks)}};
}

std::string TidlPrototxt::write(const EncodingFile& file, Remarks& /*remarks*/) const {
    fail(
        "{}: format 'tidl-prototxt' lists the layers of a model: expected the model and statistics (qcalib "
        "emit "
        "--emit tidl:tidl-prototxt --base {}), found encodings alone",
        file.path.empty() ? "tidl-prototxt" : printable(file.path.string()),
        file.path.empty() ? "FILE" : printable(file.path.string()));
}

}  // namespace

const Format& tidl_prototxt_format() {
    static const TidlPrototxt format;
    return format;
}

}  // namespace qcalib
