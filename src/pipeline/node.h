#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace qcalib {

// Where a key or value of a pipeline stands: in a file, or on the command line.
struct PipelinePlace {
    std::string source;  // the file, or "--set a.b=c"
    int rank = 0;        // of the source: that of the pipeline's own file is 0
    int line = 0;        // 1-based; 0 on the command line
    int column = 0;

    // "file:line:column", or "--set a.b=c".
    std::string text() const;
};

// A value of a pipeline: what YAML says, and where each part of it stands.
struct PipelineNode {
    enum class Kind { nothing, scalar, list, map };
    struct Entry;

    Kind kind = Kind::nothing;
    PipelinePlace place;
    std::string scalar;
    bool quoted = false;              // a scalar in quotes: a text, never a number
    std::vector<PipelineNode> items;  // of a list
    std::vector<Entry> entries;       // of a map
    YAML::Node yaml;                  // what it was made of
    bool changed = false;             // since then: a part of it was set or merged in
    bool faulty = false;              // what is wrong with it is among the faults already

    // The value of a key of this map, or nullptr.
    const PipelineNode* find(std::string_view key) const;
    PipelineNode* find(std::string_view key);
    // Adds an entry to this map; it stands where `place` is.
    PipelineNode& add(const std::string& key, const PipelinePlace& place, PipelineNode value);
    // As a message shows it: "'12'", "a map", "nothing".
    std::string shown() const;
};

struct PipelineNode::Entry {
    std::string key;
    PipelinePlace place;
    PipelineNode value;
    YAML::Node yaml = {};  // the key
};

// What is wrong with a pipeline, reported together.
class PipelineFaults {
  public:
    void add(const PipelinePlace& place, const std::string& text);
    bool empty() const { return faults_.empty(); }
    // Throws one Error with a line "place: text" for each fault: file by file, in the order of their lines.
    void throw_if_any() const;

  private:
    std::vector<std::pair<PipelinePlace, std::string>> faults_;
};

// The document as nodes; keys that are no texts and repeated keys become faults.
PipelineNode to_pipeline_node(const YAML::Node& node, const PipelinePlace& source, PipelineFaults& faults);

// The node as yaml-cpp's; what was not changed keeps its marks.
YAML::Node to_yaml_node(const PipelineNode& node);

// The node as YAML that reads back as the same.
std::string to_yaml(const PipelineNode& node);

}  // namespace qcalib
