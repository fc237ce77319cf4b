#include "format/snpe_json.h"

#include <cassert>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

using Json = nlohmann::ordered_json;

constexpr int indent = 4;

bool can_be_key(const std::string& name) {
    try {
        (void)Json(name).dump();
        return true;
    } catch (const Json::type_error&) {
        return false;
    }
}

void check_names(const EncodingSet& encodings) {
    std::vector<std::string> refused;
    for (const auto* section : {&encodings.activations, &encodings.parameters}) {
        for (const TensorEncoding& entry : *section) {
            if (!can_be_key(entry.tensor)) refused.push_back(fmt::format("'{}'", printable(entry.tensor)));
        }
    }
    if (refused.empty()) return;
    fail(
        "{}: expected tensor names in UTF-8, which a JSON file can hold, found other bytes; rename in the "
        "model",
        join(refused, ", "));
}

Json to_json(const Encoding& encoding) {
    assert(std::isfinite(encoding.min) && std::isfinite(encoding.max) && std::isfinite(encoding.scale));
    Json json;
    json["bitwidth"] = encoding.bits;
    json["min"] = encoding.min;
    json["max"] = encoding.max;
    json["scale"] = encoding.scale;
    json["offset"] = encoding.offset;
    json["is_symmetric"] = encoding.symmetric ? "True" : "False";
    json["dtype"] = "int";
    return json;
}

Json section_of(const std::vector<TensorEncoding>& entries) {
    Json section = Json::object();
    for (const TensorEncoding& entry : entries) {
        Json list = Json::array();
        for (const Encoding& encoding : entry.encodings) list.push_back(to_json(encoding));
        assert(!section.contains(entry.tensor));
        section[entry.tensor] = std::move(list);
    }
    return section;
}

}  // namespace

std::string SnpeJson::summary() const {
    return "Qualcomm's quantization_overrides JSON as SNPE documents it (activation_encodings and "
           "param_encodings by "
           "ONNX tensor name; bitwidth, min, max, scale, offset, is_symmetric, dtype; no version). Read by "
           "snpe-onnx-to-dlc --quantization_overrides, with --override_params given to snpe-dlc-quantize, "
           "and by "
           "qnn-onnx-converter.";
}

std::string SnpeJson::emit(const EncodingSet& encodings) const {
    check_names(encodings);
    Json file;
    file["activation_encodings"] = section_of(encodings.activations);
    file["param_encodings"] = section_of(encodings.parameters);
    return file.dump(indent) + "\n";
}

}  // namespace qcalib
