#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encoding/encoding.h"
#include "tensor/grid.h"
#include "tensor/range.h"

namespace qcalib {

// What led to the encoding of a tensor, or to none.
struct Decision {
    enum class Kind : std::uint8_t { activation, weight, constant, bias };
    std::string tensor;
    Kind kind = Kind::activation;
    std::string method;         // that chose the ranges, with all its parameters; "override", "base", ...
    std::vector<Range> ranges;  // before the target's rules; one for each encoding
    GridRules rules;            // the target's, with what the run's options and overrides change
    std::string no_encoding;    // why there is none; else empty
    std::string origin;         // TensorEncoding::origin; empty where there is none
    std::vector<std::string> overrides;  // that had a say, the strongest first: "--override 'conv*'"
    std::vector<std::string> notes;      // what else is to be known: what is shared, fused, clipped
    bool by_rules = true;  // whether the encoding is what make_grid() gives for `ranges` and `rules`
};

std::string_view name_of(Decision::Kind kind);

// The encoding of a tensor, if it has one, and what led to it.
struct Encoded {
    std::optional<TensorEncoding> entry;
    Decision decision;
};

}  // namespace qcalib
