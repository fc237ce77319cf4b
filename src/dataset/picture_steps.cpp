#include "dataset/picture_steps.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "base/error.h"
#include "dataset/pillow_resize.h"

namespace qcalib {

namespace {

constexpr double steps_per_pixel_value = 257;  // of 16-bit samples: 65535 / 255
constexpr double opaque = 255;
constexpr double largest_side = 65535;

double rounded(double value, SideRounding rounding) {
    switch (rounding) {
        case SideRounding::down:
            return std::floor(value);
        case SideRounding::nearest:
            return std::nearbyint(value);
        case SideRounding::up:
            return std::ceil(value);
    }
    return value;
}

// What a step and a file are called in a message.
struct StepContext {
    std::string_view step;
    const std::string& shown;
    PictureSize size;  // of the picture before the step
};

int side_of(double value, const StepContext& context) {
    if (value > largest_side) {
        fail("{}: {} of a picture of {}x{} gives a side of {:.0f} pixels, more than {:.0f}", context.shown,
             context.step, context.size.width, context.size.height, value, largest_side);
    }
    return std::max(1, static_cast<int>(value));
}

PictureSize size_of(const cv::Mat& picture) {
    return {picture.cols, picture.rows};
}

cv::Mat resized(const cv::Mat& picture, PictureSize size, Interpolation interpolation) {
    if (size_of(picture) == size) return picture;
    if (interpolation >= Interpolation::pillow_nearest) return pillow_resize(picture, size, interpolation);
    constexpr std::array flags = {cv::INTER_NEAREST, cv::INTER_LINEAR, cv::INTER_CUBIC, cv::INTER_AREA,
                                  cv::INTER_LANCZOS4};
    cv::Mat result;
    cv::resize(picture, result, cv::Size(size.width, size.height), 0, 0,
               flags.at(static_cast<std::size_t>(interpolation)));
    return result;
}

// Both sides times `ratio`, cut off, as training code's int(side * ratio).
PictureSize times(PictureSize size, double ratio, const StepContext& context) {
    return {side_of(size.width * ratio, context), side_of(size.height * ratio, context)};
}

// One side as the step says, the other by the ratio.
PictureSize by_ratio(const ResizeStep& step, bool width_is_given, const StepContext& context) {
    const double given = width_is_given ? context.size.width : context.size.height;
    const double other = width_is_given ? context.size.height : context.size.width;
    // Each rounding as it is written where it comes from: int(N * long / short), and ceil(N * (w / h)).
    const double exact =
        step.rounding == SideRounding::up ? step.side * (other / given) : step.side * other / given;
    const int result = side_of(rounded(exact, step.rounding), context);
    return width_is_given ? PictureSize{step.side, result} : PictureSize{result, step.side};
}

PictureSize size_after(const ResizeStep& step, const StepContext& context) {
    const auto [width, height] = context.size;
    using Form = ResizeStep::Form;
    switch (step.form) {
        case Form::size:
            return step.size;
        case Form::shorter:
            return by_ratio(step, width <= height, context);
        case Form::longer:
            return by_ratio(step, width >= height, context);
        case Form::width:
            return by_ratio(step, true, context);
        case Form::height: {
            PictureSize size = by_ratio(step, false, context);
            if (step.width_at_most != 0) size.width = std::min(size.width, step.width_at_most);
            return size;
        }
        case Form::longer_at_most: {
            const int longer = std::max(width, height);
            if (longer <= step.side) return context.size;
            return times(context.size, static_cast<double>(step.side) / longer, context);
        }
        case Form::shorter_at_least: {
            const int shorter = std::min(width, height);
            if (shorter >= step.side) return context.size;
            return times(context.size, static_cast<double>(step.side) / shorter, context);
        }
    }
    return context.size;
}

int to_multiple(int side, int multiple, const StepContext& context) {
    const double count = std::max(1.0, std::nearbyint(static_cast<double>(side) / multiple));
    return side_of(count * multiple, context);
}

void note_change(Picture& picture, std::string_view step) {
    if (!picture.changed.empty()) picture.changed += " and ";
    picture.changed += step;
}

cv::Mat with_three_channels(const cv::Mat& samples) {
    cv::Mat result;
    cv::merge(std::vector<cv::Mat>(3, samples), result);
    return result;
}

double number_for(const std::vector<double>& numbers, std::size_t channel) {
    return numbers.size() == 1 ? numbers.front() : numbers[std::min(channel, numbers.size() - 1)];
}

// Adds a border of `fill`, `size` with it.
void add_border(Picture& picture, PictureSize size, const std::vector<double>& fill, Place place) {
    cv::Mat& samples = picture.samples;
    if (size_of(samples) == size) return;
    const bool differ = std::any_of(fill.begin(), fill.end(), [&](double f) { return f != fill.front(); });
    if (samples.channels() == 1 && differ) samples = with_three_channels(samples);
    cv::Scalar border;
    const double unit = samples.depth() == CV_16U ? steps_per_pixel_value : 1;
    for (int i = 0; i < samples.channels(); ++i) {
        const auto sample = static_cast<std::size_t>(i);
        const bool alpha = i == 3 && fill.size() != 4 && samples.depth() != CV_64F;
        border[i] = unit * (alpha ? opaque : number_for(fill, channel_of(sample, picture.order)));
    }
    const int left = place == Place::centre ? (size.width - samples.cols) / 2 : 0;
    const int top = place == Place::centre ? (size.height - samples.rows) / 2 : 0;
    cv::Mat result;
    cv::copyMakeBorder(samples, result, top, size.height - samples.rows - top, left,
                       size.width - samples.cols - left, cv::BORDER_CONSTANT, border);
    samples = result;
}

// The samples as double, in the values pixels have.
cv::Mat as_values(const cv::Mat& samples) {
    if (samples.depth() == CV_64F) return samples;
    cv::Mat result;
    samples.convertTo(result, CV_64F);
    if (samples.depth() != CV_16U) return result;
    const int count = result.cols * result.channels();
    for (int y = 0; y < result.rows; ++y) {
        auto* row = result.ptr<double>(y);
        std::transform(row, row + count, row, [](double value) { return value / steps_per_pixel_value; });
    }
    return result;
}

void scale_values(const PictureStep& step, Picture& picture) {
    cv::Mat samples = as_values(picture.samples).clone();
    const auto* normalize = std::get_if<NormalizeStep>(&step);
    const bool by_channel = normalize != nullptr && (normalize->mean.size() > 1 || normalize->std.size() > 1);
    if (samples.channels() == 1 && by_channel) samples = with_three_channels(samples);
    const auto channels = static_cast<std::size_t>(samples.channels());
    std::vector<Scaling> scalings;
    for (std::size_t i = 0; i < channels; ++i) {
        scalings.push_back(scaling_of(step, channel_of(i, picture.order)));
    }
    for (int y = 0; y < samples.rows; ++y) {
        auto* row = samples.ptr<double>(y);
        for (int x = 0; x < samples.cols; ++x) {
            for (const Scaling& scaling : scalings) {
                *row = scaling(*row);
                ++row;
            }
        }
    }
    picture.samples = samples;
}

cv::Mat grey_of(const cv::Mat& samples) {
    if (samples.channels() == 1) return samples;
    cv::Mat grey;
    if (samples.depth() != CV_64F) {
        cv::cvtColor(samples, grey, samples.channels() == 4 ? cv::COLOR_BGRA2GRAY : cv::COLOR_BGR2GRAY);
        return grey;
    }
    const cv::Matx13d bgr(0.114, 0.587, 0.299);
    const cv::Matx14d bgra(0.114, 0.587, 0.299, 0);
    if (samples.channels() == 4) {
        cv::transform(samples, grey, bgra);
    } else {
        cv::transform(samples, grey, bgr);
    }
    return grey;
}

struct Apply {
    Picture& picture;
    StepContext context;

    void operator()(const ResizeStep& step) const {
        PictureSize size = size_after(step, context);
        if (step.multiple > 1) {
            size = {to_multiple(size.width, step.multiple, context),
                    to_multiple(size.height, step.multiple, context)};
        }
        picture.samples = resized(picture.samples, size, step.interpolation);
    }
    void operator()(const LetterboxStep& step) const {
        const auto [width, height] = context.size;
        double ratio = std::min(static_cast<double>(step.size.height) / height,
                                static_cast<double>(step.size.width) / width);
        if (!step.enlarge) ratio = std::min(ratio, 1.0);
        const PictureSize inner{side_of(std::nearbyint(width * ratio), context),
                                side_of(std::nearbyint(height * ratio), context)};
        picture.samples = resized(picture.samples, inner, step.interpolation);
        add_border(picture, step.size, step.fill, step.place);
    }
    void operator()(const CropStep& step) const {
        const auto [width, height] = step.size;
        if (width > context.size.width || height > context.size.height) {
            fail("{}: expected at least {}x{} pixels for crop, found {}x{}{}", context.shown, width, height,
                 context.size.width, context.size.height,
                 picture.changed.empty() ? "; put a resize before it" : " after " + picture.changed);
        }
        const auto offset = [&](int left_over) {
            return static_cast<int>(rounded(left_over / 2.0, step.rounding));
        };
        picture.samples = picture.samples(cv::Rect(offset(context.size.width - width),
                                                   offset(context.size.height - height), width, height));
    }
    void operator()(const PadStep& step) const {
        const auto next = [&](int side) {
            return side_of(std::ceil(static_cast<double>(side) / step.multiple) * step.multiple, context);
        };
        const PictureSize size =
            step.size.value_or(PictureSize{next(context.size.width), next(context.size.height)});
        if (size.width < context.size.width || size.height < context.size.height) {
            fail("{}: expected a picture of {}x{} at the most for pad, found {}x{}{}", context.shown,
                 size.width, size.height, context.size.width, context.size.height,
                 picture.changed.empty() ? "" : " after " + picture.changed);
        }
        add_border(picture, size, step.fill, step.place);
    }
    void operator()(const ColorStep& step) const {
        if (step.order == ColorStep::Order::grey) {
            picture.samples = grey_of(picture.samples);
        } else {
            picture.order = step.order == ColorStep::Order::bgr ? ColorOrder::bgr : ColorOrder::rgb;
        }
    }
    void operator()(const LayoutStep&) const {}
    void operator()(const DtypeStep&) const {}
};

}  // namespace

std::size_t channel_of(std::size_t sample, ColorOrder order) {
    return sample < 3 && order == ColorOrder::rgb ? 2 - sample : sample;
}

Scaling scaling_of(const PictureStep& step, std::size_t channel) {
    if (const auto* scale = std::get_if<ScaleStep>(&step)) return {scale->multiply, 0, 1};
    const auto& normalize = std::get<NormalizeStep>(step);
    return {1, number_for(normalize.mean, channel), number_for(normalize.std, channel)};
}

bool is_on_values(const PictureStep& step) {
    return std::holds_alternative<ScaleStep>(step) || std::holds_alternative<NormalizeStep>(step);
}

bool is_on_pixels(const PictureStep& step) {
    if (const auto* color = std::get_if<ColorStep>(&step)) return color->order == ColorStep::Order::grey;
    return std::holds_alternative<ResizeStep>(step) || std::holds_alternative<LetterboxStep>(step) ||
           std::holds_alternative<CropStep>(step) || std::holds_alternative<PadStep>(step);
}

double pixel_of(std::uint16_t sample) {
    return sample / steps_per_pixel_value;
}

void apply(const PictureStep& step, Picture& picture, const std::string& shown) {
    if (is_on_values(step)) return scale_values(step, picture);
    const StepContext context{name_of(step), shown, size_of(picture.samples)};
    std::visit(
        [&]<typename T>(const T& one) {
            if constexpr (!std::is_same_v<T, ScaleStep> && !std::is_same_v<T, NormalizeStep>) {
                Apply{picture, context}(one);
            }
        },
        step);
    const bool sizes = is_on_pixels(step) && !std::holds_alternative<ColorStep>(step);
    if (sizes) note_change(picture, context.step);
}

}  // namespace qcalib
