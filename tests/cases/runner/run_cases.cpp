// Runs one case: run_cases CASE_FOLDER WORK_FOLDER TOOL=PATH... A case's case.yaml is described in
// docs/cases.md.

#include <cstdio>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "cases/runner/case_file.h"
#include "cases/runner/expect.h"
#include "cases/runner/generate.h"
#include "cases/runner/process.h"

namespace qcalib::cases {
namespace {

namespace fs = std::filesystem;
using Tools = std::map<std::string, std::string>;

// The words of `run:`, a text (split at blanks) or a list, with the tool's name replaced by its path.
std::vector<std::string> command_of(const YAML::Node& run, const Tools& tools, const Places& places) {
    std::vector<std::string> words;
    if (run.IsSequence()) {
        words = texts(run, places);
    } else {
        std::istringstream stream(expand(run.as<std::string>(), places));
        for (std::string word; stream >> word;) words.push_back(word);
    }
    if (words.empty() || !tools.contains(words[0])) refuse(run, "expected the name of a tool first");
    words[0] = tools.at(words[0]);
    return words;
}

std::string indented(const std::string& text) {
    std::string lines;
    for (const std::string& line : split(trim(text), '\n')) lines += "    | " + printable(line) + "\n";
    return lines;
}

void print_failure(const std::vector<std::string>& command, const ProcessResult& result,
                   std::span<const std::string> found) {
    fmt::print("{}\n{}  stdout:\n{}  stderr:\n{}", join(command, " "), "  " + result.ending + "\n",
               indented(result.standard_output), indented(result.standard_error));
    for (const std::string& text : found) fmt::print("{}\n", text);
}

std::vector<std::string> run_step(const YAML::Node& step, const Tools& tools, const Places& places,
                                  const fs::path& logs, bool quiet) {
    check_keys(step,
               {"generate", "run", "exit", "stdout", "stderr", "new_files", "json", "npy", "same_bytes"});
    generate(step["generate"], places);
    const std::set<std::string> before = files_here();
    const std::vector<std::string> command = command_of(required(step, "run"), tools, places);
    const ProcessResult result = run_process(command, logs);
    std::vector<std::string> found = mismatches(step, result, before, places);
    if (!found.empty() && !quiet) print_failure(command, result, found);
    return found;
}

// Whether a case that says which mismatches it has (a test of this runner) has just these, in this order.
bool as_said(const std::vector<std::string>& found, const std::vector<std::string>& said) {
    for (const std::string& text : found) fmt::print("found: {}\n", text);
    for (const std::string& text : said) fmt::print("said:  {}\n", text);
    return std::equal(
        found.begin(), found.end(), said.begin(), said.end(),
        [](const std::string& a, const std::string& b) { return a.find(b) != std::string::npos; });
}

bool run_case(const fs::path& case_folder, const fs::path& work_folder, const Tools& tools) {
    const Places places{fs::absolute(case_folder), fs::absolute(work_folder) / "work"};
    const fs::path logs = fs::absolute(work_folder) / "logs";
    fs::remove_all(work_folder);
    fs::create_directories(places.work);
    fs::create_directories(logs);
    fs::current_path(places.work);

    const YAML::Node file = YAML::LoadFile(places.case_folder / "case.yaml");
    check_keys(file, {"summary", "generate", "steps", "mismatches"});
    required(file, "summary");
    generate(file["generate"], places);
    std::vector<std::string> found;
    for (const auto& step : required(file, "steps")) {
        const auto more = run_step(step, tools, places, logs, file["mismatches"].IsDefined());
        found.insert(found.end(), more.begin(), more.end());
    }
    if (file["mismatches"]) return as_said(found, texts(file["mismatches"], places));
    return found.empty();
}

}  // namespace
}  // namespace qcalib::cases

int main(int argument_count, char** argument_values) {
    const std::span<char*> arguments(argument_values, static_cast<std::size_t>(argument_count));
    if (arguments.size() < 3) {
        std::fputs("usage: run_cases CASE_FOLDER WORK_FOLDER TOOL=PATH...\n", stderr);
        return 2;
    }
    std::map<std::string, std::string> tools;
    for (const std::string tool : arguments.subspan(3)) {
        const std::size_t equals = tool.find('=');
        tools[tool.substr(0, equals)] = tool.substr(equals + 1);
    }
    try {
        return qcalib::cases::run_case(arguments[1], arguments[2], tools) ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", arguments[1], error.what());
        return 2;
    }
}
