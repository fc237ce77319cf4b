#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/sample_reader.h"

namespace qcalib {

namespace {

constexpr int largest_side = 65535;

bool all_equal_to(const std::vector<double>& values, double wanted) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return value == wanted; });
}

std::string size_text(const PictureSize& size) {
    return fmt::format("{}x{}", size.width, size.height);
}

std::string size_text(const std::optional<PictureSize>& size) {
    return size ? size_text(*size) : "none";
}

// Numbers of the channels in the shortest form that reads back as the same; one number where all are equal.
std::string channel_text(const std::vector<double>& values, double absent) {
    if (values.empty()) return fmt::format("{}", absent);
    const auto shown = [](double value) { return value == 0 ? 0.0 : value; };  // -0 is 0
    if (all_equal_to(values, values.front())) return fmt::format("{}", shown(values.front()));
    std::vector<std::string> parts;
    parts.reserve(values.size());
    for (const double value : values) parts.push_back(fmt::format("{}", shown(value)));
    return join(parts, ",");
}

std::string_view name_of(ColorOrder color) {
    return color == ColorOrder::rgb ? "rgb" : "bgr";
}

std::string value_text(const Preprocessing& preprocessing) {
    const double multiply = preprocessing.multiply;
    const std::string factor = multiply == 1.0 / 255 ? "1/255" : fmt::format("{}", multiply);
    const auto bracketed = [](const std::string& numbers) {
        return numbers.find(',') == std::string::npos ? numbers : "[" + numbers + "]";
    };
    return fmt::format("value = (pixel * {} - {}) / {}", factor,
                       bracketed(channel_text(preprocessing.mean, 0)),
                       bracketed(channel_text(preprocessing.std, 1)));
}

}  // namespace

bool Preprocessing::default_scaling() const {
    return multiply == 1.0 / 255 && all_equal_to(mean, 0) && all_equal_to(std, 1);
}

PictureSize parse_picture_size(const std::string& text, std::string_view what) {
    const std::vector<std::string> parts = split(text, 'x');
    if (parts.size() != 2)
        fail("{}: expected WIDTHxHEIGHT such as 640x480, found '{}'", what, printable(text));
    const auto side = [&](const std::string& part) {
        const std::int64_t value = parse_integer(part, what);
        if (value < 1 || value > largest_side) {
            fail("{}: expected sides of 1 to {} pixels, found {}", what, largest_side, value);
        }
        return static_cast<int>(value);
    };
    return {side(parts[0]), side(parts[1])};
}

std::string describe(const Preprocessing& preprocessing) {
    std::string text = "decode";
    if (preprocessing.resize) {
        text += fmt::format(", resize to {} (bilinear, half-pixel centres, no antialiasing)",
                            size_text(*preprocessing.resize));
    }
    if (preprocessing.crop) text += fmt::format(", crop the centre {}", size_text(*preprocessing.crop));
    text += fmt::format(", {}, {}", name_of(preprocessing.color), value_text(preprocessing));
    text += preprocessing.default_scaling() ? "; integer inputs: the pixels as they are"
                                            : "; integer inputs: rounded";
    if (preprocessing.layout == DataLayout::nhwc)
        text += "; raw and .npy data: NHWC, permuted to the model's NCHW";
    return text;
}

std::string canonical(const Preprocessing& preprocessing) {
    return fmt::format("resize={} crop={} color={} multiply={} mean={} std={} data-layout={}",
                       size_text(preprocessing.resize), size_text(preprocessing.crop),
                       name_of(preprocessing.color), preprocessing.multiply,
                       channel_text(preprocessing.mean, 0), channel_text(preprocessing.std, 1),
                       preprocessing.layout == DataLayout::nhwc ? "nhwc" : "as-model");
}

}  // namespace qcalib
