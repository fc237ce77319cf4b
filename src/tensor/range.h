#pragma once

namespace qcalib {

// Two ends of real values, min <= max.
struct Range {
    double min = 0;
    double max = 0;

    bool operator==(const Range&) const = default;
};

}  // namespace qcalib
