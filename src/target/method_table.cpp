#include "target/method_table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

MethodTable::MethodTable(MethodChoice otherwise, std::span<const MethodRule> rules)
    : general_(std::move(otherwise)) {
    for (const MethodRule& rule : rules) {
        if (rule.pattern) {
            rules_.push_back(rule);
        } else {
            general_ = rule.choice;
        }
    }
}

const MethodChoice& MethodTable::of(std::string_view tensor) const {
    const auto named = std::find_if(rules_.rbegin(), rules_.rend(),
                                    [&](const MethodRule& rule) { return *rule.pattern == tensor; });
    if (named != rules_.rend()) return named->choice;
    const auto matched = std::find_if(rules_.rbegin(), rules_.rend(), [&](const MethodRule& rule) {
        return glob_match(*rule.pattern, tensor);
    });
    return matched == rules_.rend() ? general_ : matched->choice;
}

const MethodChoice* MethodTable::needing_histogram() const {
    if (general_.needs_histogram()) return &general_;
    const auto found = std::find_if(rules_.begin(), rules_.end(),
                                    [](const MethodRule& rule) { return rule.choice.needs_histogram(); });
    return found == rules_.end() ? nullptr : &found->choice;
}

std::string MethodTable::describe() const {
    std::string text = to_string(general_);
    for (const MethodRule& rule : rules_) {
        text += fmt::format("; {}: {}", printable(*rule.pattern), to_string(rule.choice));
    }
    return text;
}

void MethodTable::check_patterns(std::span<const std::string> names, std::string_view option) const {
    for (const MethodRule& rule : rules_) {
        const bool matched = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return *rule.pattern == name || glob_match(*rule.pattern, name);
        });
        if (!matched) {
            fail("{}: no tensor matches '{}'{}", option, printable(*rule.pattern),
                 did_you_mean(*rule.pattern, names));
        }
    }
}

}  // namespace qcalib
