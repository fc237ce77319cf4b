#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/plan.h"
#include "runtime/program.h"
#include "statistics/counter.h"
#include "statistics/statistics_file.h"

namespace qcalib {

// How the statistics of a value follow from those of its node's inputs, without a look at its elements.
struct Derivation {
    enum class Rule : std::uint8_t {
        same,    // the source's elements, in whatever order: its very statistics
        clip,    // to `bounds`
        scale,   // times 2^power
        join,    // all elements of all sources
        repeat,  // each element equally often
    };
    Rule rule = Rule::same;
    std::vector<ValueId> sources;  // one may stand here more than once
    Range bounds;
    int power = 0;
};

// The derivations that a graph's operators allow, by value. `counted` are the values there are statistics of.
// Those that a body makes have no derivation: they may be made any number of times.
class DerivationTable {
  public:
    DerivationTable() = default;
    DerivationTable(const Program& program, const Plan& plan, std::span<const ValueId> counted,
                    const CounterSettings& settings);

    // Nullptr where the value is always counted.
    const Derivation* of(ValueId value) const;
    // How often the value is a source.
    std::size_t uses(ValueId value) const { return value < uses_.size() ? uses_[value] : 0; }

  private:
    std::vector<std::optional<Derivation>> derivations_;  // by value
    std::vector<std::size_t> uses_;
};

// Applies a rule other than `same` to one sample: `sources` are the sources' statistics and `elements` what
// the value consists of. False where the value has to be counted.
bool derive(const Derivation& derivation, std::span<const TensorStatistics* const> sources,
            std::span<const float> elements, const CounterSettings& settings, TensorStatistics& result);

}  // namespace qcalib
