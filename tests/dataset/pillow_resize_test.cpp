#include "dataset/pillow_resize.h"

#include <doctest/doctest.h>
#include <opencv2/core.hpp>

using namespace qcalib;

namespace {

using Numbers = std::vector<int>;

cv::Mat picture(int rows, int columns, const std::vector<std::uint8_t>& samples) {
    return cv::Mat(rows, columns, CV_8UC1, const_cast<std::uint8_t*>(samples.data())).clone();
}

Numbers resized(const cv::Mat& source, PictureSize size, Interpolation interpolation) {
    const cv::Mat result = pillow_resize(source, size, interpolation);
    CHECK(result.cols == size.width);
    CHECK(result.rows == size.height);
    Numbers numbers;
    for (int y = 0; y < result.rows; ++y) {
        for (int x = 0; x < result.cols; ++x) numbers.push_back(result.at<std::uint8_t>(y, x));
    }
    return numbers;
}

const std::vector<std::uint8_t> seven = {0, 50, 255, 7, 120, 33, 200};

}  // namespace

// The numbers expected here and below are what Pillow 12 makes of these pixels.
TEST_CASE("A row is made shorter with a filter as wide as an output pixel") {
    const cv::Mat row = picture(1, 7, seven);
    const PictureSize size{3, 1};
    CHECK(resized(row, size, Interpolation::pillow_nearest) == Numbers{50, 7, 33});
    CHECK(resized(row, size, Interpolation::pillow_box) == Numbers{25, 127, 117});
    CHECK(resized(row, size, Interpolation::pillow_bilinear) == Numbers{76, 96, 111});
    CHECK(resized(row, size, Interpolation::pillow_hamming) == Numbers{57, 93, 108});
    CHECK(resized(row, size, Interpolation::pillow_bicubic) == Numbers{72, 104, 108});
    CHECK(resized(row, size, Interpolation::pillow_lanczos) == Numbers{76, 105, 104});
}

TEST_CASE("A row is made longer with a filter as wide as an input pixel, clipped to 0 and 255") {
    const cv::Mat row = picture(1, 7, seven);
    const PictureSize size{11, 1};
    CHECK(resized(row, size, Interpolation::pillow_nearest) ==
          Numbers{0, 0, 50, 255, 255, 7, 120, 120, 33, 200, 200});
    CHECK(resized(row, size, Interpolation::pillow_box) ==
          Numbers{0, 0, 50, 255, 255, 7, 120, 120, 33, 200, 200});
    CHECK(resized(row, size, Interpolation::pillow_bilinear) ==
          Numbers{0, 23, 69, 199, 165, 7, 79, 96, 41, 124, 200});
    CHECK(resized(row, size, Interpolation::pillow_hamming) ==
          Numbers{0, 20, 52, 235, 202, 7, 96, 112, 34, 134, 200});
    CHECK(resized(row, size, Interpolation::pillow_bicubic) ==
          Numbers{0, 10, 65, 228, 183, 7, 78, 104, 32, 126, 212});
    CHECK(resized(row, size, Interpolation::pillow_lanczos) ==
          Numbers{1, 0, 72, 243, 183, 7, 72, 108, 30, 123, 219});
}

TEST_CASE("Columns come before rows, and each pass is rounded to 8 bits") {
    const cv::Mat source = picture(4, 3, {0, 255, 10, 90, 3, 200, 17, 81, 60, 255, 0, 128});
    CHECK(resized(source, {2, 3}, Interpolation::pillow_bilinear) == Numbers{84, 109, 49, 97, 124, 76});
    CHECK(resized(source, {2, 3}, Interpolation::pillow_bicubic) == Numbers{88, 115, 40, 100, 130, 69});
    CHECK(resized(source, {4, 5}, Interpolation::pillow_bilinear) ==
          Numbers{0, 159, 163, 10, 63, 73, 103, 143, 54, 47, 75, 130, 88, 69, 66, 80, 255, 96, 48, 128});
    CHECK(resized(source, {4, 5}, Interpolation::pillow_bicubic) ==
          Numbers{0, 184, 186, 0, 74, 63, 101, 162, 45, 29, 70, 143, 76, 69, 65, 70, 255, 87, 28, 138});
}

TEST_CASE("Each channel is resized alone") {
    const cv::Mat row = picture(1, 7, seven);
    cv::Mat both;
    cv::merge(std::vector<cv::Mat>{row, 255 - row}, both);
    const cv::Mat result = pillow_resize(both, {3, 1}, Interpolation::pillow_bilinear);
    cv::Mat first;
    cv::extractChannel(result, first, 0);
    CHECK(resized(first, {3, 1}, Interpolation::pillow_bilinear) == Numbers{76, 96, 111});
    CHECK(result.at<cv::Vec2b>(0, 1)[1] == 255 - 96);
}

TEST_CASE("Doubles are not rounded, and 16 bits are rounded once") {
    cv::Mat row;
    picture(1, 7, seven).convertTo(row, CV_64F, 1.0 / 255);
    const cv::Mat result = pillow_resize(row, {3, 1}, Interpolation::pillow_bicubic);
    CHECK(result.at<double>(0, 0) == doctest::Approx(0.2841872274875641).epsilon(1e-6));
    CHECK(result.at<double>(0, 1) == doctest::Approx(0.4080634117126465).epsilon(1e-6));
    CHECK(result.at<double>(0, 2) == doctest::Approx(0.42484188079833984).epsilon(1e-6));
    cv::Mat deep;
    row.convertTo(deep, CV_16U, 65535);
    const cv::Mat wide = pillow_resize(deep, {3, 1}, Interpolation::pillow_bicubic);
    CHECK(wide.at<std::uint16_t>(0, 1) == 26742);  // 0.40806341 * 65535 = 26742.4
}
