#include "graph/onnx_tensor.h"

#include <cstring>
#include <fstream>
#include <limits>

#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include "graph/external_data.h"
#include "graph/model_files.h"
#include "graph/onnx_wire.h"

namespace qcalib {

namespace {

using namespace test;  // NOLINT: the builder's vocabulary

// A model with one initializer, t, that its one output shows.
OnnxModel model_of(OnnxTensor tensor) {
    OnnxModel model;
    tensor.name.assign(1, 't');
    model.graph.initializer(std::move(tensor)).output("t");
    return model;
}

Value read(const OnnxTensor& tensor) {
    const Model model = load(model_of(tensor));
    return value(*model.graph, "t");
}

// Raw and typed fields must give the same elements.
template <typename T>
void check_both_storages(const std::vector<T>& values) {
    for (const OnnxStorage storage : {OnnxStorage::raw, OnnxStorage::typed}) {
        CAPTURE(name_of(data_type_of<T>()));
        const Value read_back =
            read(OnnxTensor::of<T>("t", {static_cast<std::int64_t>(values.size())}, values, storage));
        CHECK(read_back.declared_type == data_type_of<T>());
        REQUIRE(read_back.initializer->type() == data_type_of<T>());
        CHECK(std::memcmp(read_back.initializer->data(), values.data(), values.size() * sizeof(T)) == 0);
        CHECK(read_back.initializer->mapped() == (storage == OnnxStorage::raw));
    }
}

Tensor of_bits(DataType type, const std::vector<std::uint16_t>& bits) {
    Tensor tensor(TensorDescriptor{type, {static_cast<std::int64_t>(bits.size())}, MemoryOrder::row_major});
    std::memcpy(tensor.mutable_view().data, bits.data(), bits.size() * 2);
    return tensor;
}

OnnxTensor typed(DataType type, Shape shape, std::vector<std::int32_t> values) {
    OnnxTensor tensor;
    tensor.data_type = onnx_type(type);
    tensor.dims = std::move(shape);
    tensor.int32s = std::move(values);
    return tensor;
}

OnnxTensor raw(std::int32_t data_type, Shape shape, std::size_t bytes) {
    OnnxTensor tensor;
    tensor.data_type = data_type;
    tensor.dims = std::move(shape);
    tensor.raw = std::string(bytes, '\1');
    return tensor;
}

std::string fault(const OnnxTensor& tensor) {
    return error_of(model_of(tensor));
}

}  // namespace

TEST_CASE("raw and typed data of every type give the same elements") {
    check_both_storages<float>({0.5F, -1e30F, std::numeric_limits<float>::infinity()});
    check_both_storages<std::int8_t>({-128, 0, 127});
    check_both_storages<std::uint8_t>({0, 128, 255});
    check_both_storages<std::int16_t>({-32768, 32767});
    check_both_storages<std::uint16_t>({0, 65535});
    check_both_storages<std::int32_t>({std::numeric_limits<std::int32_t>::min(), 7});
    check_both_storages<std::uint32_t>({0, 4294967295U});
    check_both_storages<std::int64_t>({std::numeric_limits<std::int64_t>::min(), -1});
    check_both_storages<std::uint64_t>({0, std::numeric_limits<std::uint64_t>::max()});
}

TEST_CASE("a scalar has one element and an empty tensor needs no data") {
    CHECK(numbers_of(read(OnnxTensor::of<float>("t", {}, {2.5F})).initializer->view()) ==
          std::vector<double>{2.5});
    OnnxTensor empty;
    empty.dims = {0, 3};
    CHECK(read(empty).initializer->shape() == Shape{0, 3});
    empty.raw = "";
    CHECK(read(empty).initializer->descriptor().bytes() == 0);
}

TEST_CASE("any byte of a bool but zero is read as one") {
    OnnxTensor tensor = raw(onnx_type(DataType::boolean), {3}, 3);
    tensor.raw = std::string("\0\1\x7f", 3);
    CHECK(numbers_of(read(tensor).initializer->view()) == std::vector<double>{0, 1, 1});
    CHECK(numbers_of(read(typed(DataType::boolean, {3}, {0, 1, 256})).initializer->view()) ==
          std::vector<double>{0, 1, 1});
}

TEST_CASE("half types become float32 and keep their declared type") {
    for (const OnnxStorage storage : {OnnxStorage::raw, OnnxStorage::typed}) {
        const Value half =
            read(OnnxTensor::of("t", of_bits(DataType::float16, {0x3c00, 0xfbff, 0x0001}), storage));
        CHECK(half.declared_type == DataType::float16);
        CHECK(half.initializer->type() == DataType::float32);
        CHECK(numbers_of(half.initializer->view()) == std::vector<double>{1, -65504, 0x1p-24});
        const Value brain = read(OnnxTensor::of("t", of_bits(DataType::bfloat16, {0x3f80, 0xc000}), storage));
        CHECK(brain.declared_type == DataType::bfloat16);
        CHECK(numbers_of(brain.initializer->view()) == std::vector<double>{1, -2});
    }
    // Bits widened with their sign.
    CHECK(numbers_of(
              read(typed(DataType::float16, {1}, {static_cast<std::int16_t>(0xc000)})).initializer->view()) ==
          std::vector<double>{-2});
}

TEST_CASE("double becomes float32 with one remark for the model") {
    for (const OnnxStorage storage : {OnnxStorage::raw, OnnxStorage::typed}) {
        OnnxModel model = model_of(OnnxTensor::of<double>("t", {2}, {0.1, -1e38}, storage));
        model.graph.initializer(OnnxTensor::of<double>("u", {1}, {1}, storage));
        const Model loaded = load(model);
        CHECK(value(*loaded.graph, "t").declared_type == DataType::float64);
        CHECK(numbers_of(value(*loaded.graph, "t").initializer->view()) ==
              std::vector<double>{static_cast<double>(0.1F), static_cast<double>(-1e38F)});
        CHECK(loaded.remarks == std::vector<std::string>{"double is computed as float32 ('t' and others)"});
    }
    OnnxModel declared = relu_model();
    declared.graph.value_info("y", {1}, DataType::float64);
    CHECK(load(declared).remarks == std::vector<std::string>{"double is computed as float32 ('y')"});
    CHECK(load(relu_model()).remarks.empty());
}

TEST_CASE("an attribute's half and double tensors become float32 as initializers do") {
    OnnxModel model;
    model.graph.node("Constant", {}, {"c"},
                     {{"value", OnnxTensor::of("", of_bits(DataType::float16, {0x3c00}))}});
    model.graph.node("Constant", {}, {"d"}, {{"value", OnnxTensor::of<double>("", {1}, {0.5})}}).output("d");
    const Model loaded = load(model);
    CHECK(loaded.graph->nodes[0].attribute<Tensor>("value", {}).type() == DataType::float32);
    CHECK(numbers_of(loaded.graph->nodes[1].attribute<Tensor>("value", {}).view()) ==
          std::vector<double>{0.5});
    CHECK(loaded.remarks.size() == 1);
    model.graph.nodes[1].attributes[0].value = OnnxTensor::of<double>("", {1}, {1e39});
    CHECK(error_of(model) ==
          "Constant making 'd', attribute 'value': expected values within float32's range, found 1e+39");
}

TEST_CASE("a tensor of strings has a shape and its strings") {
    OnnxTensor tensor;
    tensor.data_type = onnx_type(DataType::string);
    tensor.dims = {2};
    tensor.strings = {"a", std::string(40, 'b')};
    const Value strings = read(tensor);
    CHECK(strings.declared_type == DataType::string);
    CHECK(strings.initializer->type() == DataType::string);
    CHECK(strings.initializer->shape() == Shape{2});
    CHECK(strings_of(strings.initializer->view()) == tensor.strings);
    tensor.strings.pop_back();
    CHECK(fault(tensor) == "initializer 't': expected 2 elements of string [2], found 1");
    CHECK(fault(raw(onnx_type(DataType::string), {2}, 2)) ==
          "initializer 't': expected strings in string_data, found raw data");
}

TEST_CASE("data of another size than the shape asks for is refused with both") {
    CHECK(fault(raw(1, {2, 2}, 12)) ==
          "initializer 't': expected 4 elements of 4 bytes for float32 [2,2], found 12 bytes");
    CHECK(fault(raw(1, {2, 2}, 18)) ==
          "initializer 't': expected 4 elements of 4 bytes for float32 [2,2], found 18 bytes");
    // 2^62 elements of 4 bytes are 2^64 bytes: nothing may wrap.
    CHECK(fault(raw(1, {std::int64_t{1} << 62}, 0)).find("found 0 bytes") != std::string::npos);
    OnnxTensor floats;
    floats.dims = {3};
    floats.floats = {1, 2};
    CHECK(fault(floats) == "initializer 't': expected 3 elements of float32 [3], found 2");
    floats.floats.clear();
    CHECK(fault(floats) == "initializer 't': expected 3 elements of float32 [3], found 0");
    floats.int32s = {1, 2, 3};  // the wrong field
    CHECK(fault(floats) == "initializer 't': expected 3 elements of float32 [3], found 0");
}

TEST_CASE("impossible shapes, types and places of data are refused by name") {
    CHECK(fault(raw(1, {-1}, 4)) == "initializer 't': shape [-1]: expected dimensions of 0 or more");
    CHECK(fault(raw(1, {std::int64_t{1} << 40, std::int64_t{1} << 40}, 4)).find("more elements than") !=
          std::string::npos);
    CHECK(fault(raw(14, {1}, 8)) == "initializer 't': expected a tensor of numbers, found complex64");
    CHECK(fault(raw(17, {1}, 1)) == "initializer 't': expected a tensor of numbers, found float8e4m3fn");
    CHECK(fault(raw(0, {1}, 1)) == "initializer 't': expected a tensor of numbers, found undefined");
    CHECK(fault(raw(99, {1}, 1)) == "initializer 't': expected a tensor of numbers, found type 99");
    CHECK(fault(raw(-3, {1}, 1)) == "initializer 't': expected a tensor of numbers, found type -3");
    OnnxTensor twice = raw(1, {1}, 4);
    twice.floats = {1};
    CHECK(fault(twice) == "initializer 't': expected data in one place, found it in several");
    CHECK(fault(typed(DataType::int8, {1}, {128})) == "initializer 't': expected values of int8, found 128");
    CHECK(fault(typed(DataType::uint8, {1}, {-1})) == "initializer 't': expected values of uint8, found -1");
    CHECK(fault(typed(DataType::float16, {1}, {65536})) ==
          "initializer 't': expected values of float16, found 65536");
    CHECK(fault(OnnxTensor::of<double>("t", {1}, {1e39})) ==
          "initializer 't': expected values within float32's range, found 1e+39");
}

TEST_CASE("raw data is read in place from a model larger than 2 GiB") {
    // The graph's last field is an initializer whose last field is its data: the file is extended by a hole
    // of zeros.
    const auto varint = [](std::uint64_t number) {
        std::string bytes;
        for (; number >= 0x80; number >>= 7U) bytes += static_cast<char>(number | 0x80U);
        return bytes + static_cast<char>(number);
    };
    const auto field = [&](unsigned number, std::uint64_t length) {
        return varint(number << 3U | 2U) + varint(length);
    };
    constexpr std::int64_t count = 540'000'000;
    OnnxModel model = relu_model();
    model.graph.output("big");
    std::string file = model.bytes();
    const std::string tensor = varint(1U << 3U) + varint(count) + varint(2U << 3U) + varint(1) + field(8, 3) +
                               "big" + field(9, count * sizeof(float));
    const std::uint64_t tensor_bytes = tensor.size() + count * sizeof(float);
    const std::string initializer = field(5, tensor_bytes) + tensor;
    file += field(7, initializer.size() + count * sizeof(float)) +
            initializer;  // merges with the graph before it

    const TemporaryFolder folder;
    write_unsynced(folder / "m.onnx", file);
    std::filesystem::resize_file(folder / "m.onnx", file.size() + count * sizeof(float));
    std::fstream out(folder / "m.onnx", std::ios::in | std::ios::out | std::ios::binary);
    const float last = 1.5F;
    out.seekp(-static_cast<int>(sizeof(last)), std::ios::end);
    out.write(reinterpret_cast<const char*>(&last), sizeof(last));
    out.close();

    // All of read_onnx_file but its hash, which would read the whole file.
    const auto mapped = std::make_shared<const MappedFile>(folder / "m.onnx");
    const std::string message = without_raw_data(mapped->bytes(), folder / "m.onnx");
    CHECK(message.size() < 1000);
    onnx::ModelProto proto;
    REQUIRE(proto.ParseFromString(message));
    CHECK(proto.graph().node_size() == 1);
    REQUIRE(proto.graph().initializer_size() == 1);
    CHECK(raw_extent(proto.graph().initializer(0).raw_data()).offset == file.size());
    ExternalData external(folder / "m.onnx");
    const Tensor big = OnnxTensorReader(mapped, external).read(proto.graph().initializer(0), "big").value();
    CHECK(big.mapped());
    CHECK(big.shape() == Shape{count});
    float found = 0;
    std::memcpy(&found, big.data() + (count - 1) * sizeof(float), sizeof(float));
    CHECK(found == last);
}

}  // namespace qcalib
