#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "encoding/encoding.h"
#include "target/tidl_tensors.h"

namespace qcalib {

// The scale that TIDL gives the output of a layer, beside that of the encoding. Scales are multipliers.
struct TidlScale {
    std::size_t layer = 0;
    double given = 0;  // 2^bits / max, or 2^(bits-1) / greatest magnitude
    double used = 0;   // what TIDL's arithmetic comes to with bias guards off (accuracy_level 0)
    std::string why;   // where `used` is the coarser; else empty
    // By how many bits more TIDL coarsens it so that the biases of its readers fit, unless accuracy_level is
    // 0 or bias_clipping is on; and for which reader.
    int guard_bits = 0;
    std::string guarded;
    // The weights' scale, and what it is capped at under the same conditions so that the layer's own bias
    // fits.
    std::optional<double> weights;
    std::optional<double> weight_cap;

    double bits_lost() const;  // log2(given / used), 0 where it is finer
};

// The scales of all layers whose outputs have an encoding, in order. Formulas: a layer's sums have the scale
// of weights times input (an elementwise sum 2^6 times the least of its inputs, a concatenation 2^7, an
// average 2^8 or 2^12, each 2^8 more in 16 bits); the output's is that of the sums, shifted to the right
// until the greatest value fits. Behind a Clip that is symmetric or starts at zero TIDL lowers the weights'
// scale first, so that the Clip's own scale comes out. Per-channel weights are left out, asymmetric styles
// have none.
std::vector<TidlScale> tidl_scales(const Graph& graph, const ConstantLookup& constant,
                                   const TidlTensors& tensors, const EncodingSet& set, const Target& target);

// The shift to the right by which values up to `end` fit into `bits` bits: max(0, ceil(log2(m / 2^(bits or
// bits - 1)))) with m = end * sums, one less where codes have a sign and m is a power of two.
int tidl_shift(double end, double sums, int bits, bool is_signed);

// The greatest magnitude that TIDL's weight clipping (calibration option 2, a part of accuracy_level 1)
// leaves of weights, or nothing where it leaves all: 2^ceil(log2(min(greatest, 16 * median))) - 1 where the
// greatest is above 2^(bits-1) / 8 - 1 and above 16 times the median magnitude.
std::optional<double> tidl_clipped_weights(std::vector<double> magnitudes, int bits);

}  // namespace qcalib
