#include "encoding/encoding.h"

namespace qcalib {

Encoding encode(Range range, const GridRules& rules) {
    const Grid grid = make_grid(range, rules);
    Encoding encoding;
    encoding.bits = rules.bits;
    encoding.min = grid.min;
    encoding.max = grid.max;
    encoding.scale = grid.step;
    encoding.offset = grid.offset;
    encoding.symmetric = rules.scheme != Scheme::asymmetric;
    return encoding;
}

Encoding encode_asymmetric(Range range, int bits, double least_range, Rounding rounding) {
    GridRules rules;
    rules.bits = bits;
    rules.least_range = least_range;
    rules.rounding = rounding;
    return encode(range, rules);
}

Encoding encode_symmetric(Range range, int bits, double least_range) {
    GridRules rules;
    rules.bits = bits;
    rules.scheme = Scheme::symmetric;
    rules.least_range = least_range;
    return encode(range, rules);
}

}  // namespace qcalib
