#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranges/range_method.h"

namespace qcalib {

// Which tensor gets which method.
class MethodTable {
  public:
    // `otherwise` is for tensors that no rule is for. The last rule that is for a tensor holds; one that
    // gives its name goes before patterns, those before rules without a pattern.
    MethodTable(MethodChoice otherwise, std::span<const MethodRule> rules);

    const MethodChoice& of(std::string_view tensor) const;
    // The method of tensors that no pattern is for.
    const MethodChoice& general() const { return general_; }
    // One that needs histograms, or nullptr.
    const MethodChoice* needing_histogram() const;
    // "mse; conv*: percentile:p=99.9,zeros=1"
    std::string describe() const;
    // An Error where a pattern is for none of these names: it offers the nearest, and names the option.
    void check_patterns(std::span<const std::string> names, std::string_view option) const;

  private:
    MethodChoice general_;
    std::vector<MethodRule> rules_;  // those with a pattern
};

}  // namespace qcalib
