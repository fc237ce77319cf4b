// A picture becomes a tensor thus:
//
// 1. Decoding by OpenCV, upright by the EXIF tag (see picture_decoder.h).
// 2. Channels as the input asks: 1: grey = 0.299 R + 0.587 G + 0.114 B (cv::cvtColor, rounded); 3: grey is
//    repeated, alpha left out (not blended); 4: alpha kept, or opaque (255). An input that leaves its
//    channels open gets 3. Where a step makes the picture grey, an input of 1 channel is read in colour up to
//    there.
// 3. The steps in their order (picture_steps.h). Steps on pixels work on the samples as decoded, as training
//    code does, so 8-bit pictures are rounded to 8 bits by each: cv2's resize has half-pixel centres, x_in =
//    (x_out + 0.5) W_in / W_out - 0.5, and repeats borders. After a step on values they work on doubles.
// 4. Pixel values are 0 to 255: 16-bit samples are divided by 257 and keep their fraction. Steps on values
// are
//    done in double, and the result is rounded to the input's type once.
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
#include "dataset/picture_steps.h"

namespace qcalib {

namespace {

constexpr double largest_pixel = 255;

// A channel of the tensor: which sample of a pixel it takes, and how.
struct ChannelPlan {
    std::optional<int> sample;  // none: opaque alpha
    std::vector<Scaling> scalings;

    double operator()(double pixel) const {
        for (const Scaling& scaling : scalings) pixel = scaling(pixel);
        return pixel;
    }
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

PictureAxes checked_axes(const Context& context, LayoutStep::Axes layout) {
    const auto axes = picture_axes(context.input, layout);
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

// Refuses a picture that is not as large as the input; open sizes take any.
void check_size(const Picture& picture, const PictureAxes& axes, const Context& context) {
    const auto height = context.input.shape[axes.height];
    const auto width = context.input.shape[axes.width];
    const cv::Mat& samples = picture.samples;
    if (height.value_or(samples.rows) == samples.rows && width.value_or(samples.cols) == samples.cols) return;
    const auto side = [](const std::optional<std::int64_t>& size) {
        return size ? std::to_string(*size) : "?";
    };
    const bool changed = !picture.changed.empty();
    fail("{}: expected a picture of {}x{} for {}, found {}x{}{}; give {}--resize{}", context.shown,
         side(width), side(height), describe(context.input), samples.cols, samples.rows,
         changed ? " after " + picture.changed : "", changed ? "other steps, or " : "",
         height && width ? fmt::format(" {}x{}", *width, *height) : "");
}

void check_count(const std::vector<double>& numbers, int channels, std::string_view what,
                 const Context& context) {
    if (numbers.size() <= 1 || numbers.size() == static_cast<std::size_t>(channels)) return;
    fail("{}: {} numbers for {}, expected one or {}, the channels of {}", context.shown, numbers.size(), what,
         channels, describe(context.input));
}

void check_counts(std::span<const PictureStep> steps, int channels, const Context& context) {
    for (const PictureStep& step : steps) {
        if (const auto* normalize = std::get_if<NormalizeStep>(&step)) {
            check_count(normalize->mean, channels, "mean", context);
            check_count(normalize->std, channels, "std", context);
        }
    }
}

// The steps that an input of this type takes.
std::vector<PictureStep> steps_for(const Preprocessing& preprocessing, DataType type) {
    std::vector<PictureStep> steps = preprocessing.steps;
    if (!is_floating(type) && preprocessing.default_scaling()) std::erase_if(steps, is_on_values);
    std::erase_if(steps, [](const PictureStep& step) { return step == PictureStep(ScaleStep{1}); });
    return steps;
}

bool makes_grey(std::span<const PictureStep> steps) {
    return std::any_of(steps.begin(), steps.end(), [](const PictureStep& step) {
        const auto* color = std::get_if<ColorStep>(&step);
        return color != nullptr && color->order == ColorStep::Order::grey;
    });
}

// A step on values and the order of the channels it counts in.
struct ValueStep {
    PictureStep step;
    ColorOrder order = ColorOrder::rgb;
};

// Does all steps but those on values that come last, and answers these.
std::vector<ValueStep> apply_steps(std::span<const PictureStep> steps, Picture& picture,
                                   const std::string& shown) {
    std::size_t done = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (is_on_pixels(steps[i])) done = i + 1;
    }
    for (const PictureStep& step : steps.first(done)) apply(step, picture, shown);
    std::vector<ValueStep> left;
    for (const PictureStep& step : steps.subspan(done)) {
        if (is_on_values(step)) {
            left.push_back({step, picture.order});
        } else {
            apply(step, picture, shown);
        }
    }
    return left;
}

// Which sample of a pixel (grey, BGR or BGRA) is the tensor's channel `c`.
std::optional<int> sample_of(int c, int samples, ColorOrder order) {
    if (c == 3) return samples == 4 ? std::optional<int>(3) : std::nullopt;
    if (samples == 1) return 0;
    return static_cast<int>(channel_of(static_cast<std::size_t>(c), order));
}

std::vector<ChannelPlan> plan_channels(int channels, const Picture& picture,
                                       std::span<const ValueStep> steps) {
    std::vector<ChannelPlan> plan;
    for (int c = 0; c < channels; ++c) {
        ChannelPlan channel{sample_of(c, picture.samples.channels(), picture.order), {}};
        // Where the channel lies among BGR, whether the picture is grey or not.
        const std::size_t sample = channel_of(static_cast<std::size_t>(c), picture.order);
        for (const ValueStep& step : steps) {
            channel.scalings.push_back(scaling_of(step.step, channel_of(sample, step.order)));
        }
        plan.push_back(channel);
    }
    return plan;
}

// The least and the greatest value that a channel's pixels may have before its scaling.
std::pair<double, double> ends_of(const ChannelPlan& channel, const cv::Mat& samples) {
    if (samples.depth() != CV_64F || !channel.sample) return {0, largest_pixel};
    cv::Mat one;
    cv::extractChannel(samples, one, *channel.sample);
    double least = 0;
    double greatest = 0;
    cv::minMaxLoc(one, &least, &greatest);
    return {least, greatest};
}

double whole(double value, const DtypeStep& dtype) {
    return dtype.integers == DtypeStep::Integers::truncate ? std::trunc(value) : std::nearbyint(value);
}

// The ends of a type as doubles; those that double cannot hold are the next ones inside.
template <typename T>
std::pair<double, double> ends_of_type() {
    const auto lowest = static_cast<double>(std::numeric_limits<T>::lowest());
    auto highest = static_cast<double>(std::numeric_limits<T>::max());
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) highest = std::nextafter(highest, 0);
    return {lowest, highest};
}

// Refuses a scaling whose values the input's type cannot hold.
template <typename T>
void check_values(const std::vector<ChannelPlan>& plan, const cv::Mat& samples, const DtypeStep& dtype,
                  const Context& context) {
    if (dtype.clamp) return;
    for (const ChannelPlan& channel : plan) {
        const auto [least, greatest] = ends_of(channel, samples);
        const double ends[] = {channel(least), channel(greatest)};
        const auto [lowest, highest] = ends_of_type<T>();
        for (const double end : ends) {
            const double value = std::is_integral_v<T> ? whole(end, dtype) : end;
            if (value >= lowest && value <= highest) continue;
            fail(
                "{}: pixels become {} to {}, which type {} of {} does not hold; choose other steps on values",
                context.shown, ends[0], ends[1], name_of(context.input.type), describe(context.input));
        }
    }
}

template <typename T>
T rounded_to(double value, const DtypeStep& dtype) {
    if constexpr (std::is_integral_v<T>) value = whole(value, dtype);
    if (dtype.clamp) {
        const auto [lowest, highest] = ends_of_type<T>();
        value = std::clamp(value, lowest, highest);
    }
    return static_cast<T>(value);
}

// Gives the rows of one picture to the channels; `value_of(channel, sample)` is the element.
template <typename Sample, typename T, typename ValueOf>
void fill_rows(const cv::Mat& picture, const std::vector<ChannelPlan>& plan, const DtypeStep& dtype,
               const Target<T>& target, ValueOf value_of) {
    const auto samples = static_cast<std::size_t>(picture.channels());
    const auto columns = static_cast<std::size_t>(picture.cols);
    for (int y = 0; y < picture.rows; ++y) {
        for (std::size_t c = 0; c < plan.size(); ++c) {
            T* out = target.data + c * target.channel_step + static_cast<std::size_t>(y) * target.row_step;
            if (!plan[c].sample) {
                const T opaque = rounded_to<T>(plan[c](largest_pixel), dtype);
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
void fill(const cv::Mat& picture, const std::vector<ChannelPlan>& plan, const DtypeStep& dtype,
          const Target<T>& target) {
    if (picture.depth() == CV_16U) {
        fill_rows<std::uint16_t>(picture, plan, dtype, target,
                                 [&](std::size_t channel, std::uint16_t sample) {
                                     return rounded_to<T>(plan[channel](pixel_of(sample)), dtype);
                                 });
        return;
    }
    if (picture.depth() == CV_64F) {
        fill_rows<double>(picture, plan, dtype, target, [&](std::size_t channel, double sample) {
            return rounded_to<T>(plan[channel](sample), dtype);
        });
        return;
    }
    std::array<std::array<T, 256>, 4> table = {};
    for (std::size_t c = 0; c < plan.size(); ++c) {
        for (std::size_t pixel = 0; pixel < 256; ++pixel) {
            table[c][pixel] = rounded_to<T>(plan[c](static_cast<double>(pixel)), dtype);
        }
    }
    fill_rows<std::uint8_t>(picture, plan, dtype, target,
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

Tensor to_tensor(const Picture& picture, std::span<const ValueStep> steps, const PictureAxes& axes,
                 const DtypeStep& dtype, const Context& context) {
    const int channels = channels_of(context.input, axes);
    const cv::Mat& samples = picture.samples;
    const auto plan = plan_channels(channels, picture, steps);
    Tensor tensor;
    const bool numeric = with_numeric_type(context.input.type, [&]<typename T>() {
        check_values<T>(plan, samples, dtype, context);
        tensor = Tensor(describe_tensor(samples, channels, axes, context.input));
        fill(samples, plan, dtype, target_in<T>(tensor, samples, channels, axes));
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
    const PictureAxes axes = checked_axes(context, preprocessing.layout().pictures);
    const int channels = channels_of(ranked, axes);
    const std::vector<PictureStep> steps = steps_for(preprocessing, input.type);
    check_counts(steps, channels, context);
    try {
        Picture picture{decode_picture(path, channels == 1 && makes_grey(steps) ? 3 : channels), {}, {}};
        const std::vector<ValueStep> left = apply_steps(steps, picture, context.shown);
        check_size(picture, axes, context);
        return to_tensor(picture, left, axes, preprocessing.dtype(), context);
    } catch (const cv::Exception& error) {
        fail("{}: OpenCV refuses the picture: {}", context.shown, printable(trim(error.err)));
    }
}

}  // namespace qcalib
