#pragma once

#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace qcalib::cases {

// What texts of a case may refer to: ${CASE}, its folder; ${CASES}, the folder of all cases; ${WORK}, the
// folder in which it runs and to which relative paths refer.
struct Places {
    std::filesystem::path case_folder;
    std::filesystem::path work;
};

// `text` with its ${...} replaced; an Error names one that is not known.
std::string expand(std::string text, const Places& places);

// Throws Error "case.yaml:<line>: <message>".
[[noreturn]] void refuse(const YAML::Node& node, std::string_view message);

// An Error names a key of the map `node` that is not among `known`: a misspelt expectation must not pass
// silently.
void check_keys(const YAML::Node& node, std::initializer_list<const char*> known);

// The child of that name; an Error where it is not there.
YAML::Node required(const YAML::Node& node, const char* key);

// A text or a list of texts, each expanded; empty where `node` is not there.
std::vector<std::string> texts(const YAML::Node& node, const Places& places);

}  // namespace qcalib::cases
