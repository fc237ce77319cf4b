#pragma once

#include <string>
#include <vector>

#include "tensor/grid.h"
#include "tensor/range.h"

namespace qcalib {

// What led to the encoding of a tensor, or to none.
struct Decision {
    enum class Kind : std::uint8_t { activation, weight, constant };
    std::string tensor;
    Kind kind = Kind::activation;
    std::string method;         // that chose the ranges, with all its parameters
    std::vector<Range> ranges;  // before the target's rules; one for each encoding
    GridRules rules;            // the target's, with what the run's options change
    std::string no_encoding;    // why there is none; else empty
};

}  // namespace qcalib
