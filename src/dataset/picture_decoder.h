#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include <opencv2/core/mat.hpp>

namespace qcalib {

// Decodes a picture to 8 or 16 bits a sample and the channel count asked for (1: grey, 3: BGR, 4: BGRA) or,
// where the file has no colour or no alpha and more channels are asked for, to those it has. Turned upright
// by its EXIF tag, but for pictures with alpha read for 4 channels. Throws Error "<file>: cannot be decoded
// as a picture" and the like, also for a JPEG that ends early.
cv::Mat decode_picture(const std::filesystem::path& path, int channels);

// True where the JPEG in `bytes` goes on to its end-of-image marker (ITU T.81, annex B), or `bytes` hold no
// JPEG.
bool jpeg_is_whole(std::span<const std::byte> bytes);

}  // namespace qcalib
