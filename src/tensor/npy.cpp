#include "tensor/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace qcalib {

namespace {

// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t version_bytes = 2;
constexpr std::size_t data_alignment = 64;

struct TypeCode {
    std::string_view code;  // without the byte order
    DataType type;
};

constexpr std::array type_codes = {
    TypeCode{"f4", DataType::float32}, TypeCode{"f8", DataType::float64}, TypeCode{"f2", DataType::float16},
    TypeCode{"i1", DataType::int8},    TypeCode{"u1", DataType::uint8},   TypeCode{"i2", DataType::int16},
    TypeCode{"u2", DataType::uint16},  TypeCode{"i4", DataType::int32},   TypeCode{"u4", DataType::uint32},
    TypeCode{"i8", DataType::int64},   TypeCode{"u8", DataType::uint64},  TypeCode{"b1", DataType::boolean},
    TypeCode{"?", DataType::boolean},
};

// What the header's dictionary says.
struct Header {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
};

// Reads the header, a Python dictionary literal with the keys descr, fortran_order and shape.
class HeaderParser {
  public:
    HeaderParser(std::string_view text, std::string_view path) : rest_(text), path_(path) {}

    Header parse() {
        Header header;
        expect('{');
        while (!take('}')) {
            const std::string key = parse_string("a key");
            expect(':');
            if (key == "descr") {
                header.descr = parse_descr();
            } else if (key == "fortran_order") {
                header.fortran_order = parse_bool();
            } else if (key == "shape") {
                header.shape = parse_shape();
            } else {
                fail("{}: .npy header: expected the keys descr, fortran_order and shape, found '{}'", path_,
                     printable(key));
            }
            if (!take(',')) {
                expect('}');
                break;
            }
        }
        skip_blanks();
        if (!rest_.empty()) unexpected("nothing after the dictionary");
        return header;
    }

  private:
    void skip_blanks() {
        while (!rest_.empty() && std::string_view(" \t\r\n\f").find(rest_[0]) != std::string_view::npos) {
            rest_.remove_prefix(1);
        }
    }

    bool take(char character) {
        skip_blanks();
        if (rest_.empty() || rest_[0] != character) return false;
        rest_.remove_prefix(1);
        return true;
    }

    void expect(char character) {
        if (!take(character)) unexpected(fmt::format("'{}'", character));
    }

    [[noreturn]] void unexpected(std::string_view expected) const {
        fail("{}: .npy header: expected {}, found {}", path_, expected,
             rest_.empty() ? "its end" : fmt::format("'{}'", printable(rest_.substr(0, 20))));
    }

    std::string parse_string(std::string_view what) {
        skip_blanks();
        if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) unexpected(what);
        const std::size_t end = rest_.find(rest_[0], 1);
        if (end == std::string_view::npos) unexpected(what);
        std::string text(rest_.substr(1, end - 1));
        rest_.remove_prefix(end + 1);
        return text;
    }

    std::string parse_descr() {
        skip_blanks();
        if (rest_.starts_with('[') || rest_.starts_with('(')) {
            fail("{}: expected a .npy file of numbers, found records of several fields", path_);
        }
        return parse_string("a type such as '<f4'");
    }

    bool parse_bool() {
        skip_blanks();
        for (const bool value : {false, true}) {
            const std::string_view word = value ? "True" : "False";
            if (!rest_.starts_with(word)) continue;
            rest_.remove_prefix(word.size());
            return value;
        }
        unexpected("True or False");
    }

    Shape parse_shape() {
        Shape shape;
        expect('(');
        while (!take(')')) {
            skip_blanks();
            std::int64_t dimension = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dimension);
            if (error != std::errc() || dimension < 0) unexpected("a dimension");
            rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
            take('L');  // numpy under Python 2
            shape.push_back(dimension);
            if (!take(',')) {
                expect(')');
                break;
            }
        }
        return shape;
    }

    std::string_view rest_;
    std::string_view path_;
};

DataType type_of(const std::string& descr, std::string_view path) {
    std::string_view code = descr;
    const bool has_order = !code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos;
    const char order = has_order ? code[0] : '=';
    if (has_order) code.remove_prefix(1);
    const auto known = std::find_if(type_codes.begin(), type_codes.end(),
                                    [&](const TypeCode& row) { return row.code == code; });
    if (known == type_codes.end()) {
        fail("{}: expected a .npy file of numbers, found type '{}'", path, printable(descr));
    }
    if (order == '>' && size_of(known->type) > 1) {
        fail("{}: expected little-endian numbers, found type '{}'", path, descr);
    }
    return known->type;
}

// Where the header's text and the data begin.
struct Layout {
    std::size_t header = 0;
    std::size_t data = 0;
};

Layout layout_of(std::string_view bytes, std::string_view path) {
    const std::size_t version_end = magic.size() + version_bytes;
    if (bytes.size() < version_end || !bytes.starts_with(magic)) {
        fail("{}: expected a .npy file, found {}", path,
             bytes.empty() ? "an empty one" : "another kind of file");
    }
    const int version = static_cast<unsigned char>(bytes[magic.size()]);
    if (version < 1 || version > 3) fail("{}: expected .npy format 1 to 3, found {}", path, version);
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    if (bytes.size() < version_end + length_bytes)
        fail("{}: expected a .npy header, found the file's end", path);
    std::size_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) {
        length |= std::size_t{static_cast<unsigned char>(bytes[version_end + i])} << (8 * i);
    }
    const std::size_t header = version_end + length_bytes;
    if (length > bytes.size() - header) {
        fail("{}: expected a .npy header of {} bytes, found {}", path, length, bytes.size() - header);
    }
    return {header, header + length};
}

TensorDescriptor descriptor_of(const Header& header, std::string_view path) {
    if (!header.descr) fail("{}: .npy header: expected a type, found no descr", path);
    if (!header.fortran_order) fail("{}: .npy header: expected an order, found no fortran_order", path);
    if (!header.shape) fail("{}: .npy header: expected a shape, found none", path);
    if (*header.fortran_order) {
        fail(
            "{}: expected an array in C order, found fortran order (numpy.ascontiguousarray makes it C "
            "order)",
            path);
    }
    TensorDescriptor descriptor{type_of(*header.descr, path), *header.shape, MemoryOrder::row_major};
    try {
        static_cast<void>(descriptor.elements());
    } catch (const Error& error) {
        fail("{}: {}", path, error.what());
    }
    return descriptor;
}

std::string_view code_of(DataType type, std::string_view path) {
    for (const TypeCode& row : type_codes) {
        if (row.type == type) return row.code;
    }
    fail("{}: .npy has no type for {}", path, name_of(type));
}

std::string header_text(const TensorDescriptor& descriptor, std::string_view path) {
    const std::string_view code = code_of(descriptor.type, path);
    std::string dimensions;
    for (const std::int64_t dimension : descriptor.shape) {
        dimensions += fmt::format("{}{},", dimensions.empty() ? "" : " ", dimension);
    }
    if (descriptor.rank() > 1) dimensions.pop_back();
    std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   size_of(descriptor.type) == 1 ? '|' : '<', code, dimensions);
    const std::size_t before = magic.size() + version_bytes + 2;
    text.append(data_alignment - 1 - (before + text.size()) % data_alignment, ' ');
    text += '\n';
    if (text.size() > 0xffff) fail("{}: shape {} is too long for .npy", path, to_string(descriptor.shape));
    return text;
}

}  // namespace

NpyHeader read_npy_header(std::span<const std::byte> start, std::string_view shown) {
    const std::string_view bytes(reinterpret_cast<const char*>(start.data()), start.size());
    const Layout layout = layout_of(bytes, shown);
    const std::string_view text = bytes.substr(layout.header, layout.data - layout.header);
    return {descriptor_of(HeaderParser(text, shown).parse(), shown), layout.data};
}

void mend_bools(std::span<std::byte> bytes) {
    std::transform(bytes.begin(), bytes.end(), bytes.begin(),
                   [](std::byte value) { return static_cast<std::byte>(value != std::byte{0}); });
}

Tensor read_npy(const std::filesystem::path& path) {
    const MappedFile file(path);
    const std::string shown = printable(path.string());
    NpyHeader header = read_npy_header(file.bytes(), shown);
    const TensorDescriptor& descriptor = header.descriptor;
    const std::span<const std::byte> data = file.bytes().subspan(header.data);
    const std::size_t size = size_of(descriptor.type);
    if (data.size() % size != 0 || data.size() / size != descriptor.elements()) {
        fail("{}: expected {} elements of {} bytes for {} {}, found {} bytes", shown, descriptor.elements(),
             size, name_of(descriptor.type), to_string(descriptor.shape), data.size());
    }
    Tensor tensor(std::move(header.descriptor));
    const auto target = tensor.mutable_view().bytes();
    std::copy(data.begin(), data.end(), target.begin());
    if (tensor.type() == DataType::boolean) mend_bools(target);
    return tensor;
}

std::string npy_bytes(TensorView tensor, std::string_view shown) {
    if (tensor.descriptor->order != MemoryOrder::row_major &&
        !same_in_both_orders(tensor.descriptor->shape)) {
        Tensor row_major(TensorDescriptor{tensor.descriptor->type, tensor.descriptor->shape});
        copy_to_order(tensor, row_major.mutable_view());
        return npy_bytes(row_major.view(), shown);
    }
    const std::string header = header_text(*tensor.descriptor, shown);
    std::string bytes{magic};
    bytes += {'\1', '\0', static_cast<char>(header.size() & 0xffU), static_cast<char>(header.size() >> 8U)};
    bytes += header;
    bytes.append(reinterpret_cast<const char*>(tensor.data), tensor.bytes().size());
    return bytes;
}

void write_npy(const std::filesystem::path& path, TensorView tensor) {
    if (tensor.descriptor->order != MemoryOrder::row_major &&
        !same_in_both_orders(tensor.descriptor->shape)) {
        Tensor row_major(TensorDescriptor{tensor.descriptor->type, tensor.descriptor->shape});
        copy_to_order(tensor, row_major.mutable_view());
        return write_npy(path, row_major.view());
    }
    const std::string header = header_text(*tensor.descriptor, printable(path.string()));
    OutputFile file(path);
    file.write(magic);
    file.write(std::string{'\1', '\0', static_cast<char>(header.size() & 0xffU),
                           static_cast<char>(header.size() >> 8U)});
    file.write(header);
    file.write(tensor.bytes());
    file.commit();
}

}  // namespace qcalib
