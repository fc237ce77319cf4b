// What Samsung ONE's own tools answered, and what we do. tests/circle_golden/README.md says how it was made.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "format/circle_check.h"
#include "graph/circle_file.h"
#include "runtime/frame.h"
#include "runtime/kernel_registry.h"
#include "runtime/program.h"
#include "target/circle_assignment.h"
#include "target/circle_constants.h"

namespace qcalib {

namespace {

using Json = nlohmann::json;
using CircleRanges = std::map<std::string, Range>;

const std::filesystem::path golden_folder = std::filesystem::path(QCALIB_SOURCE_DIR) / "tests/circle_golden";

Json golden_json(const std::filesystem::path& path) {
    std::ifstream stream(path);
    REQUIRE(stream);
    return Json::parse(stream);
}

// The target's rules without what luci-interpreter asks for beyond circle-quantizer.
Target circle_quantizer_rules() {
    Target target = load_target("circle");
    CircleRules rules = *target.circle;
    rules.executable = false;
    target.circle = std::make_shared<const CircleRules>(rules);
    return target;
}

struct GoldenMode {
    std::string name;
    int bits = 8;
    bool per_channel = true;
};
const std::vector<GoldenMode> golden_modes{
    {"uint8_channel", 8, true}, {"uint8_layer", 8, false}, {"int16_channel", 16, true}};

CircleEncodings encode_golden(const Graph& graph, const Target& target, const CircleRanges& ranges,
                              const GoldenMode& mode) {
    const OverrideTable overrides({}, "circle", false);
    const AssignmentOptions nothing;
    ResolvedOptions options{
        &overrides, nullptr, activation_methods(nothing, target), weight_methods(nothing, target), {}, {}};
    options.activations.bits = mode.bits;
    options.per_channel_weights = mode.per_channel;
    const auto range = [&](ValueId value) -> std::optional<Range> {
        const auto found = ranges.find(graph.values[value].name);
        return found == ranges.end() ? std::nullopt : std::optional(found->second);
    };
    Remarks remarks;
    return circle_encodings({graph, target, options, range, [](ValueId) { return "recorded"; }}, remarks);
}

// What differs from ONE's answer, a line each; "" for nothing.
std::string difference(const Graph& graph, ValueId value, const Target& target,
                       const CircleEncodings& encodings, const Json& wanted) {
    const std::optional<TensorEncoding>& entry = encodings.of[value].entry;
    if (!wanted.contains("scale")) return entry ? "has an entry" : "";
    if (!entry) return "has no entry";
    std::vector<float> scales;
    std::vector<std::int64_t> zeros;
    for (const Encoding& one : entry->encodings) {
        scales.push_back(static_cast<float>(one.scale));
        zeros.push_back(circle_zero_point(one));
    }
    if (scales != wanted.at("scale").get<std::vector<float>>()) return "scale";
    if (zeros != wanted.at("zp").get<std::vector<std::int64_t>>()) return "zero point";
    if (entry->encodings.size() > 1 && entry->axis.value_or(-1) != wanted.at("qdim").get<int>())
        return "axis";
    static const std::map<int, std::string> dtypes{{8, "uint8"}, {16, "int16"}, {32, "int32"}, {64, "int64"}};
    if (dtypes.at(entry->width()) != wanted.at("dtype").get<std::string>()) return "dtype";
    const CircleGraph circle(graph);
    if (!circle.is_constant(value)) return "";
    const Tensor codes =
        circle_codes(circle.constant(value), *entry, circle_coding(circle, target, value, *entry));
    if (circle_coding(circle, target, value, *entry) != encodings.coding[value]) return "coding";
    if (wanted.contains("value_sha256")) {
        Sha256 sha;
        sha.update(codes.view().bytes());
        if (to_hex(sha.finish()) != wanted.at("value_sha256").get<std::string>()) return "codes (SHA-256)";
    }
    if (wanted.contains("data")) {
        std::vector<std::int64_t> numbers;
        for (const double number : numbers_of(codes.view()))
            numbers.push_back(static_cast<std::int64_t>(number));
        if (numbers != wanted.at("data").get<std::vector<std::int64_t>>()) return "codes";
    }
    return "";
}

std::vector<std::string> differences(const Graph& graph, const Target& target,
                                     const CircleEncodings& encodings, const Json& wanted,
                                     const std::set<std::string>& clones) {
    std::vector<std::string> found;
    for (const auto& [name, tensor] : wanted.items()) {
        const ValueId value = graph.find(name);
        if (value == no_value) {
            if (!clones.contains(name)) found.push_back(name + ": not in the model");
            continue;
        }
        const std::string text = difference(graph, value, target, encodings, tensor);
        if (!text.empty()) found.push_back(name + ": " + text);
    }
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        if (encodings.of[value].entry && !wanted.contains(graph.values[value].name))
            found.push_back(graph.values[value].name + ": ONE has no such tensor");
    }
    return found;
}

CircleRanges ranges_in(const CircleFile& file) {
    CircleRanges ranges;
    for (ValueId value = 0; value < file.tensors.size(); ++value) {
        const CircleQuantization& quantization = file.tensors[value].quantization;
        if (quantization.min.empty() || quantization.max.empty()) continue;
        ranges[file.model.graph->values[value].name] = {quantization.min.front(), quantization.max.front()};
    }
    return ranges;
}

std::optional<std::filesystem::path> cached_model(const std::string& file) {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const std::filesystem::path root = cache != nullptr && *cache != '\0'
                                           ? std::filesystem::path(cache)
                                           : std::filesystem::path(home == nullptr ? "" : home) / ".cache";
    const std::filesystem::path models = root / "qcalib/models";
    if (!std::filesystem::is_directory(models)) return std::nullopt;
    for (const auto& folder : std::filesystem::directory_iterator(models)) {
        if (std::filesystem::exists(folder.path() / file)) return folder.path() / file;
    }
    return std::nullopt;
}

// The entries that the golden answers of q-implant were made with: every float tensor of the file by its name
// there, scale 0.1 and zero point 3, constants as codes.
std::vector<CircleQparam> golden_entries(const CircleFile& file) {
    std::vector<CircleQparam> entries;
    const Graph& graph = *file.model.graph;
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        const std::string& name = file.tensors[value].name;
        if (graph.values[value].declared_type != DataType::float32 || name.empty()) continue;
        CircleQparam& entry = entries.emplace_back();
        entry.name = name;
        entry.dtype = "uint8";
        entry.scale = {0.1F};
        entry.zero_point = {3};
        if (graph.values[value].initializer) {
            entry.value.emplace(TensorDescriptor{DataType::uint8, graph.values[value].initializer->shape()});
            std::ranges::fill(entry.value->mutable_view().bytes(), std::byte{3});
        }
    }
    return entries;
}

// What the golden answers do not look at: q-implant takes biases of any type and scale in silence.
bool about_biases(const CircleFault& fault) {
    return fault.said.empty() && (fault.text.starts_with("expected int32") ||
                                  fault.text.starts_with("expected the scale of input times weight"));
}

// The extremes of each sample of every float value, without NaN and -FLT_MAX, as record-minmax takes them.
class ExtremesTap final : public Tap {
  public:
    TapRight right(const Graph& graph, ValueId value) const override {
        return graph.values[value].declared_type == DataType::float32 ? TapRight::read : TapRight::ignore;
    }
    void on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) override {
        if (view.descriptor->type != DataType::float32) return;
        Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
        for (const float element : view.as<float>()) {
            if (std::isnan(element) || element == std::numeric_limits<float>::lowest()) continue;
            range = {std::min<double>(range.min, element), std::max<double>(range.max, element)};
        }
        least[value].push_back(range.min);
        greatest[value].push_back(range.max);
    }

    std::map<ValueId, std::vector<double>> least;
    std::map<ValueId, std::vector<double>> greatest;
};

// The percentiles 1 and 99 of four numbers, linear between neighbours.
double low_of_four(std::vector<double> values) {
    std::ranges::sort(values);
    return values[0] + 0.03 * (values[1] - values[0]);
}
double high_of_four(std::vector<double> values) {
    std::ranges::sort(values);
    return values[2] + 0.97 * (values[3] - values[2]);
}

std::vector<Tensor> golden_records(const Graph& graph, const std::filesystem::path& path) {
    Shape shape;
    for (const Dimension& dimension : *graph.values[graph.inputs.front()].declared_shape)
        shape.push_back(dimension.size.value_or(1));
    const std::string bytes = read_text_file(path);
    const std::size_t size = static_cast<std::size_t>(element_count(shape)) * sizeof(float);
    REQUIRE(bytes.size() == 4 * size);
    std::vector<Tensor> records;
    for (std::size_t i = 0; i < 4; ++i) {
        Tensor& record = records.emplace_back(TensorDescriptor{DataType::float32, shape});
        std::memcpy(record.mutable_view().data, bytes.data() + i * size, size);
    }
    return records;
}

// Equal to 1e-5 of the greater magnitude of the range.
bool same_range(const Json& wanted, double min, double max) {
    const double low = wanted.at(0).get<double>();
    const double high = wanted.at(1).get<double>();
    const double tolerance = 1e-5 * std::max(std::abs(low), std::abs(high));
    return std::abs(low - min) <= tolerance && std::abs(high - max) <= tolerance;
}

}  // namespace

TEST_CASE("recorded ranges of the small models become what circle-quantizer makes of them") {
    const Json expected = golden_json(golden_folder / "small/expected.json");
    const Target target = circle_quantizer_rules();
    // The sign is lost in an undefined conversion there (a bias is widened here, a weight of -FLT_MAX
    // refused), the file has scales already, or names are not unique.
    const std::set<std::string> others{"ovf.circle", "ovf2.circle", "fm.circle", "qw.circle"};
    std::size_t compared = 0;
    for (const auto& [name, answers] : expected.items()) {
        for (const GoldenMode& mode : golden_modes) {
            const std::string key = "circle_quantizer_" + mode.name.substr(0, mode.name.find('_'));
            if (!mode.per_channel || !answers.contains(key) || answers.at(key).at("rc") != 0) continue;
            if (others.contains(name)) continue;
            CAPTURE(name);
            CAPTURE(mode.name);
            const CircleFile file = read_circle_file(golden_folder / "small" / name);
            const CircleEncodings encodings = encode_golden(*file.model.graph, target, ranges_in(file), mode);
            const std::vector<std::string> found =
                differences(*file.model.graph, target, encodings, answers.at(key).at("tensors"), {"k_3"});
            CHECK(found == std::vector<std::string>{});
            ++compared;
        }
    }
    CHECK(compared >= 110);
}

TEST_CASE("a bias beyond int32 widens the weight's scale where circle-quantizer writes INT_MIN") {
    const Target target = circle_quantizer_rules();
    for (const char* name : {"ovf.circle", "ovf2.circle"}) {
        CAPTURE(name);
        const CircleFile file = read_circle_file(golden_folder / "small" / name);
        const Graph& graph = *file.model.graph;
        const CircleEncodings encodings = encode_golden(graph, target, ranges_in(file), golden_modes.front());
        const ValueId bias = graph.find("b");
        const CircleGraph circle(graph);
        const Tensor codes =
            circle_codes(circle.constant(bias), *encodings.of[bias].entry, CircleCoding::bias);
        const std::vector<double> values = numbers_of(circle.constant(bias).view());
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double code = numbers_of(codes.view())[i];
            CHECK(std::abs(code) < 2147483647.0);
            CHECK(code * static_cast<float>(encodings.of[bias].entry->encodings[i].scale) ==
                  doctest::Approx(values[i]).epsilon(1e-6));
        }
    }
}

TEST_CASE("the check says of each small model what q-implant says") {
    const Json expected = golden_json(golden_folder / "small/expected.json");
    // Names that two tensors have, or none: the golden answers were made with names of another reader.
    const std::set<std::string> odd_names{"dup1.circle", "dup2.circle", "nn.circle", "nn2.circle",
                                          "nn4.circle"};
    std::size_t accepted = 0;
    std::size_t refused = 0;
    for (const auto& [name, answers] : expected.items()) {
        CAPTURE(name);
        const Json& answer = answers.at("q_implant");
        std::vector<CircleFault> faults;
        try {
            const CircleFile file = read_circle_file(golden_folder / "small" / name);
            faults = check_circle_qparams(file, golden_entries(file));
        } catch (const Error& error) {
            faults.push_back({"", error.what(), ""});
        }
        std::erase_if(faults, about_biases);
        std::string said;
        for (const CircleFault& fault : faults)
            said += fault.tensor + ": " + fault.text + " | " + fault.said + "\n";
        CAPTURE(said);
        const bool takes = answer.at("rc") == 0;
        const bool leaves_float = takes && !answer.at("float_left").empty();
        CHECK(faults.empty() == (takes && !leaves_float));
        takes ? ++accepted : ++refused;
        if (faults.empty() || odd_names.contains(name)) continue;
        if (leaves_float) {
            std::set<std::string> silent;
            for (const CircleFault& fault : faults) {
                CHECK(fault.said.empty());
                silent.insert(fault.tensor);
            }
            for (const auto& tensor : answer.at("float_left"))
                CHECK(silent.contains(tensor.get<std::string>()));
            continue;
        }
        CHECK("ERROR: " + faults.front().said == answer.at("message").get<std::string>());
        if (name != "qe_two.circle") CHECK(!faults.front().tensor.empty());
    }
    CHECK(accepted + refused == 145);
    CHECK(refused == 25);
}

// Calls `check(name, golden, file)` for each network whose model is there; answers for how many.
template <typename Check>
std::size_t for_each_network(const Check& check) {
    std::size_t networks = 0;
    for (const char* name : {"onet", "rnet", "alexa_v0.1", "hey_mycroft_v0.1", "timer_v0.1"}) {
        const Json golden = golden_json(golden_folder / (std::string(name) + ".json"));
        const std::string model = golden.at("file").get<std::string>();
        const std::optional<std::filesystem::path> path =
            cached_model(std::filesystem::path(model).filename());
        if (!path) {
            MESSAGE("skipped: " << model << " is not there (scripts/fetch-models)");
            continue;
        }
        CAPTURE(model);
        const CircleFile file = read_circle_file(*path);
        check(name, golden, file);
        ++networks;
    }
    return networks;
}

TEST_CASE("recorded ranges of real networks become what circle-quantizer makes of them") {
    const Target target = circle_quantizer_rules();
    const std::size_t networks =
        for_each_network([&](const std::string& /*name*/, const Json& golden, const CircleFile& file) {
            CircleRanges ranges;
            for (const auto& [tensor, ends] : golden.at("recorded_percentile_1_99").items())
                ranges[tensor] = {ends.at(0).get<double>(), ends.at(1).get<double>()};
            for (const GoldenMode& mode : golden_modes) {
                CAPTURE(mode.name);
                const CircleEncodings encodings = encode_golden(*file.model.graph, target, ranges, mode);
                const std::vector<std::string> found =
                    differences(*file.model.graph, target, encodings, golden.at(mode.name),
                                {"onnx_tf_prefix_Constant_20_26"});
                CHECK(found == std::vector<std::string>{});
            }
        });
    MESSAGE("networks compared: " << networks << " of 5");
}

TEST_CASE("our executor records the ranges of real networks that record-minmax records, to 1e-5") {
    const std::size_t networks =
        for_each_network([&](const std::string& name, const Json& golden, const CircleFile& file) {
            const Graph& graph = *file.model.graph;
            ExtremesTap tap;
            Program program(file.model.graph, builtin_kernels(), {&tap});
            Frame frame;
            std::uint64_t number = 0;
            for (const Tensor& record : golden_records(graph, golden_folder / (name + ".records.f32"))) {
                const std::vector<Tensor> inputs{record};
                frame.run(program.plan(inputs), inputs, number++);
            }
            std::vector<std::string> found;
            for (const auto& [tensor, ends] : golden.at("recorded_percentile_1_99").items()) {
                const ValueId value = graph.find(tensor);
                const bool seen = value != no_value && tap.least[value].size() == 4;
                if (!seen) {
                    found.push_back(tensor + ": not seen");
                    continue;
                }
                const std::vector<double>& least = tap.least[value];
                const std::vector<double>& greatest = tap.greatest[value];
                if (!same_range(ends, low_of_four(least), high_of_four(greatest)))
                    found.push_back(tensor + ": percentiles");
                // Four records are one group of the moving average.
                const Json& plain = golden.at("recorded_moving_average_16_0.1").at(tensor);
                if (!same_range(plain, *std::ranges::min_element(least), *std::ranges::max_element(greatest)))
                    found.push_back(tensor + ": extremes");
            }
            CHECK(found == std::vector<std::string>{});
        });
    MESSAGE("networks run: " << networks << " of 5");
}

}  // namespace qcalib
