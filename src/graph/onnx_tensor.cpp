#include "graph/onnx_tensor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <type_traits>
#include <utility>

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "base/text.h"
#include "graph/onnx_wire.h"

namespace qcalib {

namespace {

// TensorProto.DataType in the order of its numbers, with those of ONNX versions newer than the library's.
constexpr std::array<std::string_view, 24> type_names = {
    "undefined",      "float32",    "uint8",          "int8",       "uint16",   "int16",
    "int32",          "int64",      "string",         "bool",       "float16",  "float64",
    "uint32",         "uint64",     "complex64",      "complex128", "bfloat16", "float8e4m3fn",
    "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",     "float4e2m1"};

std::string described(const TensorDescriptor& descriptor) {
    return fmt::format("{} {}", name_of(descriptor.type), to_string(descriptor.shape));
}

TensorDescriptor descriptor_of(const onnx::TensorProto& proto, std::string_view what) {
    TensorDescriptor descriptor;
    descriptor.type = data_type_of_onnx(proto.data_type());
    descriptor.shape.assign(proto.dims().begin(), proto.dims().end());
    if (descriptor.type == DataType::undefined) {
        fail("{}: expected a tensor of numbers, found {}", what, onnx_type_name(proto.data_type()));
    }
    if (proto.has_segment()) fail("{}: expected a whole tensor, found a segment of one", what);
    try {
        static_cast<void>(descriptor.elements());
    } catch (const Error& error) {
        fail("{}: {}", what, error.what());
    }
    return descriptor;
}

void check_count(std::size_t found, const TensorDescriptor& descriptor, std::string_view what) {
    if (found != descriptor.elements()) {
        fail("{}: expected {} elements of {}, found {}", what, descriptor.elements(), described(descriptor),
             found);
    }
}

// Compares without multiplying: the shape may ask for more bytes than fit into a number.
void check_bytes(std::uint64_t found, const TensorDescriptor& descriptor, std::string_view what) {
    const std::uint64_t size = size_of(descriptor.type);
    if (found % size == 0 && found / size == descriptor.elements()) return;
    fail("{}: expected {} elements of {} bytes for {}, found {} bytes", what, descriptor.elements(), size,
         described(descriptor), found);
}

// The elements of a typed field; int32_data holds the narrow types, half types as their bits.
template <typename Target, typename Field>
Tensor read_typed(const Field& field, const TensorDescriptor& descriptor, std::string_view what) {
    check_count(static_cast<std::size_t>(field.size()), descriptor, what);
    Tensor tensor(descriptor);
    auto* target = reinterpret_cast<Target*>(tensor.mutable_view().data);
    for (const auto value : field) {
        if constexpr (std::is_integral_v<Target>) {
            // A half's bits may have been widened with their sign.
            const bool sign_extended = !std::is_signed_v<Target> && is_floating(descriptor.type) &&
                                       std::in_range<std::int16_t>(value);
            if (!std::in_range<Target>(value) && !sign_extended) {
                fail("{}: expected values of {}, found {}", what, name_of(descriptor.type), value);
            }
        }
        *target++ = static_cast<Target>(value);
    }
    return tensor;
}

Tensor read_booleans(const onnx::TensorProto& proto, const TensorDescriptor& descriptor,
                     std::string_view what) {
    check_count(static_cast<std::size_t>(proto.int32_data_size()), descriptor, what);
    Tensor tensor(descriptor);
    std::transform(proto.int32_data().begin(), proto.int32_data().end(), tensor.mutable_view().data,
                   [](std::int32_t value) { return static_cast<std::byte>(value != 0); });
    return tensor;
}

Tensor read_strings(const onnx::TensorProto& proto, const TensorDescriptor& descriptor,
                    std::string_view what) {
    check_count(static_cast<std::size_t>(proto.string_data_size()), descriptor, what);
    const std::vector<std::string> strings(proto.string_data().begin(), proto.string_data().end());
    return Tensor::of_strings(descriptor.shape, strings);
}

Tensor read_fields(const onnx::TensorProto& proto, const TensorDescriptor& descriptor,
                   std::string_view what) {
    switch (descriptor.type) {
        case DataType::float32:
            return read_typed<float>(proto.float_data(), descriptor, what);
        case DataType::float64:
            return read_typed<double>(proto.double_data(), descriptor, what);
        case DataType::float16:
        case DataType::bfloat16:
        case DataType::uint16:
            return read_typed<std::uint16_t>(proto.int32_data(), descriptor, what);
        case DataType::int8:
            return read_typed<std::int8_t>(proto.int32_data(), descriptor, what);
        case DataType::uint8:
            return read_typed<std::uint8_t>(proto.int32_data(), descriptor, what);
        case DataType::int16:
            return read_typed<std::int16_t>(proto.int32_data(), descriptor, what);
        case DataType::int32:
            return read_typed<std::int32_t>(proto.int32_data(), descriptor, what);
        case DataType::int64:
            return read_typed<std::int64_t>(proto.int64_data(), descriptor, what);
        case DataType::uint32:
            return read_typed<std::uint32_t>(proto.uint64_data(), descriptor, what);
        case DataType::uint64:
            return read_typed<std::uint64_t>(proto.uint64_data(), descriptor, what);
        case DataType::boolean:
            return read_booleans(proto, descriptor, what);
        case DataType::string:
            return read_strings(proto, descriptor, what);
        case DataType::undefined:
        case DataType::sequence:
        case DataType::optional:
            break;
    }
    fail("{}: expected a tensor of numbers", what);
}

// Elements inside a file. A bool is any byte there, but 0 or 1 in memory.
Tensor in_place(TensorDescriptor descriptor, std::shared_ptr<const MappedFile> file,
                std::span<const std::byte> bytes) {
    if (descriptor.type != DataType::boolean) return {std::move(descriptor), std::move(file), bytes};
    Tensor tensor(std::move(descriptor));
    std::transform(bytes.begin(), bytes.end(), tensor.mutable_view().data,
                   [](std::byte value) { return static_cast<std::byte>(value != std::byte{0}); });
    return tensor;
}

// What the external_data entries of a tensor say.
struct ExternalPlace {
    std::string location;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;
};

std::uint64_t parse_unsigned(const std::string& text, std::string_view key, std::string_view what) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        fail("{}: external data: expected a number of bytes as {}, found '{}'", what, key, printable(text));
    }
    return value;
}

ExternalPlace external_place(const onnx::TensorProto& proto, std::string_view what) {
    ExternalPlace place;
    bool has_location = false;
    for (const auto& entry : proto.external_data()) {
        if (entry.key() == "location") {
            place.location = entry.value();
            has_location = true;
        } else if (entry.key() == "offset") {
            place.offset = parse_unsigned(entry.value(), "offset", what);
        } else if (entry.key() == "length") {
            place.length = parse_unsigned(entry.value(), "length", what);
        }
    }
    if (!has_location) fail("{}: external data: expected a location, found none", what);
    return place;
}

bool has_typed_data(const onnx::TensorProto& proto) {
    return proto.float_data_size() + proto.int32_data_size() + proto.string_data_size() +
               proto.int64_data_size() + proto.double_data_size() + proto.uint64_data_size() >
           0;
}

}  // namespace

DataType data_type_of_onnx(std::int32_t code) {
    switch (code) {
        case onnx::TensorProto_DataType_FLOAT:
            return DataType::float32;
        case onnx::TensorProto_DataType_UINT8:
            return DataType::uint8;
        case onnx::TensorProto_DataType_INT8:
            return DataType::int8;
        case onnx::TensorProto_DataType_UINT16:
            return DataType::uint16;
        case onnx::TensorProto_DataType_INT16:
            return DataType::int16;
        case onnx::TensorProto_DataType_INT32:
            return DataType::int32;
        case onnx::TensorProto_DataType_INT64:
            return DataType::int64;
        case onnx::TensorProto_DataType_STRING:
            return DataType::string;
        case onnx::TensorProto_DataType_BOOL:
            return DataType::boolean;
        case onnx::TensorProto_DataType_FLOAT16:
            return DataType::float16;
        case onnx::TensorProto_DataType_DOUBLE:
            return DataType::float64;
        case onnx::TensorProto_DataType_UINT32:
            return DataType::uint32;
        case onnx::TensorProto_DataType_UINT64:
            return DataType::uint64;
        case onnx::TensorProto_DataType_BFLOAT16:
            return DataType::bfloat16;
        default:
            return DataType::undefined;
    }
}

std::string onnx_type_name(std::int32_t code) {
    if (code < 0 || std::cmp_greater_equal(code, type_names.size())) return fmt::format("type {}", code);
    return std::string(type_names[static_cast<std::size_t>(code)]);
}

std::optional<Tensor> OnnxTensorReader::read(const onnx::TensorProto& proto, std::string_view what) {
    TensorDescriptor descriptor = descriptor_of(proto, what);
    const bool external = proto.data_location() == onnx::TensorProto_DataLocation_EXTERNAL;
    if (proto.has_raw_data() + has_typed_data(proto) + external > 1) {
        fail("{}: expected data in one place, found it in several", what);
    }
    if (descriptor.type == DataType::string && (external || proto.has_raw_data())) {
        fail("{}: expected strings in string_data, found raw data", what);
    }
    if (external) return read_external(proto, std::move(descriptor), what);
    if (proto.has_raw_data()) return read_raw(proto, std::move(descriptor), what);
    return read_fields(proto, descriptor, what);
}

Tensor OnnxTensorReader::read_raw(const onnx::TensorProto& proto, TensorDescriptor descriptor,
                                  std::string_view what) const {
    const RawExtent extent = raw_extent(proto.raw_data());
    check_bytes(extent.length, descriptor, what);
    return in_place(std::move(descriptor), model_, model_->bytes().subspan(extent.offset, extent.length));
}

std::optional<Tensor> OnnxTensorReader::read_external(const onnx::TensorProto& proto,
                                                      TensorDescriptor descriptor, std::string_view what) {
    const ExternalPlace place = external_place(proto, what);
    if (place.length) check_bytes(*place.length, descriptor, what);
    const auto file = external_.open(place.location, what);
    if (!file) return std::nullopt;
    const std::uint64_t available =
        file->bytes().size() - std::min<std::uint64_t>(place.offset, file->bytes().size());
    if (place.offset > file->bytes().size() || descriptor.elements() > available / size_of(descriptor.type)) {
        fail(
            "{}: external data '{}': expected {} elements of {} bytes from byte {} on, found a file of {} "
            "bytes",
            what, printable(place.location), descriptor.elements(), size_of(descriptor.type), place.offset,
            file->bytes().size());
    }
    const std::size_t bytes = descriptor.bytes();
    return in_place(std::move(descriptor), file, file->bytes().subspan(place.offset, bytes));
}

}  // namespace qcalib
