#pragma once

#include <optional>
#include <string_view>

namespace qcalib {

// A number as a tool printed it: the true one lies within half a unit of its last digit.
struct PrintedNumber {
    double value = 0;
    double half_unit = 0;  // 0: exact, as in a JSON file
    int decimals = 0;      // digits behind the point
    int digits = 0;        // significant ones
};

// The whole text as a printed number ("-17.530067", "1.526e-05", "nan"), or nothing. A denormal or
// overflowing text is no number.
std::optional<PrintedNumber> parse_printed_number(std::string_view text);

// The distance of float32 numbers of this magnitude.
double float_spacing(double value);

// Whether `given` may be what was printed: they differ by no more than half a unit of the last printed digit
// plus two float32 spacings of `larger_end`, the end of the range with the larger magnitude.
bool equal_as_printed(double given, const PrintedNumber& printed, double larger_end);

}  // namespace qcalib
