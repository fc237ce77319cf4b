#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "dataset/input_spec.h"
#include "dataset/sample_list.h"

namespace qcalib {

struct PictureSize {
    int width = 0;
    int height = 0;
};

enum class ColorOrder { rgb, bgr };
enum class DataLayout { as_model, nhwc };

// How a picture becomes a tensor: decode, resize (bilinear, half-pixel centres, no antialiasing), centre crop, colour
// order, value = (pixel * multiply - mean[c]) / std[c]. mean and std are in units after the multiplication.
struct Preprocessing {
    std::optional<PictureSize> resize;
    std::optional<PictureSize> crop;
    ColorOrder color = ColorOrder::rgb;
    double multiply = 1.0 / 255;
    std::vector<double> mean;  // empty: 0
    std::vector<double> std;   // empty: 1
    DataLayout layout = DataLayout::as_model;  // of raw and .npy data: nhwc is permuted to the model's NCHW
};

// "320x240" of an option named `what`.
PictureSize parse_picture_size(const std::string& text, std::string_view what);

// One line that says what is done to a picture, in order, with all numbers.
std::string describe(const Preprocessing& preprocessing);

// The canonical text of all settings that can change a value, for StatisticsHeader::settings.
std::string canonical(const Preprocessing& preprocessing);

// Reads samples. Thread-safe; files of a sample are read when asked for and not kept.
class SampleReader {
  public:
    SampleReader(std::vector<InputSpec> inputs, Preprocessing preprocessing);

    // One row-major tensor per model input, of the input's type. Files by their ending: .npy; pictures (.jpg .jpeg .png
    // .bmp .webp .tif .tiff .ppm .pgm); everything else raw little-endian elements of the input's type. Throws Error
    // "<file>: ..." with what was expected (shape, bytes) and what was found.
    std::vector<Tensor> read(const ListEntry& entry) const;

    std::span<const InputSpec> inputs() const { return inputs_; }
    const Preprocessing& preprocessing() const { return preprocessing_; }

  private:
    std::vector<InputSpec> inputs_;
    Preprocessing preprocessing_;
};

// Watches the first raw or .npy samples of 4-D image-like inputs: adds a remark where neighbouring values are far
// smoother when the data are taken in the other layout (NHWC for NCHW, or the reverse).
class LayoutCheck {
  public:
    explicit LayoutCheck(std::size_t samples = 8) : left_(samples) {}
    void look(const InputSpec& input, TensorView tensor, const Preprocessing& preprocessing, Remarks& remarks);

  private:
    std::size_t left_;
    std::size_t suspicious_ = 0;
    std::size_t seen_ = 0;
};

}  // namespace qcalib
