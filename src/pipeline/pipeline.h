#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/node.h"

namespace qcalib {

// The value of an environment variable, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// A pipeline as its schema wants it: includes merged, variables put in, --set applied, short forms written
// out, relative paths of files that are read resolved. Paths of keys are as "calibration.jobs".
class Pipeline {
  public:
    explicit Pipeline(PipelineNode root) : root_(std::move(root)) {}

    // The value of a key, or nullptr.
    const PipelineNode* find(std::string_view path) const;
    bool has(std::string_view path) const { return find(path) != nullptr; }
    // Where a key stands, or where the pipeline begins.
    PipelinePlace place(std::string_view path) const;

    // Only for values of keys whose type the schema says and that were found right.
    std::string text(std::string_view path, const std::string& otherwise = "") const;
    bool boolean(std::string_view path, bool otherwise) const;
    std::optional<std::int64_t> integer(std::string_view path) const;
    std::optional<double> real(std::string_view path) const;
    // Of a key that takes some: its items. Of one that is not there: none.
    std::vector<const PipelineNode*> items(std::string_view path) const;
    std::vector<std::string> texts(std::string_view path) const;

    const PipelineNode& root() const { return root_; }
    // The whole of it as a pipeline of its own, with the defaults the schema writes out.
    std::string yaml() const;

  private:
    PipelineNode root_;
};

// The number of a real as a pipeline writes it: "0.5", "1/255"; nothing where it is none.
std::optional<double> parse_fraction(std::string_view text);

// Reads a pipeline and what it includes and applies `settings` ("a.b=c", in order). What does not fit the
// schema becomes faults and is left out of what is answered; so are paths where nothing is. A file that
// cannot be read is an Error.
Pipeline load_pipeline(const std::filesystem::path& file, std::span<const std::string> settings,
                       const Environment& environment, PipelineFaults& faults);

}  // namespace qcalib
