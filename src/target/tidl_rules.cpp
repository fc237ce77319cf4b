#include "target/tidl_rules.h"

#include "base/yaml_reader.h"

namespace qcalib {

std::vector<YamlSection> tidl_sections() {
    return {{"tidl", {"style", "unclipped_margin", "source", "confidence"}}};
}

TidlRules read_tidl_rules(const YamlMap& map) {
    TidlRules rules;
    rules.style =
        static_cast<TidlRules::Style>(map.choice("style", {"any-scale", "power-of-two", "asymmetric"}));
    rules.unclipped_margin = map.positive_real("unclipped_margin");
    rules.evidence = {
        map.text("source"),
        static_cast<Confidence>(map.choice("confidence", {"verified", "documented", "reported", "assumed"}))};
    return rules;
}

}  // namespace qcalib
