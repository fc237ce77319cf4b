#pragma once

#include <cstdint>
#include <vector>

#include "target/target.h"

namespace qcalib {

class YamlMap;
struct YamlSection;

// What TIDL does beyond what Target says of every compiler.
struct TidlRules {
    // How scales are chosen: advanced_options:quantization_scale_type 0, 1 and 4.
    enum class Style : std::uint8_t { any_scale, power_of_two, asymmetric };
    Style style = Style::power_of_two;
    // Factor on the greatest value of an inner product or a global average that ends in no Clip.
    double unclipped_margin = 1.25;
    Evidence evidence;

    bool symmetric() const { return style != Style::asymmetric; }
};

// The section of a target's YAML that TidlRules are read from, and reading them from the section `tidl`.
std::vector<YamlSection> tidl_sections();
TidlRules read_tidl_rules(const YamlMap& map);

}  // namespace qcalib
