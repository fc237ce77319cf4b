#include "cases/runner/case_file.h"

#include "base/error.h"
#include "base/text.h"

namespace qcalib::cases {

std::string expand(std::string text, const Places& places) {
    const std::map<std::string, std::string> variables = {
        {"CASE", places.case_folder.string()},
        {"CASES", places.case_folder.parent_path().string()},
        {"CONFIGS", (places.case_folder.parent_path().parent_path().parent_path() / "configs").string()},
        {"WORK", places.work.string()},
    };
    for (std::size_t start = text.find("${"); start != std::string::npos; start = text.find("${", start)) {
        const std::size_t end = text.find('}', start);
        const std::string name = text.substr(start + 2, end == std::string::npos ? end : end - start - 2);
        const auto found = variables.find(name);
        if (end == std::string::npos || found == variables.end()) {
            fail("'{}': expected ${{CASE}}, ${{CASES}}, ${{CONFIGS}} or ${{WORK}}", text);
        }
        text.replace(start, end + 1 - start, found->second);
        start += found->second.size();
    }
    return text;
}

void refuse(const YAML::Node& node, std::string_view message) {
    fail("case.yaml:{}: {}", node.Mark().line + 1, message);
}

void check_keys(const YAML::Node& node, std::initializer_list<const char*> known) {
    if (!node.IsMap()) refuse(node, "expected a map");
    const std::vector<std::string> names(known.begin(), known.end());
    for (const auto& entry : node) {
        const auto key = entry.first.as<std::string>();
        if (std::find(names.begin(), names.end(), key) == names.end()) {
            refuse(entry.first, fmt::format("unknown key '{}'{}; expected one of: {}", key,
                                            did_you_mean(key, names), join(names, ", ")));
        }
    }
}

YAML::Node required(const YAML::Node& node, const char* key) {
    const YAML::Node child = node[key];
    if (!child) refuse(node, fmt::format("'{}' is missing", key));
    return child;
}

std::vector<std::string> texts(const YAML::Node& node, const Places& places) {
    if (!node) return {};
    if (node.IsScalar()) return {expand(node.as<std::string>(), places)};
    std::vector<std::string> all;
    for (const auto& item : node) all.push_back(expand(item.as<std::string>(), places));
    return all;
}

}  // namespace qcalib::cases
