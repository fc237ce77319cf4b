#include "support/circle_builder.h"

namespace qcalib {

namespace {

constexpr std::int8_t float_type = 0;
constexpr std::int8_t int_type = 2;
constexpr std::size_t buffer_alignment = 16;
constexpr std::uint32_t schema_version = 3;

// The byte offset of a slot in a vtable.
constexpr flatbuffers::voffset_t slot(std::uint16_t index) {
    return static_cast<flatbuffers::voffset_t>(4 + 2 * index);
}

}  // namespace

template <typename T>
std::uint32_t CircleBuilder::add_buffer(const std::vector<T>& values) {
    if (buffers_.empty()) buffers_.emplace_back(builder_.EndTable(builder_.StartTable()));
    if (values.empty()) return 0;
    const std::size_t bytes = values.size() * sizeof(T);
    builder_.ForceVectorAlignment(bytes, 1, buffer_alignment);
    const auto data = builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(values.data()), bytes);
    const auto start = builder_.StartTable();
    builder_.AddOffset(slot(0), data);
    buffers_.emplace_back(builder_.EndTable(start));
    return static_cast<std::uint32_t>(buffers_.size() - 1);
}

std::int32_t CircleBuilder::add_tensor(const std::string& name, const std::vector<std::int32_t>& shape,
                                       std::int8_t type, std::uint32_t buffer) {
    const auto dimensions = builder_.CreateVector(shape);
    const auto text = builder_.CreateString(name);
    const auto start = builder_.StartTable();
    builder_.AddOffset(slot(0), dimensions);
    builder_.AddElement<std::int8_t>(slot(1), type, 0);
    builder_.AddElement<std::uint32_t>(slot(2), buffer, 0);
    builder_.AddOffset(slot(3), text);
    tensors_.emplace_back(builder_.EndTable(start));
    return static_cast<std::int32_t>(tensors_.size() - 1);
}

std::int32_t CircleBuilder::add_float(const std::string& name, const std::vector<std::int32_t>& shape,
                                      const std::vector<float>& values) {
    return add_tensor(name, shape, float_type, add_buffer(values));
}

std::int32_t CircleBuilder::add_int(const std::string& name, const std::vector<std::int32_t>& shape,
                                    const std::vector<std::int32_t>& values) {
    return add_tensor(name, shape, int_type, add_buffer(values));
}

void CircleBuilder::add_operator(std::int32_t code, const std::vector<std::int32_t>& inputs,
                                 const std::vector<std::int32_t>& outputs, std::uint8_t options_type,
                                 const std::vector<CircleOption>& options) {
    auto start = builder_.StartTable();
    builder_.AddElement<std::int8_t>(slot(0), static_cast<std::int8_t>(code), 0);
    builder_.AddElement<std::int32_t>(slot(2), 1, 1);
    builder_.AddElement<std::int32_t>(slot(3), code, 0);
    codes_.emplace_back(builder_.EndTable(start));

    start = builder_.StartTable();
    for (const CircleOption& option : options) {
        if (option.bytes == 1) {
            builder_.AddElement<std::int8_t>(slot(option.slot), static_cast<std::int8_t>(option.value), 0);
        } else {
            builder_.AddElement<std::int32_t>(slot(option.slot), option.value, 0);
        }
    }
    const flatbuffers::Offset<flatbuffers::Table> table(builder_.EndTable(start));
    const auto read = builder_.CreateVector(inputs);
    const auto made = builder_.CreateVector(outputs);
    start = builder_.StartTable();
    builder_.AddElement<std::uint32_t>(slot(0), static_cast<std::uint32_t>(codes_.size() - 1), 0);
    builder_.AddOffset(slot(1), read);
    builder_.AddOffset(slot(2), made);
    if (options_type != 0) {
        builder_.AddElement<std::uint8_t>(slot(3), options_type, 0);
        builder_.AddOffset(slot(4), table);
    }
    operators_.emplace_back(builder_.EndTable(start));
}

std::string CircleBuilder::finish(const std::vector<std::int32_t>& inputs,
                                  const std::vector<std::int32_t>& outputs) {
    const auto tensors = builder_.CreateVector(tensors_);
    const auto operators = builder_.CreateVector(operators_);
    const auto in = builder_.CreateVector(inputs);
    const auto out = builder_.CreateVector(outputs);
    auto start = builder_.StartTable();
    builder_.AddOffset(slot(0), tensors);
    builder_.AddOffset(slot(1), in);
    builder_.AddOffset(slot(2), out);
    builder_.AddOffset(slot(3), operators);
    const std::vector<flatbuffers::Offset<flatbuffers::Table>> graph{
        flatbuffers::Offset<flatbuffers::Table>(builder_.EndTable(start))};
    const auto graphs = builder_.CreateVector(graph);
    const auto codes = builder_.CreateVector(codes_);
    const auto buffers = builder_.CreateVector(buffers_);
    start = builder_.StartTable();
    builder_.AddElement<std::uint32_t>(slot(0), schema_version, 0);
    builder_.AddOffset(slot(1), codes);
    builder_.AddOffset(slot(2), graphs);
    builder_.AddOffset(slot(4), buffers);
    builder_.Finish(flatbuffers::Offset<flatbuffers::Table>(builder_.EndTable(start)), "CIR0");
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
}

}  // namespace qcalib
