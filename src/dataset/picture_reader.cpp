// A picture becomes a tensor thus:
//
// 1. Decoding by OpenCV, upright by the EXIF tag (see picture_decoder.h).
// 2. Channels as the input asks: 1: grey = 0.299 R + 0.587 G + 0.114 B (cv::cvtColor, rounded); 3: grey is
// repeated,
//    alpha left out (not blended); 4: alpha kept, or opaque (255). An input that leaves its channels open
//    gets 3.
// 3. --resize: cv::resize INTER_LINEAR on the decoded samples, as training code does, so 8-bit pictures are
// rounded to
//    8 bits once more: half-pixel centres, x_in = (x_out + 0.5) W_in / W_out - 0.5, borders repeated, no
//    antialiasing.
// 4. --crop: the centre, from floor((H - h) / 2) and floor((W - w) / 2).
// 5. Pixel values of 0 to 255: 16-bit samples are divided by 257 and keep their fraction. Colour order;
// scaling in
//    double, rounded to the input's type once.
#include <array>
#include <cmath>
#include <limits>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "base/error.h"
#include "base/text.h"
#include "dataset/file_reader.h"
#include "dataset/input_names.h"
#include "dataset/numeric_type.h"
#include "dataset/picture_axes.h"
#include "dataset/picture_decoder.h"

namespace qcalib {

namespace {

constexpr double largest_pixel = 255;
constexpr double steps_per_pixel_value = 257;  // of 16-bit samples: 65535 / 255

// The value of a pixel of 0 to 255 in one channel.
struct Scaling {
    double multiply = 1;
    double mean = 0;
    double std = 1;

    double operator()(double pixel) const { return (pixel * multiply - mean) / std; }
};

// A channel of the tensor: which sample of a pixel it takes, and how.
struct ChannelPlan {
    std::optional<int> sample;  // none: opaque alpha
    Scaling scaling;
};

// Where the elements of a picture go.
template <typename T>
struct Target {
    T* data = nullptr;
    std::size_t channel_step = 0;
    std::size_t row_step = 0;
    std::size_t column_step = 0;
};

// What a message about a picture names.
struct Context {
    std::string shown;  // the file
    const InputSpec& input;
};

int channels_of(const InputSpec& input, const PictureAxes& axes) {
    return static_cast<int>(input.shape[axes.channel].value_or(3));
}

// An input of any rank takes pictures as [1,3,H,W].
InputSpec with_rank(const InputSpec& input) {
    if (input.rank_known) return input;
    InputSpec result = input;
    result.shape = {1, 3, std::nullopt, std::nullopt};
    result.rank_known = true;
    return result;
}

PictureAxes checked_axes(const Context& context) {
    const auto axes = picture_axes(context.input);
    if (!axes) {
        fail("{}: {} takes no pictures: expected [N,C,H,W] or [N,H,W,C] with 1, 3 or 4 channels",
             context.shown, describe(context.input));
    }
    const auto batch = axes->batch ? context.input.shape[*axes->batch] : std::nullopt;
    if (batch && *batch != 1) {
        fail("{}: {} has a batch of {}; one picture fills a batch of 1", context.shown,
             describe(context.input), *batch);
    }
    return *axes;
}

cv::Mat resized(cv::Mat picture, const std::optional<PictureSize>& size) {
    if (!size || (picture.cols == size->width && picture.rows == size->height)) return picture;
    cv::Mat result;
    cv::resize(picture, result, cv::Size(size->width, size->height), 0, 0, cv::INTER_LINEAR);
    return result;
}

cv::Mat cropped(cv::Mat picture, const Preprocessing& preprocessing, const Context& context) {
    if (!preprocessing.crop) return picture;
    const auto [width, height] = *preprocessing.crop;
    if (width > picture.cols || height > picture.rows) {
        fail("{}: expected at least {}x{} pixels for --crop, found {}x{}{}", context.shown, width, height,
             picture.cols, picture.rows, preprocessing.resize ? " after --resize" : "; give --resize, too");
    }
    return picture(cv::Rect((picture.cols - width) / 2, (picture.rows - height) / 2, width, height));
}

// Refuses a picture that is not as large as the input; open sizes take any.
void check_size(const cv::Mat& picture, const PictureAxes& axes, const Preprocessing& preprocessing,
                const Context& context) {
    const auto height = context.input.shape[axes.height];
    const auto width = context.input.shape[axes.width];
    if (height.value_or(picture.rows) == picture.rows && width.value_or(picture.cols) == picture.cols) return;
    const auto side = [](const std::optional<std::int64_t>& size) {
        return size ? std::to_string(*size) : "?";
    };
    const bool changed = preprocessing.resize || preprocessing.crop;
    const std::string advice = height && width ? fmt::format("--resize {}x{}", *width, *height) : "--resize";
    fail("{}: expected a picture of {}x{} for {}, found {}x{}{}; give {}{}", context.shown, side(width),
         side(height), describe(context.input), picture.cols, picture.rows,
         changed ? " after --resize and --crop" : "", advice, preprocessing.crop ? " or another --crop" : "");
}

double number_for(const std::vector<double>& numbers, std::size_t channel, double absent) {
    if (numbers.empty()) return absent;
    return numbers.size() == 1 ? numbers.front() : numbers[channel];
}

void check_count(const std::vector<double>& numbers, int channels, std::string_view what,
                 const Context& context) {
    if (numbers.size() <= 1 || numbers.size() == static_cast<std::size_t>(channels)) return;
    fail("{}: {} numbers for {}, expected one or {}, the channels of {}", context.shown, numbers.size(), what,
         channels, describe(context.input));
}

// Which sample of a pixel (grey, BGR or BGRA) is the tensor's channel `c`.
std::optional<int> sample_of(int c, int samples, ColorOrder color) {
    if (c == 3) return samples == 4 ? std::optional<int>(3) : std::nullopt;
    if (samples == 1) return 0;
    return color == ColorOrder::rgb ? 2 - c : c;
}

std::vector<ChannelPlan> plan_channels(int channels, int samples, const Preprocessing& preprocessing,
                                       const Context& context) {
    check_count(preprocessing.mean, channels, "--mean", context);
    check_count(preprocessing.std, channels, "--std", context);
    const bool as_they_are = !is_floating(context.input.type) && preprocessing.default_scaling();
    std::vector<ChannelPlan> plan;
    for (int c = 0; c < channels; ++c) {
        ChannelPlan channel{sample_of(c, samples, preprocessing.color), {}};
        if (!as_they_are) {
            channel.scaling = {preprocessing.multiply,
                               number_for(preprocessing.mean, static_cast<std::size_t>(c), 0),
                               number_for(preprocessing.std, static_cast<std::size_t>(c), 1)};
        }
        plan.push_back(channel);
    }
    return plan;
}

// Refuses a scaling whose values the input's type cannot hold.
template <typename T>
void check_values(const std::vector<ChannelPlan>& plan, const Context& context) {
    for (const ChannelPlan& channel : plan) {
        const double ends[] = {channel.scaling(0), channel.scaling(largest_pixel)};
        const auto lowest = static_cast<double>(std::numeric_limits<T>::lowest());
        const auto highest = static_cast<double>(std::numeric_limits<T>::max());
        for (const double end : ends) {
            const double value = std::is_integral_v<T> ? std::nearbyint(end) : end;
            if (value >= lowest && value <= highest) continue;
            fail(
                "{}: pixels become {} to {}, which type {} of {} does not hold; choose --multiply, --mean "
                "and --std "
                "for it",
                context.shown, ends[0], ends[1], name_of(context.input.type), describe(context.input));
        }
    }
}

template <typename T>
T rounded_to(double value) {
    if constexpr (std::is_integral_v<T>) value = std::nearbyint(value);
    return static_cast<T>(value);
}

// Gives the rows of one picture to the channels; `value_of(channel, sample)` is the element.
template <typename Sample, typename T, typename ValueOf>
void fill_rows(const cv::Mat& picture, const std::vector<ChannelPlan>& plan, const Target<T>& target,
               ValueOf value_of) {
    const auto samples = static_cast<std::size_t>(picture.channels());
    const auto columns = static_cast<std::size_t>(picture.cols);
    for (int y = 0; y < picture.rows; ++y) {
        for (std::size_t c = 0; c < plan.size(); ++c) {
            T* out = target.data + c * target.channel_step + static_cast<std::size_t>(y) * target.row_step;
            if (!plan[c].sample) {
                const T opaque = rounded_to<T>(plan[c].scaling(largest_pixel));
                for (std::size_t x = 0; x < columns; ++x) out[x * target.column_step] = opaque;
                continue;
            }
            const Sample* in = picture.ptr<Sample>(y) + *plan[c].sample;
            for (std::size_t x = 0; x < columns; ++x)
                out[x * target.column_step] = value_of(c, in[x * samples]);
        }
    }
}

template <typename T>
void fill(const cv::Mat& picture, const std::vector<ChannelPlan>& plan, const Target<T>& target) {
    if (picture.depth() == CV_16U) {
        fill_rows<std::uint16_t>(picture, plan, target, [&](std::size_t channel, std::uint16_t sample) {
            return rounded_to<T>(plan[channel].scaling(sample / steps_per_pixel_value));
        });
        return;
    }
    std::array<std::array<T, 256>, 4> table = {};
    for (std::size_t c = 0; c < plan.size(); ++c) {
        for (std::size_t pixel = 0; pixel < 256; ++pixel) {
            table[c][pixel] = rounded_to<T>(plan[c].scaling(static_cast<double>(pixel)));
        }
    }
    fill_rows<std::uint8_t>(picture, plan, target,
                            [&](std::size_t channel, std::uint8_t sample) { return table[channel][sample]; });
}

TensorDescriptor describe_tensor(const cv::Mat& picture, int channels, const PictureAxes& axes,
                                 const InputSpec& input) {
    TensorDescriptor descriptor{input.type, Shape(input.shape.size(), 1), MemoryOrder::row_major};
    descriptor.shape[axes.channel] = channels;
    descriptor.shape[axes.height] = picture.rows;
    descriptor.shape[axes.width] = picture.cols;
    return descriptor;
}

template <typename T>
Target<T> target_in(Tensor& tensor, const cv::Mat& picture, int channels, const PictureAxes& axes) {
    const auto width = static_cast<std::size_t>(picture.cols);
    const auto height = static_cast<std::size_t>(picture.rows);
    const auto depth = static_cast<std::size_t>(channels);
    T* data = tensor.mutable_view().as<T>().data();
    if (axes.channels_last()) return {data, 1, width * depth, depth};
    return {data, width * height, width, 1};
}

Tensor to_tensor(const cv::Mat& picture, const PictureAxes& axes, const Preprocessing& preprocessing,
                 const Context& context) {
    const int channels = channels_of(context.input, axes);
    const auto plan = plan_channels(channels, picture.channels(), preprocessing, context);
    Tensor tensor;
    const bool numeric = with_numeric_type(context.input.type, [&]<typename T>() {
        check_values<T>(plan, context);
        tensor = Tensor(describe_tensor(picture, channels, axes, context.input));
        fill(picture, plan, target_in<T>(tensor, picture, channels, axes));
    });
    if (!numeric) {
        fail("{}: {} is of type {}, which pictures cannot fill", context.shown, describe(context.input),
             name_of(context.input.type));
    }
    return tensor;
}

}  // namespace

Tensor read_picture(const std::filesystem::path& path, const InputSpec& input,
                    const Preprocessing& preprocessing) {
    const InputSpec ranked = with_rank(input);
    const Context context{printable(path.string()), ranked};
    const PictureAxes axes = checked_axes(context);
    try {
        cv::Mat picture = decode_picture(path, channels_of(ranked, axes));
        picture = cropped(resized(std::move(picture), preprocessing.resize), preprocessing, context);
        check_size(picture, axes, preprocessing, context);
        return to_tensor(picture, axes, preprocessing, context);
    } catch (const cv::Exception& error) {
        fail("{}: OpenCV refuses the picture: {}", context.shown, printable(trim(error.err)));
    }
}

}  // namespace qcalib
