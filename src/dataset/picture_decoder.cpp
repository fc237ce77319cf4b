#include "dataset/picture_decoder.h"

#include <algorithm>
#include <limits>

#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace qcalib {

namespace {

// The engine's workers each decode a picture of their own, so OpenCV starts no threads. It knows one setting
// for the whole process; nothing else of the program uses OpenCV.
void use_no_threads_of_opencv() {
    static const bool done = (cv::setNumThreads(1), true);
    (void)done;
}

[[noreturn]] void fail_undecodable(const std::string& shown, std::string_view reason) {
    fail("{}: cannot be decoded as a picture{}", shown, reason);
}

// IMREAD_ANYCOLOR | IMREAD_ANYDEPTH: as stored, without alpha, upright; IMREAD_UNCHANGED: with alpha, as it
// lies.
cv::Mat decode(const MappedFile& file, int flags, const std::string& shown) {
    const std::span<const std::byte> bytes = file.bytes();
    if (bytes.empty()) fail_undecodable(shown, ": it is empty");
    if (bytes.size() > std::numeric_limits<int>::max()) fail_undecodable(shown, ": it is too large");
    // OpenCV takes no pointer to const, but only reads.
    const cv::Mat buffer(1, static_cast<int>(bytes.size()), CV_8U, const_cast<std::byte*>(bytes.data()));
    try {
        return cv::imdecode(buffer, flags);
    } catch (const cv::Exception& error) {
        fail_undecodable(shown, ": " + printable(trim(error.err)));
    }
}

void check_samples(const cv::Mat& picture, const std::string& shown) {
    if (picture.empty()) fail_undecodable(shown, "");
    if (picture.depth() != CV_8U && picture.depth() != CV_16U) {
        fail("{}: expected a picture of 8 or 16 bits a sample, found {}", shown,
             cv::typeToString(picture.type()));
    }
    const int channels = picture.channels();
    if (channels != 1 && channels != 3 && channels != 4) {
        fail("{}: expected a picture of 1, 3 or 4 channels, found {}", shown, channels);
    }
}

// Where a marker segment ends: after the two length bytes and what they count; past the end where it is cut
// off.
std::size_t segment_end(std::span<const std::byte> bytes, std::size_t length_at) {
    if (length_at + 2 > bytes.size()) return bytes.size();
    const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
    return length_at + std::max<std::size_t>(2, byte(length_at) << 8 | byte(length_at + 1));
}

}  // namespace

bool jpeg_is_whole(std::span<const std::byte> bytes) {
    constexpr unsigned start_of_image = 0xd8;
    constexpr unsigned end_of_image = 0xd9;
    const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
    if (bytes.size() < 2 || byte(0) != 0xff || byte(1) != start_of_image) return true;
    std::size_t i = 2;
    while (i + 1 < bytes.size()) {
        if (byte(i) != 0xff) {  // entropy-coded data
            i = static_cast<std::size_t>(
                std::find(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.end(), std::byte{0xff}) -
                bytes.begin());
            continue;
        }
        if (byte(i + 1) == 0xff) {  // a fill byte
            ++i;
            continue;
        }
        const unsigned marker = byte(i + 1);
        i += 2;
        if (marker == end_of_image) return true;
        const bool alone =
            marker <= 0x01 || (marker >= 0xd0 && marker <= start_of_image);  // stuffing, TEM, RSTn
        if (!alone) i = segment_end(bytes, i);
    }
    return false;
}

cv::Mat decode_picture(const std::filesystem::path& path, int channels) {
    use_no_threads_of_opencv();
    const std::string shown = printable(path.string());
    const MappedFile file(path);
    if (!jpeg_is_whole(file.bytes())) fail_undecodable(shown, ": the JPEG data end early");
    if (channels == 4) {
        cv::Mat picture = decode(file, cv::IMREAD_UNCHANGED, shown);
        check_samples(picture, shown);
        if (picture.channels() == 4) return picture;
    }
    cv::Mat picture = decode(file, cv::IMREAD_ANYCOLOR | cv::IMREAD_ANYDEPTH, shown);
    check_samples(picture, shown);
    if (channels != 1 || picture.channels() == 1) return picture;
    cv::Mat grey;
    cv::cvtColor(picture, grey, picture.channels() == 4 ? cv::COLOR_BGRA2GRAY : cv::COLOR_BGR2GRAY);
    return grey;
}

}  // namespace qcalib
