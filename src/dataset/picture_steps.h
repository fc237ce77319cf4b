#pragma once

#include <string>
#include <vector>

#include <opencv2/core/mat.hpp>

#include "dataset/preprocessing.h"

namespace qcalib {

// A picture on its way through the steps. Its samples lie as OpenCV has them: grey, BGR or BGRA, of 8 or 16
// bits, or of type double once a step on values was followed by one on pixels.
struct Picture {
    cv::Mat samples;
    ColorOrder order = ColorOrder::rgb;  // of the channels as steps count them
    std::string changed;                 // "resize and crop": the steps that chose its size
};

// The value of a pixel in one channel after a step on values.
struct Scaling {
    double multiply = 1;
    double mean = 0;
    double std = 1;

    double operator()(double value) const { return (value * multiply - mean) / std; }
};

// Which of the numbers a step gives for channels stands for sample `sample` (of BGR or BGRA).
std::size_t channel_of(std::size_t sample, ColorOrder order);
// What a ScaleStep or NormalizeStep does to channel `channel`.
Scaling scaling_of(const PictureStep& step, std::size_t channel);
bool is_on_values(const PictureStep& step);
// Steps whose result depends on where pixels lie or on several channels at once.
bool is_on_pixels(const PictureStep& step);

// A pixel's value of 0 to 255 for a 16-bit sample.
double pixel_of(std::uint16_t sample);

// Does one step; `shown` is the file for messages. LayoutStep and DtypeStep do nothing here.
void apply(const PictureStep& step, Picture& picture, const std::string& shown);

}  // namespace qcalib
