#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/remarks.h"
#include "dataset/input_spec.h"
#include "dataset/preprocessing.h"
#include "dataset/sample_list.h"

namespace qcalib {

class Sequence;

// True for a file that is decoded as a picture, by its ending.
bool is_picture(const std::filesystem::path& file);

// Reads samples. Thread-safe; files of a sample are read when asked for and not kept.
class SampleReader {
  public:
    SampleReader(std::vector<InputSpec> inputs, Preprocessing preprocessing);

    // One row-major tensor per model input, of the input's type. Files by their ending: .npy; pictures (.jpg
    // .jpeg .png .bmp .webp .tif .tiff .ppm .pgm); everything else raw little-endian elements of the input's
    // type. Throws Error
    // "<file>: ..." with what was expected (shape, bytes) and what was found.
    std::vector<Tensor> read(const ListEntry& entry) const;
    // The same of a whole sample: several entries are single items that are put together along the inputs'
    // batch; inputs without that batch are taken from the first entry.
    std::vector<Tensor> read(const SelectedSample& sample) const;
    // The sample's one entry as a sequence; Error where a file cannot be read or cut.
    Sequence open(const SelectedSample& sample) const;

    std::span<const InputSpec> inputs() const { return inputs_; }
    const Preprocessing& preprocessing() const { return preprocessing_; }

  private:
    std::vector<InputSpec> inputs_;
    Preprocessing preprocessing_;
};

// A remark for each input whose array in this entry is permuted because its shape fits in the other layout
// alone (NCHW for an NHWC input, or the reverse). Files that cannot be read give none.
void remark_on_moved(const ListEntry& entry, std::span<const InputSpec> inputs,
                     const Preprocessing& preprocessing, Remarks& remarks);

// What a sample is read from: the first file of its line, and how many more lines there are; "sample 3" where
// it has no file.
std::string describe_source(const SelectedSample& sample);

// Watches the first raw or .npy samples of each image-like input (rank 4, 3 or 4 channels): adds a remark
// where vertically neighbouring values are far nearer to each other when the file's data are taken in the
// other layout (NHWC for NCHW, or the reverse). For one thread at a time.
class LayoutCheck {
  public:
    // Decides after `samples` samples of an input.
    explicit LayoutCheck(std::size_t samples = 8) : samples_(samples) {}
    // `tensor` is what SampleReader made of a raw or .npy file for `input`.
    void look(const InputSpec& input, TensorView tensor, const Preprocessing& preprocessing,
              Remarks& remarks);
    // Decides on fewer samples where a run had no more.
    void finish(Remarks& remarks);

  private:
    struct Watch {
        std::string remark;  // what to say if the other layout is right
        std::size_t seen = 0;
        bool always_smoother = true;  // in every sample the other layout was the smoother one
        double log_ratio = 0;         // sum of log(variation in the layout used / variation in the other one)
    };
    static void decide(const Watch& watch, Remarks& remarks);

    std::size_t samples_;
    std::map<std::string, Watch> watches_;  // by input
};

}  // namespace qcalib
