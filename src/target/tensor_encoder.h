#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "statistics/histogram.h"
#include "target/decision.h"
#include "target/overrides.h"
#include "target/target.h"

namespace qcalib {

// What is known of a tensor that gets one encoding, before it is decided.
struct TensorTask {
    std::string name;
    Decision::Kind kind = Decision::Kind::activation;
    GridRules grid;           // the run's
    std::vector<int> widths;  // that the target takes
    std::string method;       // how `choose` chooses, with all parameters
    std::string origin;       // of what it chooses
    std::function<std::optional<Range>(const GridRules&)> choose;
    std::string without;                           // why there is no encoding where it chooses nothing
    const TensorStatistics* statistics = nullptr;  // nullptr: not counted
    const FixedRule* fixed = nullptr;              // where the target fixes its encoding
    const TensorEncoding* base = nullptr;          // where the base has it
    bool base_range_alone = false;                 // of which only the range counts
};

// The width that a base asks for, where the target takes it.
std::optional<int> base_width(const TensorEncoding* base, const std::vector<int>& widths);

// Decides by precedence: overrides, what the target fixes, the base, the method.
class TensorEncoder {
  public:
    TensorEncoder(const Target& target, const OverrideTable& overrides)
        : target_(target), overrides_(overrides) {}

    // Remarks say what came out otherwise than asked for. Errors name override and tensor: a width or step
    // the target does not take.
    Encoded encode(const TensorTask& task, const TensorOverride& given, Remarks& remarks) const;

    // The grid with the width and symmetry that overrides ask for.
    GridRules grid(const TensorOverride& given, GridRules grid, const std::vector<int>& widths,
                   const std::string& tensor) const;
    // The encoding of `given.range` or `given.step`; what clips is noted and, where a step does it, remarked.
    Encoding explicit_encoding(const TensorTask& task, const TensorOverride& given, std::optional<Range> data,
                               const GridRules& grid, Decision& decision, Remarks& remarks) const;
    // The base's entry as it is, or coded anew where the target's rules ask for it, which is remarked.
    TensorEncoding kept(const TensorEncoding& base, const GridRules& grid, const std::vector<int>& widths,
                        Decision& decision, Remarks& remarks) const;
    std::vector<std::string> labels(const TensorOverride& given) const;

  private:
    std::optional<Encoding> fixed_encoding(const TensorTask& task, const GridRules& grid, Decision& decision,
                                           Remarks& remarks) const;
    std::string label_of(const TensorOverride& given, bool (*has)(const Override&)) const;
    void check_step(const TensorOverride& given, const GridRules& grid, const std::string& tensor) const;
    void note_clipping(const TensorTask& task, const Encoding& encoding, bool remarked, Decision& decision,
                       Remarks& remarks) const;

    const Target& target_;
    const OverrideTable& overrides_;
};

}  // namespace qcalib
