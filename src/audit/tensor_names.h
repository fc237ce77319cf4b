#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace qcalib {

// The name without one suffix that converters add (_fc, _permute, .nchw, .ncs, _nfc, _ncf, :0, ...), or the
// same name where it has none.
std::string_view without_converter_suffix(std::string_view name);

// The name as generated C++ code spells it: what is no letter, digit or underscore becomes an underscore.
std::string sanitised(std::string_view name);

// Whether a name is one that frameworks give weights and biases: "conv.weight", "fc.bias_permute". For
// tensors of which nothing else tells.
bool names_parameter(std::string_view name);

// Finds the name that a converter made another one of.
class NameMatcher {
  public:
    explicit NameMatcher(std::span<const std::string> names);

    std::optional<std::size_t> exactly(std::string_view name) const;
    // Index of the name that is `found`, or became it by suffixes, by sanitising, or by both; nothing where
    // there is none, or where several became the same.
    std::optional<std::size_t> match(std::string_view found) const;

  private:
    std::optional<std::size_t> match_sanitised(std::string_view found) const;

    std::unordered_map<std::string, std::size_t> exact_;
    std::unordered_map<std::string, std::optional<std::size_t>> sanitised_;
};

}  // namespace qcalib
