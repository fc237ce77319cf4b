#include "target/circle_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace qcalib {

namespace {

constexpr std::int64_t most_uint8 = 255;
constexpr std::int64_t most_int16 = 32767;

std::int64_t nearest_code(double value) {
    return static_cast<std::int64_t>(std::round(value));
}

Encoding uint8_encoding(double min, double max, double least_step) {
    const double low = std::min(0.0, min);
    const double high = std::max(0.0, max);
    double scale = (high - low) / most_uint8;
    std::int64_t zero_point = 0;
    if (min >= 0) {
        scale = max / most_uint8;
    } else if (max < 0) {
        zero_point = most_uint8;
        scale = -min / most_uint8;
    } else if (scale > 0) {
        zero_point = nearest_code(-low / scale);
    }
    if (scale < least_step) {
        scale = least_step;
        zero_point = nearest_code(-low / least_step);
    }
    return circle_encoding_of(scale, zero_point, 8);
}

Encoding int16_encoding(double min, double max, double least_step) {
    const double scale = std::max(std::max(0.0, -min) / most_int16, std::max(0.0, max) / most_int16);
    return circle_encoding_of(std::max(scale, least_step), 0, 16);
}

struct CodeLimits {
    std::int64_t least = 0;
    std::int64_t most = 0;
};

CodeLimits limits_of(int bits) {
    switch (bits) {
        case 8:
            return {0, most_uint8};
        case 16:
            return {-most_int16, most_int16};
        case circle_bias_bits_8:
            return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
        default:
            return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
    }
}

// Rounded half away from zero, inside the limits; NaN is 0.
std::int64_t code_of(double value, std::int64_t zero_point, CodeLimits limits) {
    if (std::isnan(value)) return std::clamp<std::int64_t>(0, limits.least, limits.most);
    const double moved = std::round(value) + static_cast<double>(zero_point);
    if (moved >= static_cast<double>(limits.most)) return limits.most;
    if (moved <= static_cast<double>(limits.least)) return limits.least;
    return static_cast<std::int64_t>(moved);
}

// One channel's way from values to codes, in the float32 arithmetic of luci.
class ChannelCodes {
  public:
    ChannelCodes(const Encoding& encoding, CircleCoding coding)
        : coding_(coding),
          asymmetric_(encoding.bits == 8),
          limits_(limits_of(encoding.bits)),
          zero_point_(circle_zero_point(encoding)) {
        const auto scale = static_cast<float>(encoding.scale);
        inverse_ = scale == 0 ? 0.0F : 1.0F / scale;
        least_ = static_cast<float>(encoding.min);
        most_ = static_cast<float>(encoding.max);
    }

    std::int64_t operator()(float value) const {
        if (coding_ == CircleCoding::sign)
            return std::clamp(zero_point_ + (value >= 0 ? 1 : -1), limits_.least, limits_.most);
        if (coding_ == CircleCoding::given)
            return code_of(static_cast<double>(value) * static_cast<double>(inverse_), zero_point_, limits_);
        if (coding_ == CircleCoding::own && asymmetric_)
            return code_of((std::clamp(value, least_, most_) - least_) * inverse_, 0, limits_);
        return code_of(value * inverse_, zero_point_, limits_);
    }

  private:
    CircleCoding coding_;
    bool asymmetric_;
    CodeLimits limits_;
    std::int64_t zero_point_;
    float inverse_ = 0;
    float least_ = 0;
    float most_ = 0;
};

DataType code_type(int bits) {
    switch (bits) {
        case 8:
            return DataType::uint8;
        case 16:
            return DataType::int16;
        case circle_bias_bits_8:
            return DataType::int32;
        default:
            return DataType::int64;
    }
}

// How often the channel changes along the elements of a tensor: every `inner` elements, after `channels`
// anew.
struct ChannelPlaces {
    std::size_t channels = 1;
    std::size_t inner = 1;

    std::size_t channel(std::size_t element) const { return element / inner % channels; }
};

ChannelPlaces places_of(const Shape& shape, const TensorEncoding& encoding) {
    if (encoding.encodings.size() <= 1) return {1, std::numeric_limits<std::size_t>::max()};
    const int rank = static_cast<int>(shape.size());
    const int given = encoding.axis.value_or(rank - 1);
    const int axis = given < 0 ? given + rank : given;
    std::size_t inner = 1;
    for (int i = axis + 1; i < rank; ++i)
        inner *= static_cast<std::size_t>(shape[static_cast<std::size_t>(i)]);
    return {encoding.encodings.size(), std::max<std::size_t>(inner, 1)};
}

template <typename Code>
void fill_codes(std::span<const float> values, const TensorEncoding& encoding, CircleCoding coding,
                const ChannelPlaces& places, std::span<Code> codes) {
    std::vector<ChannelCodes> channels;
    for (const Encoding& one : encoding.encodings) channels.emplace_back(one, coding);
    for (std::size_t i = 0; i < values.size(); ++i)
        codes[i] = static_cast<Code>(channels[places.channel(i)](values[i]));
}

template <typename Code>
void fill_values(std::span<const Code> codes, const TensorEncoding& encoding, const ChannelPlaces& places,
                 std::span<float> values) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const Encoding& one = encoding.encodings[places.channel(i)];
        const auto steps = static_cast<double>(static_cast<std::int64_t>(codes[i]) - circle_zero_point(one));
        values[i] = static_cast<float>(steps) * static_cast<float>(one.scale);
    }
}

}  // namespace

Encoding circle_encoding(Range range, int bits, const CircleRules& rules) {
    const auto min = static_cast<double>(static_cast<float>(range.min));
    const auto max = static_cast<double>(static_cast<float>(range.max));
    return bits == 8 ? uint8_encoding(min, max, rules.least_step_8)
                     : int16_encoding(min, max, rules.least_step_16);
}

Encoding circle_encoding_of(double scale, std::int64_t zero_point, int bits) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    Encoding encoding;
    encoding.bits = bits;
    encoding.scale = scale;
    encoding.symmetric = bits != 8;
    encoding.offset = bits == 8                     ? -zero_point
                      : bits == circle_bias_bits_16 ? -most
                                                    : -(std::int64_t{1} << (bits - 1)) - zero_point;
    encoding.min = static_cast<double>(encoding.offset) * scale;
    encoding.max = bits == 8 ? static_cast<double>(most_uint8 - zero_point) * scale
                             : encoding.min + (std::exp2(bits) - 1) * scale;
    return encoding;
}

Encoding circle_sign_encoding(float value, int bits) {
    const bool below = bits == 8 && value < 0;
    return circle_encoding_of(std::abs(value), below ? 1 : 0, bits);
}

std::int64_t circle_zero_point(const Encoding& encoding) {
    if (encoding.bits == 8) return -encoding.offset;
    if (encoding.bits == circle_bias_bits_16) return 0;
    return -encoding.offset - (std::int64_t{1} << (encoding.bits - 1));
}

Tensor circle_codes(const Tensor& value, const TensorEncoding& encoding, CircleCoding coding) {
    Tensor codes(TensorDescriptor{code_type(encoding.width()), value.shape(), MemoryOrder::row_major});
    const ChannelPlaces places = places_of(value.shape(), encoding);
    std::vector<float> values(value.view().elements());  // the file's may lie unaligned
    if (!values.empty()) std::memcpy(values.data(), value.data(), values.size() * sizeof(float));
    MutableTensorView target = codes.mutable_view();
    switch (codes.type()) {
        case DataType::uint8:
            fill_codes(values, encoding, coding, places, target.as<std::uint8_t>());
            break;
        case DataType::int16:
            fill_codes(values, encoding, coding, places, target.as<std::int16_t>());
            break;
        case DataType::int32:
            fill_codes(values, encoding, coding, places, target.as<std::int32_t>());
            break;
        default:
            fill_codes(values, encoding, coding, places, target.as<std::int64_t>());
    }
    return codes;
}

Tensor circle_values(const Tensor& codes, const TensorEncoding& encoding) {
    Tensor values(TensorDescriptor{DataType::float32, codes.shape(), MemoryOrder::row_major});
    const ChannelPlaces places = places_of(codes.shape(), encoding);
    const auto target = values.mutable_view().as<float>();
    switch (codes.type()) {
        case DataType::uint8:
            fill_values(codes.view().as<std::uint8_t>(), encoding, places, target);
            break;
        case DataType::int16:
            fill_values(codes.view().as<std::int16_t>(), encoding, places, target);
            break;
        case DataType::int32:
            fill_values(codes.view().as<std::int32_t>(), encoding, places, target);
            break;
        default:
            fill_values(codes.view().as<std::int64_t>(), encoding, places, target);
    }
    return values;
}

}  // namespace qcalib
