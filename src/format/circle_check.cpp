#include "format/circle_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "format/circle_types.h"

namespace qcalib {

namespace {

// q-implant's own words.
constexpr std::string_view says_one_subgraph = "Only a single subgraph is supported";
constexpr std::string_view says_unknown = "unordered_map::at";
constexpr std::string_view says_not_float = "node->dtype() == loco::DataType::FLOAT32";
constexpr std::string_view says_no_constant = "loco::must_cast() failed to cast: PN4luci11CircleConstE";
constexpr std::string_view says_rank = "shape.size() == node->rank()";
constexpr std::string_view says_shape = "node->dim(i).value() == shape[i]";
constexpr std::string_view says_output = "from_node->quantparam()";
constexpr std::string_view says_left_float = "circle_node->dtype() != loco::DataType::FLOAT32";
constexpr std::string_view says_float16 = "Internal Exception. Unsupported datatype: 11";
constexpr std::string_view says_dtype = "Invalid dtype detected. ";

// Operators that q-implant makes two nodes of one name for and so leaves one of them in float.
constexpr std::array<std::string_view, 9> impossible_operators{"SPLIT_V",
                                                               "UNPACK",
                                                               "TOPK_V2",
                                                               "CUSTOM",
                                                               "UNIQUE",
                                                               "NON_MAX_SUPPRESSION_V4",
                                                               "NON_MAX_SUPPRESSION_V5",
                                                               "BIDIRECTIONAL_SEQUENCE_LSTM",
                                                               "UNIDIRECTIONAL_SEQUENCE_RNN"};

struct DtypeLimits {
    std::string_view name;
    DataType type;
    std::int64_t least;
    std::int64_t most;
};
constexpr std::array<DtypeLimits, 5> dtypes{
    {{"uint8", DataType::uint8, 0, 255},
     {"int8", DataType::int8, -128, 127},
     {"int16", DataType::int16, -32768, 32767},
     {"int32", DataType::int32, std::numeric_limits<std::int32_t>::min(),
      std::numeric_limits<std::int32_t>::max()},
     {"int64", DataType::int64, std::numeric_limits<std::int64_t>::min(),
      std::numeric_limits<std::int64_t>::max()}}};

const DtypeLimits* limits_of_dtype(const std::string& dtype) {
    const auto found = std::ranges::find(dtypes, dtype, &DtypeLimits::name);
    return found == dtypes.end() ? nullptr : &*found;
}

std::string shown_tensor(const std::string& name) {
    return fmt::format("'{}'", printable(name));
}

// Goes through q-implant's steps.
class ImplantCheck {
  public:
    ImplantCheck(const CircleFile& file, std::span<const CircleQparam> entries)
        : file_(file),
          graph_(*file.model.graph),
          entries_(entries),
          entry_of_(graph_.values.size(), nullptr) {}

    std::vector<CircleFault> run() {
        if (file_.subgraph_count > 1) {
            add("", fmt::format("expected one subgraph, found {}", file_.subgraph_count), says_one_subgraph);
            return std::move(faults_);
        }
        find_nodes();
        find_active();
        look_up_entries();
        check_outputs();
        check_floats();
        check_float16();
        check_types();
        for (const CircleQparam& entry : entries_) check_numbers(entry);
        check_biases();
        return std::move(faults_);
    }

  private:
    void add(std::string tensor, std::string text, std::string_view said = {}) {
        faults_.push_back({std::move(tensor), std::move(text), std::string(said)});
    }
    std::string name_of(ValueId value) const {
        const std::string& name = file_.tensors[value].name;
        return name.empty() ? std::string(unnamed_circle_tensor) : name;
    }
    const Value& value_of(ValueId value) const { return graph_.values[value]; }
    bool is_float(ValueId value) const { return value_of(value).declared_type == DataType::float32; }
    bool is_constant(ValueId value) const { return value_of(value).initializer.has_value(); }

    // What q-implant has a node for: inputs, outputs of operators, constants.
    void find_nodes() {
        std::vector<bool> node(graph_.values.size(), false);
        for (const ValueId input : graph_.inputs) node[input] = true;
        for (const Node& one : graph_.nodes) {
            for (const ValueId output : one.outputs) {
                if (output != no_value) node[output] = true;
            }
        }
        for (ValueId value = 0; value < graph_.values.size(); ++value) {
            if (node[value] || is_constant(value)) nodes_.emplace(name_of(value), value);
        }
        for (auto it = nodes_.begin(); it != nodes_.end(); it = nodes_.upper_bound(it->first)) {
            if (nodes_.count(it->first) == 1) continue;
            add(it->first,
                fmt::format(
                    "expected names that only one tensor has, found {} tensors {}: rename them in the "
                    "model",
                    nodes_.count(it->first),
                    it->first == unnamed_circle_tensor ? "without a name" : "of this name"),
                says_left_float);
        }
    }

    void find_active() {
        active_.assign(graph_.values.size(), false);
        for (const ValueId output : graph_.outputs) active_[output] = true;
        for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
            const bool runs = std::ranges::any_of(
                node->outputs, [&](ValueId output) { return output != no_value && active_[output]; });
            if (!runs) continue;
            for (const ValueId value : node->inputs) {
                if (value != no_value) active_[value] = true;
            }
            for (const ValueId value : node->outputs) {
                if (value != no_value) active_[value] = true;
            }
        }
    }

    void look_up_entries() {
        std::vector<const CircleQparam*> sorted;
        for (const CircleQparam& entry : entries_) sorted.push_back(&entry);
        std::ranges::sort(sorted, {}, [](const CircleQparam* entry) { return entry->name; });
        for (const CircleQparam* entry : sorted) look_up(*entry);
    }

    void look_up(const CircleQparam& entry) {
        const auto found = nodes_.find(entry.name);
        if (found == nodes_.end()) {
            std::vector<std::string> names;
            for (const auto& [name, value] : nodes_) names.push_back(name);
            add(entry.name,
                fmt::format(
                    "expected a tensor that an operator or the graph's inputs have, found none of this "
                    "name{}",
                    did_you_mean(entry.name, names)),
                says_unknown);
            return;
        }
        const ValueId value = found->second;
        if (!is_float(value)) {
            add(entry.name,
                fmt::format("expected a float32 tensor, found {}: others must have no entry",
                            name_of_type(value)),
                says_not_float);
            return;
        }
        if (limits_of_dtype(entry.dtype) == nullptr)
            add(entry.name,
                fmt::format("dtype: expected uint8, int8, int16, int32 or int64, found {}",
                            printable(entry.dtype)),
                fmt::format("{}{}", says_dtype, entry.dtype));
        entry_of_[value] = &entry;
        check_value(entry, value);
    }

    std::string name_of_type(ValueId value) const {
        return std::string(qcalib::name_of(value_of(value).declared_type));
    }

    void check_value(const CircleQparam& entry, ValueId value) {
        if (!entry.value) {
            if (is_constant(value))
                add(entry.name,
                    "expected the codes of a constant (value), found none: its float bytes would be taken "
                    "for "
                    "codes");
            return;
        }
        if (!is_constant(value)) {
            add(entry.name, "expected no codes for a tensor that is no constant", says_no_constant);
            return;
        }
        const Shape& wanted = value_of(value).initializer->shape();
        const Shape& found = entry.value->shape();
        if (wanted != found) {
            add(entry.name,
                fmt::format("expected codes of shape {}, found {}", to_string(wanted), to_string(found)),
                wanted.size() == found.size() ? says_shape : says_rank);
        }
        const DtypeLimits* limits = limits_of_dtype(entry.dtype);
        if (limits != nullptr && limits->type != entry.value->type()) {
            add(entry.name,
                fmt::format("expected codes of type {}, found {}", entry.dtype,
                            qcalib::name_of(entry.value->type())),
                "formatting error: typestrings not matching");
        }
    }

    void check_outputs() {
        for (const ValueId output : graph_.outputs) {
            const bool quantized = !is_float(output) && !file_.tensors[output].quantization.empty();
            if (entry_of_[output] != nullptr || quantized) continue;
            add(name_of(output),
                is_float(output)
                    ? std::string("expected an entry for every output of the graph, found none")
                    : fmt::format(
                          "expected float outputs, found {}: q-implant takes no other, so leave it to "
                          "what runs the model",
                          name_of_type(output)),
                says_output);
        }
    }

    void check_floats() {
        for (const Node& node : graph_.nodes) {
            if (std::ranges::count(impossible_operators, node.op_type) == 0) continue;
            const bool runs = std::ranges::any_of(
                node.outputs, [&](ValueId output) { return output != no_value && active_[output]; });
            const ValueId output = runs ? node.outputs.front() : no_value;
            if (output == no_value) continue;
            add(name_of(output),
                fmt::format("q-implant cannot take {}, whatever entries it has: {}", label(graph_, node),
                            node.op_type == "SPLIT_V" || node.op_type == "UNPACK"
                                ? "write it as SPLIT or STRIDED_SLICE in the model"
                                : "one of the nodes it makes of the operator stays in float"),
                says_left_float);
        }
        for (ValueId value = 0; value < graph_.values.size(); ++value) {
            const bool needs = active_[value] && is_float(value) && entry_of_[value] == nullptr;
            const bool output = std::ranges::count(graph_.outputs, value) > 0;
            if (needs && !output) {
                add(name_of(value),
                    "expected an entry for every float tensor, found none: q-implant hands some on (RESHAPE, "
                    "TRANSPOSE, SPLIT), but not surely",
                    says_left_float);
            }
        }
    }

    void check_float16() {
        for (ValueId value = 0; value < graph_.values.size(); ++value) {
            if (!active_[value] || value_of(value).declared_type != DataType::float16) continue;
            add(name_of(value),
                "expected no float16 tensors, found one: q-implant cannot write them; convert the model with "
                "float32 weights",
                says_float16);
        }
    }

    // What stays in float, or gets another type than its entry's, without a word.
    void check_types() {
        std::vector<std::string> types;
        for (ValueId value = 0; value < graph_.values.size(); ++value) {
            types.push_back(entry_of_[value] != nullptr ? entry_of_[value]->dtype : name_of_type(value));
        }
        const std::vector<std::string> written = inferred_circle_types(graph_, types);
        for (ValueId value = 0; value < graph_.values.size(); ++value) {
            if (entry_of_[value] == nullptr || is_constant(value) || written[value] == types[value]) continue;
            add(name_of(value),
                fmt::format("expected {}, which its operator's first input makes it in the file, found {}{}",
                            written[value], types[value],
                            written[value] == "float32"
                                ? ": the tensor would stay in float, with a scale"
                                : ": all activations need one dtype unless QUANTIZE operators lie between"));
        }
    }

    std::optional<Shape> shape_of(ValueId value) const {
        if (is_constant(value)) return value_of(value).initializer->shape();
        return Shape(file_.tensors[value].shape.begin(), file_.tensors[value].shape.end());
    }

    void check_numbers(const CircleQparam& entry) {
        const DtypeLimits* limits = limits_of_dtype(entry.dtype);
        if (entry.scale.size() != entry.zero_point.size() || entry.scale.empty()) {
            add(entry.name,
                fmt::format("expected as many scales as zero points and one at least, found {} and {}",
                            entry.scale.size(), entry.zero_point.size()));
            return;
        }
        for (std::size_t i = 0; i < entry.scale.size(); ++i) {
            const bool all_zero = entry.scale[i] == 0 && single_zero(entry, i);
            if (!(std::isfinite(entry.scale[i]) && entry.scale[i] > 0) && !all_zero) {
                add(entry.name, fmt::format("expected scales above 0, found {} at {}", entry.scale[i], i));
                break;
            }
            if (limits == nullptr) continue;
            const std::int64_t zero = entry.zero_point[i];
            if (zero < limits->least || zero > limits->most ||
                (limits->type != DataType::uint8 && limits->type != DataType::int8 && zero != 0)) {
                add(entry.name, fmt::format("expected zero points of {} {}, found {} at {}", entry.dtype,
                                            limits->most <= 255
                                                ? fmt::format("from {} to {}", limits->least, limits->most)
                                                : std::string("to be 0"),
                                            zero, i));
                break;
            }
        }
        check_axis(entry);
    }

    // A value of 0 may be its own scale (PRELU, INSTANCE_NORM).
    bool single_zero(const CircleQparam& entry, std::size_t index) const {
        const auto found = nodes_.find(entry.name);
        if (found == nodes_.end() || !is_constant(found->second)) return false;
        const Tensor& constant = *value_of(found->second).initializer;
        return constant.type() == DataType::float32 && constant.view().elements() == entry.scale.size() &&
               numbers_of(constant.view())[index] == 0;
    }

    void check_axis(const CircleQparam& entry) {
        const auto found = nodes_.find(entry.name);
        if (found == nodes_.end()) return;
        const std::optional<Shape> shape = shape_of(found->second);
        const auto rank = static_cast<std::int64_t>(shape->size());
        if (entry.scale.size() == 1) {
            if (entry.axis >= 0 && entry.axis < std::max<std::int64_t>(rank, 1)) return;
            add(entry.name, fmt::format("quantized_dimension: expected one of the {} axes of {}, found {}",
                                        rank, to_string(*shape), entry.axis));
            return;
        }
        const bool fits =
            entry.axis >= 0 && entry.axis < rank &&
            (*shape)[static_cast<std::size_t>(entry.axis)] == static_cast<std::int64_t>(entry.scale.size());
        if (!is_constant(found->second)) {
            add(entry.name, fmt::format("expected one scale for a tensor that is no constant, found {}",
                                        entry.scale.size()));
        } else if (!fits) {
            add(entry.name, fmt::format("expected a scale for each index of axis {} of {}, found {}",
                                        entry.axis, to_string(*shape), entry.scale.size()));
        }
    }

    void check_biases() {
        for (const Node& node : graph_.nodes) {
            const bool transposed = node.op_type == "TRANSPOSE_CONV";
            const bool product = transposed || node.op_type == "CONV_2D" ||
                                 node.op_type == "DEPTHWISE_CONV_2D" || node.op_type == "FULLY_CONNECTED";
            const std::size_t place = transposed ? 3 : 2;
            if (!product || node.inputs.size() <= place || node.inputs[place] == no_value) continue;
            const CircleQparam* data = entry_of_[node.inputs[transposed ? 2 : 0]];
            const CircleQparam* weight = entry_of_[node.inputs[1]];
            const CircleQparam* bias = entry_of_[node.inputs[place]];
            if (data == nullptr || weight == nullptr || bias == nullptr) continue;
            if (data->scale.empty() || !is_constant(node.inputs[place])) continue;
            check_product(node, *data, *weight, *bias);
        }
    }

    void check_product(const Node& node, const CircleQparam& data, const CircleQparam& weight,
                       const CircleQparam& bias) {
        const bool narrow = data.dtype == "uint8" || data.dtype == "int8";
        const std::string wanted = narrow ? "int32" : "int64";
        if (data.dtype != weight.dtype)
            add(weight.name, fmt::format("expected {}, as the input of {} has, found {}", data.dtype,
                                         label(graph_, node), weight.dtype));
        if (bias.dtype != wanted)
            add(bias.name, fmt::format("expected {} beside {}, found {}", wanted, data.dtype, bias.dtype));
        if (bias.scale.size() != weight.scale.size()) {
            add(bias.name, fmt::format("expected as many scales as the weight of {} has, {}, found {}",
                                       label(graph_, node), weight.scale.size(), bias.scale.size()));
            return;
        }
        for (std::size_t i = 0; i < bias.scale.size(); ++i) {
            const float product = data.scale.front() * weight.scale[i];
            if (std::abs(bias.scale[i] - product) <= 1e-6F * product) continue;
            add(bias.name, fmt::format("expected the scale of input times weight of {}, {}, found {} at {}",
                                       label(graph_, node), product, bias.scale[i], i));
            return;
        }
    }

    const CircleFile& file_;
    const Graph& graph_;
    std::span<const CircleQparam> entries_;
    std::multimap<std::string, ValueId> nodes_;
    std::vector<bool> active_;
    std::vector<const CircleQparam*> entry_of_;  // by ValueId
    std::vector<CircleFault> faults_;
};

}  // namespace

std::vector<CircleFault> check_circle_qparams(const CircleFile& file, std::span<const CircleQparam> entries) {
    return ImplantCheck(file, entries).run();
}

void throw_circle_faults(std::string_view path, std::span<const CircleFault> faults) {
    constexpr std::size_t most = 20;
    if (faults.empty()) return;
    std::vector<std::string> lines;
    for (const CircleFault& fault : faults.first(std::min(most, faults.size()))) {
        lines.push_back(fmt::format("{}{}{}", fault.tensor.empty() ? "" : shown_tensor(fault.tensor) + ": ",
                                    fault.text,
                                    fault.said.empty() ? " (q-implant says nothing of it)"
                                                       : fmt::format(" (q-implant: \"{}\")", fault.said)));
    }
    if (faults.size() > most) lines.push_back(fmt::format("and {} more", faults.size() - most));
    fail("{}: q-implant cannot make a quantized model of it:\n  {}", printable(std::string(path)),
         join(lines, "\n  "));
}

}  // namespace qcalib
