#include "cli/summary_format.h"

#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

void add_summary_format(CLI::App& app, std::string& format) {
    app.add_option("--format", format, "The summary on standard output: table, or json (one object)")
        ->group("Run")
        ->capture_default_str();
}

bool is_json(const std::string& format) {
    if (format == "json") return true;
    if (format == "table") return false;
    const std::vector<std::string> choices = {"table", "json"};
    fail("--format: expected table or json, found '{}'{}", printable(format), did_you_mean(format, choices));
}

}  // namespace qcalib
