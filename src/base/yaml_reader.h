#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace qcalib {

// The faults found in one YAML file, reported together.
class YamlFaults {
  public:
    struct Fault {
        int line;  // 1-based, as the column
        int column;
        std::string text;
    };

    explicit YamlFaults(std::string file) : file_(std::move(file)) {}
    void add(const YAML::Mark& mark, std::string text);
    // Throws one Error with all faults in the order of the file, a line "file:line:column: text" each.
    void throw_if_any() const;

    const std::vector<Fault>& all() const { return faults_; }

  private:
    std::string file_;
    std::vector<Fault> faults_;
};

// The one document in `text`. Syntax errors, no document and a second one are Errors "file:line:column: ...".
YAML::Node parse_yaml(const std::string& text, const std::string& file);

// A kind of map: how messages call it, and the keys it may have.
struct YamlSection {
    std::string name;
    std::vector<std::string> keys;
};

// A map of a YAML file, read key by key. Keys its section does not have, repeated keys, missing ones and
// values of a wrong type become faults; the answer is then an empty or least value, and reading goes on.
class YamlMap {
  public:
    // `schema` holds all sections of the file, which tells where a misplaced key belongs.
    YamlMap(const YAML::Node& node, const std::string& section, std::span<const YamlSection> schema,
            YamlFaults& faults);

    bool has(const std::string& key) const { return find(key) != nullptr; }
    // Where the value of `key` stands; the key where it has none; the map where there is no such key.
    YAML::Mark mark(const std::string& key) const;
    void fault(const std::string& key, std::string text) const { faults_->add(mark(key), std::move(text)); }

    std::string text(const std::string& key) const;
    // As text, but what reads as a number or a bool is text too.
    std::string name(const std::string& key) const;
    bool boolean(const std::string& key) const;
    // Nothing where it is no such number.
    std::optional<std::int64_t> integer(const std::string& key, std::int64_t least,
                                        std::int64_t greatest) const;
    double positive_real(const std::string& key) const;
    // Finite ones.
    std::vector<double> reals(const std::string& key) const;
    // Index of the value among `choices`.
    std::size_t choice(const std::string& key, std::initializer_list<const char*> choices) const;
    std::vector<std::string> texts(const std::string& key) const;
    // The same, where a text alone is a list of one.
    std::vector<std::string> one_or_more_texts(const std::string& key) const;
    std::vector<std::int64_t> integers(const std::string& key, std::int64_t least,
                                       std::int64_t greatest) const;
    YamlMap map(const std::string& key, const std::string& section) const;
    std::vector<YamlMap> maps(const std::string& key, const std::string& section) const;
    // A map from any names to maps, in its order.
    std::vector<std::pair<std::string, YamlMap>> named_maps(const std::string& key,
                                                            const std::string& section) const;

  private:
    void check_keys() const;
    std::string where_known(const std::string& key) const;
    const YAML::Node* find(const std::string& key) const;
    const YAML::Node* require(const std::string& key) const;
    std::vector<YAML::Node> list(const std::string& key, std::string_view of) const;
    std::string text_of(const std::string& key, const YAML::Node& node) const;
    std::optional<std::int64_t> integer_of(const std::string& key, const YAML::Node& node, std::int64_t least,
                                           std::int64_t greatest) const;
    void wrong_value(const std::string& key, const YAML::Node& node, std::string_view expected) const;
    YamlMap unreadable(const std::string& section) const;

    YAML::Mark mark_;
    const YamlSection* section_;
    std::span<const YamlSection> schema_;
    YamlFaults* faults_;
    bool readable_ = false;
    std::vector<std::pair<YAML::Node, YAML::Node>> entries_;
};

}  // namespace qcalib
