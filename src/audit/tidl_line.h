#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "audit/printed_number.h"

namespace qcalib {

// What TIDL says of the quantization of one tensor: a line of its debug_level 3 output, a row of a table, or
// a tensor of its parameter file.
struct TidlTensor {
    std::int64_t data_id = -1;  // -1: not said
    PrintedNumber scale;        // a multiplier: q = round(x * scale)
    PrintedNumber min;          // of integers the stored range, of float tensors that of the data
    PrintedNumber max;
    int element_type = 0;  // 0 to 8, see tidl_element()

    // How many bits the scale is coarser than min and max ask for: log2(2^bits / max / scale) of unsigned
    // codes, with 2^(bits-1) and max(|min|, |max|) of signed ones. Below 0: finer. Nothing for float, for the
    // untouched default of a data layer, and without a range.
    std::optional<double> coarser_by() const;
    // 0 to 255 with signed codes: what a data layer has where nothing was calibrated.
    bool is_untouched_default() const;
};

// A line "%3d %10.5f %10.5f %10.5f %d": data id, scale, min, max, element type. Fields may touch
// ("512.00000-64.00000"): numbers end behind five decimals. Nothing for any other line.
std::optional<TidlTensor> parse_tidl_line(std::string_view line);

// The fields in words: "signed 8 bit at scale 128: codes -128 to 127 stand for -1 to 0.9921875, ...".
std::string tidl_words(const TidlTensor& tensor);

}  // namespace qcalib
