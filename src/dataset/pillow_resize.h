#pragma once

#include <opencv2/core/mat.hpp>

#include "dataset/preprocessing.h"

namespace qcalib {

// Resizes as Pillow's Image.resize does with a pillow_* interpolation; torchvision does so on PIL images,
// and on tensors with antialias. An output pixel is the weighted mean of the input pixels under a filter as
// wide as the larger of an input and an output pixel, normalised at the borders; first the columns, then the
// rows, as up to Pillow 12 (13 takes the rows first where the height shrinks much more). 8-bit samples:
// weights of 22 fraction bits, each pass rounded to 8 bits. 16-bit samples: in double, rounded at the end.
// 64-bit floats: in double. Alpha is a channel like the others.
cv::Mat pillow_resize(const cv::Mat& picture, PictureSize size, Interpolation interpolation);

}  // namespace qcalib
