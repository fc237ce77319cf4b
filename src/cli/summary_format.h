#pragma once

#include <string>

namespace CLI {
class App;
}

namespace qcalib {

// --format: whether a command's summary is tables or one JSON object on standard output.
void add_summary_format(CLI::App& app, std::string& format);
// Error where it is neither.
bool is_json(const std::string& format);

}  // namespace qcalib
