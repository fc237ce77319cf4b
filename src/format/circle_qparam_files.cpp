#include "format/circle_qparam_files.h"

#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "format/json_writer.h"
#include "target/circle_constants.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

std::string dtype_of(const TensorEncoding& entry) {
    switch (entry.width()) {
        case 8:
            return "uint8";
        case 16:
            return "int16";
        case circle_bias_bits_8:
            return "int32";
        case circle_bias_bits_16:
            return "int64";
        default:
            fail("'{}': expected an encoding of 8, 16, 32 or 64 bits, which q-implant takes, found {}",
                 printable(entry.tensor), entry.width());
    }
}

CircleQparam qparam_of(const std::string& name, const TensorEncoding& entry) {
    if (entry.encodings.empty() || entry.per_block() || entry.type != CodeType::integer) {
        fail("'{}': expected scales of integers, one or one a channel, found {}", printable(entry.tensor),
             entry.per_block() ? "blocks" : "none");
    }
    CircleQparam qparam{name, dtype_of(entry), {}, {}, 0, {}};
    for (const Encoding& one : entry.encodings) {
        qparam.scale.push_back(static_cast<float>(one.scale));
        qparam.zero_point.push_back(circle_zero_point(one));
    }
    qparam.axis = entry.axis.value_or(0);
    return qparam;
}

// Numbers files as it makes them.
class NumberedArrays {
  public:
    explicit NumberedArrays(std::vector<FormattedFile>& files) : files_(files) {}

    // The name of the file.
    std::string add(TensorView array) {
        const std::string name = fmt::format("{}.npy", next_++);
        files_.push_back({name, npy_bytes(array, name)});
        return name;
    }
    template <typename T>
    std::string add(const std::vector<T>& values) {
        return add(Tensor::of<T>({static_cast<std::int64_t>(values.size())}, values).view());
    }

  private:
    std::vector<FormattedFile>& files_;
    std::size_t next_ = 0;
};

std::string json_string(const std::string& text) {
    return JsonWriter().string(text).text();
}

std::string json_member(const CircleQparam& entry, NumberedArrays& arrays) {
    const std::string scale = arrays.add(entry.scale);
    const std::string zero_point = arrays.add(entry.zero_point);
    std::string text = fmt::format(R"(  {}: {{"dtype":{},"scale":{},"zerop":{},"quantized_dimension":{})",
                                   json_string(entry.name), json_string(entry.dtype), json_string(scale),
                                   json_string(zero_point), entry.axis);
    if (entry.value) text += fmt::format(R"(,"value":{})", json_string(arrays.add(entry.value->view())));
    return text + "}";
}

void check_circle_names(std::span<const CircleQparam> entries) {
    std::vector<std::string> refused;
    for (const CircleQparam& entry : entries) {
        if (!is_utf8(entry.name)) refused.push_back(fmt::format("'{}'", printable(entry.name)));
    }
    if (refused.empty()) return;
    fail("{}: expected tensor names in UTF-8, which a JSON file can hold, found other bytes",
         join(refused, ", "));
}

}  // namespace

std::vector<CircleQparam> circle_qparams(const CircleFile& file, const EncodingSet& encodings,
                                         const EmittedModel& model) {
    const Graph& graph = *file.model.graph;
    const CircleGraph circle(graph);
    std::unordered_map<ValueId, const TensorEncoding*> given;
    for (const auto* section : {&encodings.activations, &encodings.parameters}) {
        for (const TensorEncoding& entry : *section) {
            const ValueId value = graph.find(entry.tensor);
            if (value != no_value) {
                given.emplace(value, &entry);
                continue;
            }
            std::vector<std::string> names;
            for (const Value& one : graph.values) names.push_back(one.name);
            fail("{}: expected entries for its tensors, found one for '{}'{}", printable(file.model.path),
                 printable(entry.tensor), did_you_mean(entry.tensor, names));
        }
    }
    std::vector<CircleQparam> entries;
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        const auto found = given.find(value);
        if (found == given.end()) continue;
        const std::string& name = file.tensors[value].name;
        CircleQparam& entry = entries.emplace_back(
            qparam_of(name.empty() ? std::string(unnamed_circle_tensor) : name, *found->second));
        if (!circle.is_constant(value)) continue;
        const CircleCoding coding = circle_coding(circle, model.target, value, *found->second);
        entry.value = circle_codes(circle.constant(value), *found->second, coding);
    }
    check_circle_names(entries);
    return entries;
}

std::vector<FormattedFile> circle_qparam_files(std::span<const CircleQparam> entries,
                                               const std::filesystem::path& name) {
    std::vector<FormattedFile> files{{name, ""}};
    NumberedArrays arrays(files);
    std::vector<std::string> members;
    for (const CircleQparam& entry : entries) members.push_back(json_member(entry, arrays));
    files.front().bytes = "{\n" + join(members, ",\n") + "\n}\n";
    return files;
}

}  // namespace qcalib
