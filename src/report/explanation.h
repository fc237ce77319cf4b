#pragma once

#include <optional>
#include <string>
#include <vector>

#include "encoding/encoding.h"
#include "report/convergence.h"
#include "statistics/statistics_file.h"
#include "tensor/grid.h"

namespace qcalib {

// A tensor's way from statistics to its encoding for one target.
struct Explanation {
    std::string tensor;
    std::string kind;  // "activation", "weight", "constant"
    std::string target;
    const TensorStatistics* statistics = nullptr;  // nullptr: the file has none of it
    std::optional<std::size_t> samples;            // with data; nothing for a constant
    std::optional<RangeMovement> movement;
    std::string method;         // with its parameters
    std::vector<Range> ranges;  // that it chose; one for each encoding
    GridRules rules;
    std::vector<std::string> evidence;  // where the rules come from
    std::vector<Encoding> encodings;    // one, or one a channel
    std::optional<int> axis;
    std::string no_encoding;             // why there is none; else empty
    std::vector<std::string> overrides;  // that had a say, the strongest first
    std::vector<std::string> notes;      // what else led to the encoding
    bool by_rules = true;                // whether the encoding is what the rules make of the ranges
};

// The chain as lines: statistics, method and range, rules and what they did, encoding.
std::string explain(const Explanation& explanation);

}  // namespace qcalib
