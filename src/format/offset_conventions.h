#pragma once

#include <cstdint>
#include <string>

#include "encoding/encoding_file.h"

namespace qcalib {

// What a format says of offsets, for where no range tells.
struct OffsetRule {
    OffsetConvention expected = OffsetConvention::negative;
    bool symmetric_zero = true;  // an offset of 0 of a symmetric encoding is the centre of the grid
};

// One encoding made out of given numbers.
struct CompletedEncoding {
    Encoding encoding;
    std::uint8_t candidates = 0;  // bit 1 << OffsetConvention: it explains the offset; none: there was none
    std::string fault;            // what is wrong; "" where nothing
    bool without_zero = false;    // the range did not contain 0 and was widened
    bool empty_range = false;     // min and max are 0
    bool off_grid = false;        // min is no multiple of the scale
    bool odd_scale = false;       // the scale did not fit min and max, which were taken
    bool odd_offset = false;      // the offset fitted no convention; min was taken
};

// The grid of `bits` bits (2 to 32) that the numbers describe. Complete pairs of min and max or of scale and
// offset; min <= max; all finite and within float32. Range only: scale = (max - min) / (2^bits - 1), offset =
// round(min / scale), of the range widened to contain 0. Scale and offset only: min = offset * scale. Both:
// the convention is found by min / scale, and where they contradict each other the range is taken, as SNPE
// does.
CompletedEncoding complete_encoding(int bits, const GivenNumbers& given, const OffsetRule& rule);

// The offset on our convention (-N).
double normalised_offset(double offset, OffsetConvention convention, int bits);

}  // namespace qcalib
