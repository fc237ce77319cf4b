#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qcalib {

// What a scalar of a pipeline may be.
enum class PipelineType {
    text,
    path,      // of a file or folder that is read; looked up from the working directory, then from the file's
    name,      // of a tensor or input: any scalar
    boolean,   // true or false
    integer,   // from `least` to `greatest`
    real,      // a number or a fraction, as 1/255; from `least` to `greatest`
    choice,    // one of `choices`
    bytes,     // 4G, 512MiB
    shard,     // i/n
    section,   // a map with the keys of `section`; a scalar stands for its `short_key`
    step,      // a name, or a map from one name to a map of parameters: checked by whoever reads it
    anything,  // checked by whoever reads it
};

// How many of them a key takes.
enum class PipelineCount {
    one,
    some,         // a list, or one alone
    named,        // a map from names to one
    named_lists,  // a map from names to one or a list
};

struct PipelineKey {
    std::string name = {};
    PipelineType type = PipelineType::text;
    PipelineCount count = PipelineCount::one;
    std::string description = {};  // a sentence or two
    std::string otherwise = {};    // what holds where the key is left out, for documentation
    bool is_literal = false;       // whether `otherwise` is the YAML to write for that
    std::string example = {};      // a value as YAML, for drafts; a literal default is one
    std::string section = {};      // of a section
    std::vector<std::string> choices = {};
    double least = 0;
    double greatest = 0;
    std::string values = {};  // what it takes, where `type` and bounds do not say it
    bool required = false;
    std::string flag = {};       // the flag of 'qcalib calibrate' that says the same
    bool open_least = false;     // `least` itself is not taken
    bool open_greatest = false;  // `greatest` itself is not taken
};

// A map of a pipeline and its keys.
struct PipelineSection {
    std::string name;  // "pipeline" is the document itself
    std::string description;
    std::vector<PipelineKey> keys;
    std::string short_key = {};            // what a scalar in its place stands for
    std::vector<std::string> one_of = {};  // of these keys just one must be given

    const PipelineKey* find(const std::string& key) const;
    std::vector<std::string> key_names() const;
};

// All sections, the document's first: the one source of validation and documentation.
std::span<const PipelineSection> pipeline_schema();
const PipelineSection& pipeline_section(const std::string& name);

// What a key takes, as messages and documentation say it: "a whole number from 1 on".
std::string expected_value(const PipelineKey& key);

// docs/pipeline.md, with `more` at its end.
std::string pipeline_documentation(const std::string& more);

// A row of a Markdown table.
std::string documentation_row(std::span<const std::string> cells);

}  // namespace qcalib
