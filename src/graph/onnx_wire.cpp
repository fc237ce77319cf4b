#include "graph/onnx_wire.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

// Encoding: https://protobuf.dev/programming-guides/encoding. Field numbers: onnx.proto.
enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// The messages on the way from a model to raw_data.
enum class Message : std::uint8_t {
    model,
    graph,
    node,
    attribute,
    tensor,
    sparse_tensor,
    function,
    training
};

constexpr std::uint32_t raw_data_field = 9;
constexpr int depth_limit = 100;  // protobuf's own
constexpr std::size_t length_bytes = 5;

// The message that a field of `message` holds, where it can lead to raw_data.
std::optional<Message> message_in(Message message, std::uint32_t field) {
    struct Row {
        Message outer;
        std::uint32_t field;
        Message inner;
    };
    static constexpr std::array rows = {
        Row{Message::model, 7, Message::graph},
        Row{Message::model, 20, Message::training},
        Row{Message::model, 25, Message::function},
        Row{Message::training, 1, Message::graph},
        Row{Message::training, 2, Message::graph},
        Row{Message::function, 7, Message::node},
        Row{Message::function, 11, Message::attribute},
        Row{Message::graph, 1, Message::node},
        Row{Message::graph, 5, Message::tensor},
        Row{Message::graph, 15, Message::sparse_tensor},
        Row{Message::node, 5, Message::attribute},
        Row{Message::attribute, 5, Message::tensor},
        Row{Message::attribute, 6, Message::graph},
        Row{Message::attribute, 10, Message::tensor},
        Row{Message::attribute, 11, Message::graph},
        Row{Message::attribute, 22, Message::sparse_tensor},
        Row{Message::attribute, 23, Message::sparse_tensor},
        Row{Message::sparse_tensor, 1, Message::tensor},
        Row{Message::sparse_tensor, 2, Message::tensor},
    };
    for (const Row& row : rows) {
        if (row.outer == message && row.field == field) return row.inner;
    }
    return std::nullopt;
}

struct ModelField {
    std::uint32_t number;
    WireType type;
    std::string_view name;
};

// The fields of ModelProto; a file that does not begin with one of them is no ONNX model.
constexpr std::array model_fields = {
    ModelField{1, WireType::varint, "ir_version"},
    ModelField{2, WireType::bytes, "producer_name"},
    ModelField{3, WireType::bytes, "producer_version"},
    ModelField{4, WireType::bytes, "domain"},
    ModelField{5, WireType::varint, "model_version"},
    ModelField{6, WireType::bytes, "doc_string"},
    ModelField{7, WireType::bytes, "graph"},
    ModelField{8, WireType::bytes, "opset_import"},
    ModelField{14, WireType::bytes, "metadata_props"},
    ModelField{20, WireType::bytes, "training_info"},
    ModelField{25, WireType::bytes, "functions"},
    ModelField{26, WireType::bytes, "configuration"},
};

const ModelField* model_field(std::uint32_t number) {
    const auto found = std::find_if(model_fields.begin(), model_fields.end(),
                                    [&](const ModelField& field) { return field.number == number; });
    return found == model_fields.end() ? nullptr : &*found;
}

struct Field {
    std::uint32_t number = 0;
    WireType type = WireType::varint;
    std::size_t start = 0;    // of the tag
    std::size_t payload = 0;  // of the contents
    std::size_t end = 0;
};

class Stripper {
  public:
    Stripper(std::span<const std::byte> file, const std::filesystem::path& path)
        : file_(file), path_(printable(path.string())) {}

    std::string run() {
        if (file_.empty()) fail("{}: expected an ONNX model, found an empty file", path_);
        copy_message(Message::model, 0, file_.size(), 0);
        return std::move(copy_);
    }

  private:
    void copy_message(Message message, std::size_t begin, std::size_t end, int depth) {
        if (depth > depth_limit) fail("{}: expected an ONNX model, found graphs nested too deeply", path_);
        for (std::size_t position = begin; position < end;) {
            const Field field = read_field(message, position, end);
            const auto inner = message_in(message, field.number);
            const bool raw_data = message == Message::tensor && field.number == raw_data_field;
            if ((inner || raw_data) && field.type != WireType::bytes) damaged(field.start);
            if (inner) {
                copy_inner(*inner, field, depth);
            } else if (raw_data) {
                write_extent(field);
            } else {
                append(field.start, field.end);
            }
            position = field.end;
        }
    }

    // The inner length is not known beforehand: it is written as a varint padded to five bytes afterwards.
    void copy_inner(Message inner, const Field& field, int depth) {
        write_varint(field.number << 3U | static_cast<unsigned>(WireType::bytes));
        const std::size_t length_at = copy_.size();
        copy_.append(length_bytes, '\0');
        copy_message(inner, field.payload, field.end, depth + 1);
        const std::uint64_t length = copy_.size() - length_at - length_bytes;
        for (std::size_t i = 0; i < length_bytes; ++i) {
            const std::uint64_t more = i + 1 < length_bytes ? 0x80 : 0;
            copy_[length_at + i] = static_cast<char>((length >> (7 * i) & 0x7fU) | more);
        }
    }

    void write_extent(const Field& field) {
        const RawExtent extent = {field.payload, field.end - field.payload};
        write_varint(field.number << 3U | static_cast<unsigned>(WireType::bytes));
        write_varint(sizeof(extent));
        copy_.append(reinterpret_cast<const char*>(&extent), sizeof(extent));
    }

    void write_varint(std::uint32_t value) {
        for (; value >= 0x80; value >>= 7U) copy_ += static_cast<char>(value | 0x80U);
        copy_ += static_cast<char>(value);
    }

    void append(std::size_t begin, std::size_t end) {
        constexpr auto limit = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
        if (copy_.size() + (end - begin) > limit) {
            fail("{}: expected less than 2 GiB outside of raw tensor data, found more", path_);
        }
        copy_.append(reinterpret_cast<const char*>(file_.data() + begin), end - begin);
    }

    Field read_field(Message message, std::size_t position, std::size_t end) {
        Field field;
        field.start = position;
        const auto tag = read_varint(position, end);
        if (!tag) ends_early(message, field, 0);
        field.number = static_cast<std::uint32_t>(*tag >> 3U & 0x1fffffffU);
        field.type = static_cast<WireType>(*tag & 7U);
        if (message == Message::model) check_model_field(field);
        if (field.number == 0 || *tag > std::numeric_limits<std::uint32_t>::max()) damaged(field.start);
        field.payload = position;
        const std::uint64_t length = payload_length(message, field, end);
        if (length > end - field.payload) ends_early(message, field, length);
        field.end = field.payload + length;
        return field;
    }

    // Moves field.payload behind a length prefix where there is one.
    std::uint64_t payload_length(Message message, Field& field, std::size_t end) {
        std::size_t position = field.payload;
        switch (field.type) {
            case WireType::fixed64:
                return 8;
            case WireType::fixed32:
                return 4;
            case WireType::varint:
                if (!read_varint(position, end)) ends_early(message, field, 0);
                return position - field.payload;
            case WireType::bytes: {
                const auto length = read_varint(position, end);
                if (!length) ends_early(message, field, 0);
                field.payload = position;
                return *length;
            }
        }
        damaged(field.start);
    }

    // Nothing where the bytes end within the number or it is longer than ten bytes.
    std::optional<std::uint64_t> read_varint(std::size_t& position, std::size_t end) const {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 70 && position < end; shift += 7) {
            const auto byte = static_cast<std::uint64_t>(file_[position++]);
            value |= (byte & 0x7fU) << shift;
            if (byte < 0x80) return value;
        }
        return std::nullopt;
    }

    void check_model_field(const Field& field) const {
        const ModelField* known = model_field(field.number);
        if (known != nullptr && known->type == field.type) return;
        if (field.start == 0) not_onnx();
        if (known != nullptr) damaged(field.start);
    }

    [[noreturn]] void not_onnx() const {
        constexpr std::string_view pointer = "version https://git-lfs";
        if (file_.size() >= pointer.size() &&
            std::memcmp(file_.data(), pointer.data(), pointer.size()) == 0) {
            fail("{}: expected an ONNX model, found a Git LFS pointer to one", path_);
        }
        std::string shown;
        for (const std::byte byte : file_.first(std::min<std::size_t>(8, file_.size()))) {
            shown += fmt::format(" {:02x}", static_cast<unsigned>(byte));
        }
        fail("{}: expected an ONNX model, found another kind of file (it begins with{})", path_, shown);
    }

    // Only the outermost message can run past the end of the file; an inner one that leaves its outer one is
    // damage.
    [[noreturn]] void ends_early(Message message, const Field& field, std::uint64_t length) const {
        if (message != Message::model) damaged(field.start);
        const ModelField* known = model_field(field.number);
        const std::string name =
            known == nullptr ? fmt::format("field {}", field.number) : fmt::format("field '{}'", known->name);
        if (length == 0) {
            fail("{}: expected a whole ONNX model, found one that ends early: {} bytes, cut at byte {} in {}",
                 path_, file_.size(), field.start, name);
        }
        fail(
            "{}: expected a whole ONNX model, found one that ends early: {} at byte {} has {} bytes, {} are "
            "left",
            path_, name, field.start, length, file_.size() - field.payload);
    }

    [[noreturn]] void damaged(std::size_t position) const {
        fail("{}: expected an ONNX model, found a damaged one: no valid field at byte {}", path_, position);
    }

    std::span<const std::byte> file_;
    std::string path_;
    std::string copy_;
};

}  // namespace

std::string without_raw_data(std::span<const std::byte> file, const std::filesystem::path& path) {
    return Stripper(file, path).run();
}

RawExtent raw_extent(std::string_view record) {
    RawExtent extent;
    assert(record.size() == sizeof(extent));
    std::memcpy(&extent, record.data(), sizeof(extent));
    return extent;
}

}  // namespace qcalib
