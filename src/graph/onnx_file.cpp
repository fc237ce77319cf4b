#include "graph/onnx_file.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <onnx/onnx_pb.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "graph/external_data.h"
#include "graph/onnx_graph.h"
#include "graph/onnx_tensor.h"
#include "graph/onnx_wire.h"
#include "graph/reading_problems.h"
#include "graph/types.h"
#include "graph/verify.h"

namespace qcalib {

namespace {

constexpr std::int64_t oldest_ir_version = 3;
constexpr std::int64_t oldest_opset = 7;

onnx::ModelProto parse(const MappedFile& file, const std::filesystem::path& path) {
    const std::string message = without_raw_data(file.bytes(), path);
    onnx::ModelProto proto;
    if (message.size() > std::numeric_limits<int>::max() ||
        !proto.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
        fail("{}: expected an ONNX model, found a damaged one: its messages cannot be parsed",
             printable(path.string()));
    }
    if (!proto.has_graph()) {
        fail("{}: expected a whole ONNX model, found one without a graph ({} bytes)",
             printable(path.string()), file.bytes().size());
    }
    return proto;
}

// `owner` begins the problems: "" for the model's own, else a function's.
template <typename Imports>
Opsets read_opsets(const Imports& imports, const std::string& owner, std::vector<std::string>& problems) {
    Opsets opsets;
    for (const auto& import : imports) {
        const std::string domain(canonical_domain(import.domain()));
        const auto [entry, is_new] = opsets.emplace(domain, import.version());
        if (!is_new && entry->second != import.version()) {
            problems.push_back(fmt::format("{}opset of domain '{}': expected one version, found {} and {}",
                                           owner, domain.empty() ? "ai.onnx" : printable(domain),
                                           entry->second, import.version()));
        }
    }
    if (const auto own = opsets.find(""); own != opsets.end() && own->second < oldest_opset) {
        problems.push_back(
            fmt::format("{}opset: expected {} or newer, found {}", owner, oldest_opset, own->second));
    }
    return opsets;
}

Opsets read_versions(const onnx::ModelProto& proto, std::vector<std::string>& problems) {
    if (proto.ir_version() < oldest_ir_version) {
        problems.push_back(fmt::format("IR version: expected {} or newer, found {}", oldest_ir_version,
                                       proto.has_ir_version() ? std::to_string(proto.ir_version()) : "none"));
    }
    return read_opsets(proto.opset_import(), "", problems);
}

void read_functions(const onnx::ModelProto& proto, OnnxReading& reading) {
    for (const auto& function : proto.functions()) {
        const std::string domain(canonical_domain(function.domain()));
        const std::string owner = fmt::format(
            "function '{}': ",
            printable(domain.empty() ? function.name() : fmt::format("{}:{}", domain, function.name())));
        FunctionDefinition definition{&function,
                                      read_opsets(function.opset_import(), owner, reading.problems)};
        if (!reading.functions.try_emplace({domain, function.name()}, std::move(definition)).second) {
            reading.problems.push_back(owner + "expected one function of that name, found another");
        }
    }
}

std::string hash_of(const MappedFile& file, const ExternalData& external) {
    Sha256 hash;
    hash_file(hash, file);
    for (const auto& other : external.files()) hash_file(hash, *other);
    return to_hex(hash.finish());
}

std::vector<std::string> remarks_of(const onnx::ModelProto& proto, const OnnxReading& reading) {
    std::vector<std::string> remarks;
    if (!reading.double_tensors.empty()) {
        remarks.push_back(double_remark(reading.double_tensors));
    }
    if (proto.training_info_size() > 0) remarks.emplace_back("the model's training graphs are not read");
    return remarks;
}

}  // namespace

Model read_onnx_file(const std::filesystem::path& path, ModelInputs inputs) {
    const auto file = std::make_shared<const MappedFile>(path);
    const onnx::ModelProto proto = parse(*file, path);
    ExternalData external(path);
    OnnxTensorReader tensors(file, external);

    Model model;
    std::vector<std::string> problems;
    model.opsets = read_versions(proto, problems);
    OnnxReading reading{tensors};
    reading.any_inputs = inputs == ModelInputs::any;
    read_functions(proto, reading);
    read_graph(proto.graph(), model.opsets, reading);
    const auto graph = std::make_shared<Graph>(std::move(reading.graph));
    sort_nodes(*graph);  // verify() tells of cycles

    for (const auto& found : {reading.problems, external.problems(), verify(*graph, inputs)}) {
        problems.insert(problems.end(), found.begin(), found.end());
    }
    if (!problems.empty()) refuse_model(path, problems);
    infer_types(*graph);

    model.path = path.string();
    model.ir_version = proto.ir_version();
    model.producer = std::string(trim(proto.producer_name() + " " + proto.producer_version()));
    model.graph = graph;
    model.hash = hash_of(*file, external);
    model.remarks = remarks_of(proto, reading);
    return model;
}

}  // namespace qcalib
