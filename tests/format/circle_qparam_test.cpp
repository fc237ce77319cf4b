#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "format/circle_qparam_files.h"
#include "format/circle_quantization.h"
#include "format/format.h"
#include "support/circle_builder.h"
#include "support/temporary_folder.h"
#include "target/circle_assignment.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

using QparamRanges = std::map<std::string, Range>;

const std::filesystem::path small_models =
    std::filesystem::path(QCALIB_SOURCE_DIR) / "tests/circle_golden/small";

// The encodings of a model for ranges of its activations ({-1, 3} where none is given).
EncodingSet qparam_encodings(const Graph& graph, const Target& target, const QparamRanges& ranges,
                             int bits = 8) {
    const OverrideTable overrides({}, "circle", false);
    const AssignmentOptions nothing;
    ResolvedOptions options{
        &overrides, nullptr, activation_methods(nothing, target), weight_methods(nothing, target), {}, {}};
    options.activations.bits = bits;
    options.per_channel_weights = true;
    Remarks remarks;
    const auto range = [&](ValueId value) {
        const auto found = ranges.find(graph.values[value].name);
        return std::optional(found == ranges.end() ? Range{-1, 3} : found->second);
    };
    const CircleEncodings encodings =
        circle_encodings({graph, target, options, range, [](ValueId) { return "test"; }}, remarks);
    EncodingSet set;
    for (ValueId value = 0; value < graph.values.size(); ++value) {
        if (!encodings.of[value].entry) continue;
        (graph.values[value].initializer ? set.parameters : set.activations)
            .push_back(*encodings.of[value].entry);
    }
    return set;
}

EmittedModel emitted_for(const Model& model, const Target& target) {
    return {model, [](ValueId) { return nullptr; }, target, {}, {}};
}

std::map<std::string, std::string> emitted_files(const Model& model, const Target& target,
                                                 const EncodingSet& set) {
    Remarks remarks;
    std::map<std::string, std::string> files;
    for (const FormattedFile& file :
         find_format("circle-qparam").files(set, emitted_for(model, target), "qparam.json", remarks))
        files[file.path.string()] = file.bytes;
    return files;
}

void write_files(const std::map<std::string, std::string>& files, const std::filesystem::path& folder) {
    for (const auto& [name, bytes] : files) write_file(folder / name, bytes);
}

std::string qparam_error(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

// A model with the operators whose rules differ most.
std::string many_operators() {
    CircleBuilder builder;
    const auto tensor = [&](const std::string& name, std::vector<std::int32_t> shape) {
        return builder.add_float(name, std::move(shape));
    };
    const auto constant = [&](const std::string& name, std::vector<std::int32_t> shape) {
        std::int32_t count = 1;
        for (const std::int32_t size : shape) count *= size;
        std::vector<float> values;
        for (std::int32_t i = 0; i < count; ++i) values.push_back(0.1F * static_cast<float>(i % 7) - 0.3F);
        return builder.add_float(name, std::move(shape), values);
    };
    const std::int32_t x = tensor("x", {1, 4, 4, 2});
    const std::int32_t c = tensor("c", {1, 4, 4, 2});
    builder.add_operator(3, {x, constant("conv_w", {2, 1, 1, 2}), constant("conv_b", {2})}, {c}, 1,
                         {{1, 1}, {2, 1}});
    const std::int32_t d = tensor("d", {1, 4, 4, 2});
    builder.add_operator(4, {c, constant("dw_w", {1, 3, 3, 2}), constant("dw_b", {2})}, {d}, 2,
                         {{1, 1}, {2, 1}, {3, 1}});
    const std::int32_t a = tensor("a", {1, 4, 4, 2});
    builder.add_operator(0, {c, d}, {a}, 11);
    const std::int32_t joined = tensor("joined", {1, 4, 4, 4});
    builder.add_operator(2, {a, x}, {joined}, 10, {{0, 3}});
    const std::int32_t padded = tensor("padded", {1, 6, 6, 4});
    builder.add_operator(34, {joined, builder.add_int("pads", {4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})}, {padded},
                         22);
    const std::int32_t low = tensor("low", {1, 8, 8, 4});
    const std::int32_t lowest = builder.add_float("lowest", {1}, {std::numeric_limits<float>::lowest()});
    builder.add_operator(60, {padded, builder.add_int("more_pads", {4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}), lowest},
                         {low}, 43);
    const std::int32_t flat = tensor("flat", {2, 128});
    builder.add_operator(22, {low, builder.add_int("shape", {2}, {2, 128})}, {flat}, 17);
    const std::int32_t left = tensor("left", {2, 64});
    const std::int32_t right = tensor("right", {2, 64});
    builder.add_operator(49, {builder.add_int("axis", {1}, {1}), flat}, {left, right}, 35, {{0, 2}});
    const std::int32_t y = tensor("y", {2, 3});
    builder.add_operator(9, {left, constant("fc_w", {3, 64}), constant("fc_b", {3})}, {y}, 8);
    return builder.finish({x}, {y, right});
}

}  // namespace

TEST_CASE("the model of a convolution and an addition gets the very bytes that q-implant documents") {
    const Target target = load_target("circle");
    const CircleFile file = read_circle_file(small_models / "ca.circle");
    const EncodingSet set = qparam_encodings(
        *file.model.graph, target, {{"x", {-1, 1}}, {"c", {-0.65F, 0.85F}}, {"y", {-1.65F, 1.85F}}});
    const std::map<std::string, std::string> files = emitted_files(file.model, target, set);
    CHECK(
        files.at("qparam.json") ==
        "{\n"
        "  \"x\": {\"dtype\":\"uint8\",\"scale\":\"0.npy\",\"zerop\":\"1.npy\",\"quantized_dimension\":0},\n"
        "  \"w\": {\"dtype\":\"uint8\",\"scale\":\"2.npy\",\"zerop\":\"3.npy\",\"quantized_dimension\":0,"
        "\"value\":\"4.npy\"},\n"
        "  \"b\": {\"dtype\":\"int32\",\"scale\":\"5.npy\",\"zerop\":\"6.npy\",\"quantized_dimension\":0,"
        "\"value\":\"7.npy\"},\n"
        "  \"c\": {\"dtype\":\"uint8\",\"scale\":\"8.npy\",\"zerop\":\"9.npy\",\"quantized_dimension\":0},\n"
        "  \"y\": {\"dtype\":\"uint8\",\"scale\":\"10.npy\",\"zerop\":\"11.npy\",\"quantized_dimension\":0}\n"
        "}\n");
    CHECK(files.size() == 13);
    const std::string& scale = files.at("0.npy");
    REQUIRE(scale.size() == 132);
    CHECK(
        scale.starts_with(std::string("\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': "
                                      "(1,), }",
                                      10 + 57)));
    CHECK(scale[127] == '\n');
    const auto floats = [&](const char* name) {
        const std::string& bytes = files.at(name);
        std::vector<float> values((bytes.size() - 128) / sizeof(float));
        std::memcpy(values.data(), bytes.data() + 128, values.size() * sizeof(float));
        return values;
    };
    CHECK(floats("0.npy") == std::vector<float>{0.0078431377F});
    CHECK(floats("2.npy") == std::vector<float>{0.0029411765F, 0.0011764707F});
    CHECK(floats("5.npy") == std::vector<float>{2.3068053e-05F, 9.2272212e-06F});
    CHECK(floats("8.npy") == std::vector<float>{0.0058823531F});
    CHECK(floats("10.npy") == std::vector<float>{0.01372549F});
    CHECK(files.at("4.npy").substr(128) == std::string("\0\xff\x55\xff", 4));
    CHECK(files.at("4.npy").find("'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 1, 2), }") ==
          10 + 1);
    CHECK(files.at("7.npy").substr(128) == std::string("\xef\x10\0\0\x55\xab\xff\xff", 8));
    CHECK(files.at("1.npy").substr(128) == std::string("\x80\0\0\0\0\0\0\0", 8));
}

TEST_CASE("a model of many operators emits a set with nothing missing, which reads back the same") {
    const test::TemporaryFolder folder;
    const std::filesystem::path model = folder.path() / "many.circle";
    write_file(model, many_operators());
    const Target target = load_target("circle");
    const CircleFile file = read_circle_file(model);
    for (const int bits : {8, 16}) {
        CAPTURE(bits);
        const EncodingSet set = qparam_encodings(*file.model.graph, target, {{"c", {0, 2}}}, bits);
        const std::filesystem::path out = folder.path() / fmt::format("out{}", bits);
        prepare_output_folder(out);
        write_files(emitted_files(file.model, target, set), out);
        Remarks remarks;
        const EncodingFile read = read_encodings(out, remarks);
        CHECK(read.format == "circle-qparam");
        CHECK(remarks.empty());
        for (const FileEntry& entry : read.entries) {
            const ValueId value = file.model.graph->find(entry.encoding.tensor);
            REQUIRE(value != no_value);
            CHECK(file.model.graph->values[value].declared_type == DataType::float32);
            CHECK((entry.section == Section::parameter) ==
                  file.model.graph->values[value].initializer.has_value());
        }
        CHECK(read.entries.size() == 18);
        CHECK(check_circle_qparams(file,
                                   circle_qparams(file, encoding_set(read), emitted_for(file.model, target)))
                  .empty());
    }
}

TEST_CASE("every small model that q-implant can take gets a set that it takes") {
    const Target target = load_target("circle");
    std::size_t taken = 0;
    for (const auto& one : std::filesystem::directory_iterator(small_models)) {
        if (one.path().extension() != ".circle" || one.path().stem() == "qw") continue;  // weights have codes
        const std::string name = one.path().stem().string();
        CAPTURE(name);
        std::optional<CircleFile> file;
        EncodingSet set;
        try {
            file = read_circle_file(one.path());
            set = qparam_encodings(*file->model.graph, target, {});
        } catch (const Error&) {
            continue;
        }
        const std::vector<CircleFault> faults =
            check_circle_qparams(*file, circle_qparams(*file, set, emitted_for(file->model, target)));
        const bool odd_names = std::ranges::any_of(
            faults, [](const CircleFault& fault) { return fault.text.starts_with("expected names"); });
        for (const CircleFault& fault : faults) {
            if (odd_names) break;
            CAPTURE(fault.text);
            CAPTURE(fault.tensor);
            // Never a fault of ours: only what the model itself is to blame for.
            const bool model = fault.text.starts_with("q-implant cannot take") ||
                               fault.text.starts_with("expected float outputs") ||
                               fault.text.starts_with("expected names") ||
                               fault.text.starts_with("expected no float16") ||
                               fault.text.starts_with("expected one subgraph") ||
                               fault.text.starts_with("expected float32, which");
            CHECK(model);
        }
        if (faults.empty()) ++taken;
    }
    CHECK(taken > 110);
}

TEST_CASE("what q-implant cannot take is refused by name before anything is written") {
    const Target target = load_target("circle");
    const auto refusal = [&](const char* name) {
        const CircleFile file = read_circle_file(small_models / name);
        return qparam_error(
            [&] { emitted_files(file.model, target, qparam_encodings(*file.model.graph, target, {})); });
    };
    const std::string split = refusal("qe_f_splitv.circle");
    CHECK(split.find("'a': q-implant cannot take SPLIT_V") != std::string::npos);
    CHECK(split.find("write it as SPLIT or STRIDED_SLICE") != std::string::npos);
    CHECK(refusal("custom.circle").find("'y': q-implant cannot take CUSTOM") != std::string::npos);
    CHECK(refusal("qe_f_argmax.circle").find("expected float outputs, found int32") != std::string::npos);
    CHECK(refusal("f16.circle").find("'h': expected no float16 tensors") != std::string::npos);
    CHECK(refusal("qe_f_unpack.circle").find("UNPACK") != std::string::npos);
    CHECK(refusal("qe_two.circle").find("expected one subgraph, found 2") != std::string::npos);
}

TEST_CASE("traps that q-implant passes in silence are faults") {
    const Target target = load_target("circle");
    const CircleFile file = read_circle_file(small_models / "ca.circle");
    const EncodingSet set = qparam_encodings(*file.model.graph, target, {});
    const std::vector<CircleQparam> good = circle_qparams(file, set, emitted_for(file.model, target));
    CHECK(check_circle_qparams(file, good).empty());
    // Tensors are x, w, b, c, y.
    const auto faults = [&](const std::function<void(std::vector<CircleQparam>&)>& change) {
        std::vector<CircleQparam> changed = good;
        change(changed);
        std::string text;
        for (const CircleFault& fault : check_circle_qparams(file, changed))
            text += fault.tensor + ": " + fault.text + " [" + fault.said + "]\n";
        return text;
    };
    using Entries = std::vector<CircleQparam>;
    const auto has = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    CHECK(has(faults([](Entries& all) { all[1].value.reset(); }), "w: expected the codes of a constant"));
    CHECK(has(faults([](Entries& all) { all[3].value = all[1].value; }), "must_cast"));
    CHECK(has(faults([](Entries& all) { all[0].scale.push_back(1); }), "x: expected as many scales"));
    CHECK(has(faults([](Entries& all) {
                  all[0].scale.push_back(1);
                  all[0].zero_point.push_back(0);
              }),
              "x: expected one scale for a tensor that is no constant"));
    CHECK(has(faults([](Entries& all) { all[1].axis = 1; }), "w: expected a scale for each index of axis 1"));
    CHECK(has(faults([](Entries& all) { all[0].axis = 7; }), "quantized_dimension"));
    CHECK(
        has(faults([](Entries& all) { all[0].zero_point[0] = 300; }), "zero points of uint8 from 0 to 255"));
    CHECK(has(faults([](Entries& all) { all[0].scale[0] = 0; }), "x: expected scales above 0"));
    CHECK(has(faults([](Entries& all) { all[0].scale[0] = std::numeric_limits<float>::quiet_NaN(); }),
              "x: expected scales above 0"));
    CHECK(has(faults([](Entries& all) { all[2].scale[1] *= 2; }),
              "b: expected the scale of input times weight"));
    CHECK(has(faults([](Entries& all) { all[2].dtype = "int64"; }), "b: expected int32 beside uint8"));
    CHECK(
        has(faults([](Entries& all) { all[4].dtype = "int16"; }), "y: expected uint8, which its operator's"));
    CHECK(has(faults([](Entries& all) { all[0].dtype = "int4"; }), "Invalid dtype detected. int4"));
    CHECK(has(faults([](Entries& all) { all.erase(all.begin() + 3); }),
              "c: expected an entry for every float"));
    CHECK(has(faults([](Entries& all) { all.pop_back(); }), "from_node->quantparam()"));
    CHECK(has(faults([](Entries& all) { all[4].name = "yy"; }), "yy: expected a tensor"));
}

TEST_CASE("a qparam.json whose arrays do not fit is refused by the tensor's name") {
    const test::TemporaryFolder folder;
    const Target target = load_target("circle");
    const CircleFile file = read_circle_file(small_models / "ca.circle");
    const std::map<std::string, std::string> files =
        emitted_files(file.model, target, qparam_encodings(*file.model.graph, target, {}));
    const auto refusal = [&](const std::string& name, const std::string& bytes) {
        write_files(files, folder.path());
        write_file(folder.path() / name, bytes);
        return qparam_error([&] {
            Remarks remarks;
            read_encodings(folder.path() / "qparam.json", remarks);
        });
    };
    const auto npy_of = [](auto values, Shape shape) {
        using T = typename decltype(values)::value_type;
        return npy_bytes(Tensor::of<T>(std::move(shape), values).view(), "test");
    };
    const auto has = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    CHECK(refusal("0.npy", files.at("0.npy")) == "");
    CHECK(has(refusal("0.npy", npy_of(std::vector<double>{1}, {1})), "'x': scale: expected float32"));
    CHECK(has(refusal("0.npy", npy_of(std::vector<float>{1}, {})), "of one dimension"));
    CHECK(has(refusal("1.npy", npy_of(std::vector<std::int32_t>{1}, {1})), "'x': zerop: expected int64"));
    CHECK(has(refusal("1.npy", npy_of(std::vector<std::int64_t>{300}, {1})), "found uint8 with 300"));
    CHECK(has(refusal("0.npy", files.at("0.npy").substr(0, 130)), "'x': scale: "));
    CHECK(has(refusal("4.npy", files.at("4.npy").substr(0, 130)), "'w': value: "));
    CHECK(has(refusal("4.npy", npy_of(std::vector<std::int16_t>(4), {2, 1, 1, 2})),
              "'w': value: expected uint8"));
    const std::string fortran = [&] {
        std::string text = files.at("4.npy");
        return text.replace(text.find("False,"), 6, "True, ");
    }();
    CHECK(has(refusal("4.npy", fortran), "'w': value: "));
}

TEST_CASE("int8 codes are uint8 codes 128 above") {
    const std::optional<Encoding> encoding = circle_file_encoding(0.5F, 0, "int8");
    REQUIRE(encoding);
    CHECK(circle_zero_point(*encoding) == 128);
    CHECK(encoding->min == -64);
    CHECK(encoding->max == 63.5);
    CHECK_FALSE(circle_file_encoding(0.5F, 128, "int8"));
    CHECK_FALSE(circle_file_encoding(0.5F, 1, "int32"));
    CHECK_FALSE(circle_file_encoding(0.5F, 0, "uint16"));
}

TEST_CASE("a quantized model and one with recorded ranges are read as encodings") {
    Remarks remarks;
    const EncodingFile ranges = read_encodings(small_models / "direct.circle", remarks);
    CHECK(ranges.format == "circle-model");
    CHECK(remarks.all().front().find("holds ranges of 2 tensors and no scales") != std::string::npos);
    Remarks none;
    const EncodingFile scales = read_encodings(small_models / "qe_deq.circle", none);
    REQUIRE(scales.entries.size() == 1);
    CHECK(scales.entries.front().encoding.tensor == "x");
    CHECK(scales.entries.front().encoding.encodings.front().scale == doctest::Approx(0.1));
    CHECK(none.empty());
    CHECK(qparam_error([&] {
              read_encodings(small_models / "ca.circle", none);
          }).find("expected a quantized model") != std::string::npos);
}

}  // namespace qcalib
