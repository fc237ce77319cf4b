#include "graph/circle_file.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "graph/circle_graph.h"
#include "graph/reading_problems.h"
#include "graph/verify.h"

namespace qcalib {

namespace {

// A flatbuffer's offset to its root and the file identifier.
constexpr std::size_t identifier_end = 8;
// Nothing of a flatbuffer lies behind this; what does is data of buffers that say where.
constexpr std::size_t flatbuffer_limit = (std::size_t{1} << 31) - 2;
constexpr flatbuffers::uoffset_t depth_limit = 64;
constexpr flatbuffers::uoffset_t table_limit = 100'000'000;

std::string_view identifier_of(std::span<const std::byte> bytes) {
    if (bytes.size() < identifier_end) return {};
    return {reinterpret_cast<const char*>(bytes.data()) + 4, 4};
}

const circle::Model& verified_model(const MappedFile& file, const std::filesystem::path& path) {
    const std::string shown = printable(path.string());
    if (!is_circle_file(file.bytes())) {
        fail("{}: expected a .circle or .tflite model ('CIR0' or 'TFL3' at byte 4), found none", shown);
    }
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
    flatbuffers::Verifier verifier(bytes, std::min(file.bytes().size(), flatbuffer_limit), depth_limit,
                                   table_limit);
    if (!verifier.VerifyBuffer<circle::Model>(nullptr)) {
        fail("{}: expected a whole {} model, found a damaged one of {} bytes", shown,
             identifier_of(file.bytes()), file.bytes().size());
    }
    const circle::Model& model = *flatbuffers::GetRoot<circle::Model>(bytes);
    if (model.subgraphs() == nullptr || model.subgraphs()->size() == 0) {
        fail("{}: expected a model with a graph, found one without", shown);
    }
    return model;
}

}  // namespace

bool is_circle_file(std::span<const std::byte> bytes) {
    const std::string_view identifier = identifier_of(bytes);
    return identifier == "CIR0" || identifier == "TFL3";
}

CircleFile read_circle_file(const std::filesystem::path& path) {
    const auto file = std::make_shared<const MappedFile>(path);
    CircleReading reading{verified_model(*file, path), file};
    read_circle_graph(reading);
    const auto graph = std::make_shared<Graph>(std::move(reading.graph));
    sort_nodes(*graph);  // verify() tells of cycles
    std::vector<std::string> problems = std::move(reading.problems);
    const std::vector<std::string> found = verify(*graph);
    problems.insert(problems.end(), found.begin(), found.end());
    if (!problems.empty()) refuse_model(path, problems);

    CircleFile result;
    result.tensors = std::move(reading.tensors);
    result.subgraph_count = reading.model.subgraphs()->size();
    result.schema_version = reading.model.version();
    if (reading.model.description() != nullptr) result.description = reading.model.description()->str();
    Model& model = result.model;
    model.path = path.string();
    model.form = identifier_of(file->bytes()) == "TFL3" ? ModelForm::tflite : ModelForm::circle;
    model.ir_version = result.schema_version;
    model.producer = result.description;
    model.opsets[circle_domain] = std::max<std::int64_t>(result.schema_version, 1);
    model.graph = graph;
    model.remarks = std::move(reading.remarks);
    if (!reading.double_tensors.empty()) model.remarks.push_back(double_remark(reading.double_tensors));
    Sha256 hash;
    hash_file(hash, *file);
    model.hash = to_hex(hash.finish());
    return result;
}

}  // namespace qcalib
