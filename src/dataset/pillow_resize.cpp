#include "dataset/pillow_resize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include <opencv2/core.hpp>

namespace qcalib {

namespace {

constexpr int fraction_bits = 22;

double sinc(double x) {
    return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

double box(double x) {
    return x > -0.5 && x <= 0.5 ? 1 : 0;
}

double triangle(double x) {
    return std::max(0.0, 1 - std::abs(x));
}

double hamming(double x) {
    return std::abs(x) >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * std::cos(std::numbers::pi * x));
}

// Keys' cubic convolution with a = -1/2.
double cubic(double x) {
    constexpr double a = -0.5;
    x = std::abs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

double lanczos(double x) {
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

// A filter and how far from 0 it reaches.
struct Filter {
    double (*value)(double x);
    double support;
};

Filter filter_of(Interpolation interpolation) {
    switch (interpolation) {
        case Interpolation::pillow_box:
            return {box, 0.5};
        case Interpolation::pillow_hamming:
            return {hamming, 1};
        case Interpolation::pillow_bicubic:
            return {cubic, 2};
        case Interpolation::pillow_lanczos:
            return {lanczos, 3};
        default:
            return {triangle, 1};
    }
}

// The input elements an output element is made of: from `first` on, with weights that add up to 1.
struct Taps {
    int first = 0;
    std::vector<double> weights;
    std::vector<std::int32_t> fixed;  // the weights times 2^fraction_bits, rounded half away from zero
};

std::vector<Taps> taps_of(int from, int to, const Filter& filter) {
    const double scale = static_cast<double>(from) / to;
    const double width = std::max(scale, 1.0);
    const double support = filter.support * width;
    std::vector<Taps> all(static_cast<std::size_t>(to));
    for (int i = 0; i < to; ++i) {
        Taps& taps = all[static_cast<std::size_t>(i)];
        const double centre = (i + 0.5) * scale;
        taps.first = std::max(0, static_cast<int>(centre - support + 0.5));
        const int end = std::min(from, static_cast<int>(centre + support + 0.5));
        double sum = 0;
        for (int x = taps.first; x < end; ++x) {
            taps.weights.push_back(filter.value((x - centre + 0.5) * (1 / width)));
            sum += taps.weights.back();
        }
        for (double& weight : taps.weights) {
            if (sum != 0) weight /= sum;
            const double fixed = weight * (1 << fraction_bits);
            taps.fixed.push_back(static_cast<std::int32_t>(fixed < 0 ? fixed - 0.5 : fixed + 0.5));
        }
    }
    return all;
}

// The sum of the samples at `in`, `in + step`, ... times the weights of an output element.
std::uint8_t weighted(const Taps& taps, const std::uint8_t* in, std::size_t step) {
    std::int32_t sum = 1 << (fraction_bits - 1);
    for (const std::int32_t weight : taps.fixed) {
        sum += *in * weight;
        in += step;
    }
    return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
}

double weighted(const Taps& taps, const double* in, std::size_t step) {
    double sum = 0;
    for (const double weight : taps.weights) {
        sum += *in * weight;
        in += step;
    }
    return sum;
}

template <typename Sample>
cv::Mat resized_columns(const cv::Mat& picture, int width, const Filter& filter) {
    if (width == picture.cols) return picture;
    const std::vector<Taps> taps = taps_of(picture.cols, width, filter);
    const auto channels = static_cast<std::size_t>(picture.channels());
    cv::Mat result(picture.rows, width, picture.type());
    for (int y = 0; y < picture.rows; ++y) {
        const auto* in = picture.ptr<Sample>(y);
        auto* out = result.ptr<Sample>(y);
        for (const Taps& one : taps) {
            const Sample* first = in + static_cast<std::size_t>(one.first) * channels;
            for (std::size_t c = 0; c < channels; ++c) *out++ = weighted(one, first + c, channels);
        }
    }
    return result;
}

template <typename Sample>
cv::Mat resized_rows(const cv::Mat& picture, int height, const Filter& filter) {
    if (height == picture.rows) return picture;
    const std::vector<Taps> taps = taps_of(picture.rows, height, filter);
    const auto samples =
        static_cast<std::size_t>(picture.cols) * static_cast<std::size_t>(picture.channels());
    const std::size_t step = picture.step1();
    cv::Mat result(height, picture.cols, picture.type());
    for (int y = 0; y < height; ++y) {
        const Taps& one = taps[static_cast<std::size_t>(y)];
        const auto* in = picture.ptr<Sample>(one.first);
        auto* out = result.ptr<Sample>(y);
        for (std::size_t i = 0; i < samples; ++i) out[i] = weighted(one, in + i, step);
    }
    return result;
}

template <typename Sample>
cv::Mat resized(const cv::Mat& picture, PictureSize size, const Filter& filter) {
    return resized_rows<Sample>(resized_columns<Sample>(picture, size.width, filter), size.height, filter);
}

// The input pixel under the centre of each output pixel. Pillow steps from centre to centre by addition, and
// where a centre lies between two pixels the rounding of the sum decides.
std::vector<int> nearest_of(int from, int to) {
    const double scale = static_cast<double>(from) / to;
    std::vector<int> all(static_cast<std::size_t>(to));
    double centre = scale * 0.5;
    for (int& index : all) {
        index = std::min(from - 1, static_cast<int>(centre));
        centre += scale;
    }
    return all;
}

cv::Mat resized_nearest(const cv::Mat& picture, PictureSize size) {
    const std::vector<int> columns = nearest_of(picture.cols, size.width);
    const std::vector<int> rows = nearest_of(picture.rows, size.height);
    const std::size_t bytes = picture.elemSize();
    cv::Mat result(size.height, size.width, picture.type());
    for (int y = 0; y < size.height; ++y) {
        const std::uint8_t* in = picture.ptr(rows[static_cast<std::size_t>(y)]);
        std::uint8_t* out = result.ptr(y);
        for (const int x : columns) out = std::copy_n(in + static_cast<std::size_t>(x) * bytes, bytes, out);
    }
    return result;
}

}  // namespace

cv::Mat pillow_resize(const cv::Mat& picture, PictureSize size, Interpolation interpolation) {
    if (interpolation == Interpolation::pillow_nearest) return resized_nearest(picture, size);
    const Filter filter = filter_of(interpolation);
    if (picture.depth() == CV_8U) return resized<std::uint8_t>(picture, size, filter);
    if (picture.depth() == CV_64F) return resized<double>(picture, size, filter);
    cv::Mat wide;
    picture.convertTo(wide, CV_64F);
    cv::Mat result;
    resized<double>(wide, size, filter).convertTo(result, picture.depth());
    return result;
}

}  // namespace qcalib
