#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "dataset/file_reader.h"
#include "dataset/input_names.h"
#include "dataset/picture_axes.h"

namespace qcalib {

namespace {

static_assert(std::endian::native == std::endian::little, "raw files hold little-endian elements");

constexpr std::int64_t most_elements = std::int64_t{1} << 58;

// A raw file and what it is to fill.
struct RawData {
    std::string shown;  // the file
    std::uint64_t bytes = 0;
    const InputSpec& input;
    DataMove move = DataMove::none;
};

// "float32 [1,640,640,3], channels last, for input 'image' [1,3,640,640]".
std::string wanted_text(const RawData& data) {
    if (data.move == DataMove::none)
        return fmt::format("{} for {}", name_of(data.input.type), describe(data.input));
    return fmt::format(
        "{} {}, {}, for {}", name_of(data.input.type), to_string(shape_before(data.input.shape, data.move)),
        data.move == DataMove::from_nhwc ? "channels last" : "channels first", describe(data.input));
}

// Elements of the dimensions that are known.
std::uint64_t known_elements(const RawData& data) {
    Shape known;
    for (const auto& dimension : data.input.shape) known.push_back(dimension.value_or(1));
    const std::int64_t elements = element_count(known);
    if (elements > most_elements) fail("{}: {} is too large for a file", data.shown, describe(data.input));
    return static_cast<std::uint64_t>(elements);
}

std::string_view types_of_size(std::uint64_t size) {
    switch (size) {
        case 1:
            return "uint8 or int8";
        case 2:
            return "float16 or int16";
        case 4:
            return "float32 or int32";
        default:
            return "float64 or int64";
    }
}

// What a file of a wrong size may be instead: " (that is ...)" or "".
std::string size_hint(const RawData& data, std::uint64_t elements) {
    const std::uint64_t size = size_of(data.input.type);
    const std::uint64_t expected = elements * size;
    std::vector<std::string> guesses;
    if (data.bytes == 0 || elements == 0) return {};
    const auto batch = data.input.shape.empty() ? std::nullopt : data.input.shape.front();
    if (batch && *batch > 1 && data.bytes * static_cast<std::uint64_t>(*batch) == expected) {
        guesses.push_back(fmt::format("one item of the batch of {}", *batch));
    }
    for (const std::uint64_t other : {1U, 2U, 4U, 8U}) {
        if (other != size && data.bytes == elements * other) {
            guesses.push_back(
                fmt::format("this shape in elements of {} bytes ({})", other, types_of_size(other)));
        }
    }
    if (data.bytes > expected && data.bytes % expected == 0) {
        guesses.push_back(fmt::format("{} samples of this shape in one file", data.bytes / expected));
    }
    return guesses.empty() ? "" : fmt::format(" (the size of {})", join(guesses, ", or of "));
}

Shape check_fixed_shape(const RawData& data) {
    const std::uint64_t elements = known_elements(data);
    if (data.bytes != elements * size_of(data.input.type)) {
        fail("{}: expected {} bytes ({}), found {} bytes{}", data.shown, elements * size_of(data.input.type),
             wanted_text(data), data.bytes, size_hint(data, elements));
    }
    Shape shape;
    for (const auto& dimension : data.input.shape) shape.push_back(*dimension);
    return shape;
}

// Binds the one dimension that is open.
Shape bind_open_dimension(const RawData& data) {
    const std::uint64_t unit = known_elements(data) * size_of(data.input.type);
    if (unit == 0 || data.bytes == 0 || data.bytes % unit != 0) {
        fail("{}: expected a multiple of {} bytes ({}), found {} bytes", data.shown, unit, wanted_text(data),
             data.bytes);
    }
    Shape shape;
    for (const auto& dimension : data.input.shape) {
        shape.push_back(dimension.value_or(static_cast<std::int64_t>(data.bytes / unit)));
    }
    return shape;
}

Shape bind_shape(const RawData& data) {
    const auto& shape = data.input.shape;
    const auto open = std::count(shape.begin(), shape.end(), std::nullopt);
    if (!data.input.rank_known || open > 1) {
        fail("{}: the shape of {} cannot be told from {} bytes; give --shape {}=...", data.shown,
             describe(data.input), data.bytes, printable(data.input.name));
    }
    return open == 0 ? check_fixed_shape(data) : bind_open_dimension(data);
}

// A bool that is neither 0 nor 1 has no defined value in C++ or ONNX.
void check_bools(std::span<const std::byte> bytes, const RawData& data) {
    const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    if (bad == bytes.end()) return;
    fail("{}: expected 0 or 1 for the bool {}, found {} at byte {}", data.shown, describe(data.input),
         std::to_integer<int>(*bad), bad - bytes.begin());
}

Shape closed_shape(const PartialShape& shape) {
    Shape sizes;
    for (const auto& size : shape) sizes.push_back(size.value());
    return sizes;
}

void check_type(const InputSpec& input, const std::string& shown) {
    if (is_numeric(input.type)) return;
    fail("{}: {} is of type {}, which raw files cannot hold", shown, describe(input), name_of(input.type));
}

}  // namespace

std::optional<FileSteps> cut_bytes(std::span<const std::byte> bytes, const std::string& shown,
                                   const InputSpec& input, const Preprocessing& preprocessing) {
    const auto& shape = input.shape;
    if (!input.rank_known || std::count(shape.begin(), shape.end(), std::nullopt) > 0) return std::nullopt;
    check_type(input, shown);
    const RawData data{shown, bytes.size(), input, data_move(input, preprocessing.layout().data)};
    const std::uint64_t step_bytes = known_elements(data) * size_of(input.type);
    if (step_bytes == 0 || bytes.size() <= step_bytes) return std::nullopt;
    if (input.type == DataType::boolean) check_bools(bytes, data);

    FileSteps steps;
    steps.stored = {input.type, closed_shape(shape_before(shape, data.move)), MemoryOrder::row_major};
    steps.move = data.move;
    steps.count = bytes.size() / step_bytes;
    const std::uint64_t whole = steps.count * step_bytes;
    if (whole < bytes.size())
        steps.left_over = fmt::format("{} of {} bytes", bytes.size() - whole, step_bytes);
    return steps;
}

Tensor fit_bytes(std::span<const std::byte> bytes, const std::string& shown, const InputSpec& input,
                 const Preprocessing& preprocessing) {
    check_type(input, shown);
    const RawData data{shown, bytes.size(), input, data_move(input, preprocessing.layout().data)};
    const Shape shape = bind_shape(data);
    if (input.type == DataType::boolean) check_bools(bytes, data);
    const Shape stored = closed_shape(shape_before({shape.begin(), shape.end()}, data.move));
    return moved_data(input.type, stored, bytes.data(), data.move);
}

std::optional<FileSteps> cut_raw_file(const std::filesystem::path& path, const InputSpec& input,
                                      const Preprocessing& preprocessing) {
    auto file = std::make_shared<const MappedFile>(path);
    const std::span<const std::byte> bytes = file->bytes();
    auto steps = cut_bytes(bytes, printable(path.string()), input, preprocessing);
    if (!steps) return std::nullopt;
    const auto elements = static_cast<std::int64_t>(steps->count * steps->stored.elements());
    steps->elements = Tensor({input.type, {elements}, MemoryOrder::row_major}, file,
                             bytes.first(steps->count * steps->stored.bytes()));
    return steps;
}

Tensor read_raw_file(const std::filesystem::path& path, const InputSpec& input,
                     const Preprocessing& preprocessing) {
    const std::string shown = printable(path.string());
    check_type(input, shown);
    return fit_bytes(MappedFile(path).bytes(), shown, input, preprocessing);
}

}  // namespace qcalib
