#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "support/temporary_folder.h"

namespace qcalib {

namespace {

namespace fs = std::filesystem;

// Module -> the modules whose headers it may include.
using IncludeTable = std::map<std::string, std::set<std::string>>;

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (const std::string& line : split(text, '\n')) {
        for (const std::string& word : split(line, ' ')) {
            if (!trim(word).empty()) words.emplace_back(trim(word));
        }
    }
    return words;
}

// Lines "module: other other"; '#' begins a comment line.
IncludeTable read_include_table(const fs::path& path) {
    IncludeTable table;
    for (const std::string& line : split(read_text_file(path), '\n')) {
        const std::size_t colon = line.find(':');
        if (line.starts_with('#') || colon == std::string::npos) continue;
        const auto allowed = words_of(line.substr(colon + 1));
        table[std::string(trim(line.substr(0, colon)))] = {allowed.begin(), allowed.end()};
    }
    return table;
}

// What stands between the quotes or brackets of an #include line, or "".
std::string included_path(std::string_view line) {
    line = trim(line);
    if (!line.starts_with('#')) return "";
    line = trim(line.substr(1));
    if (!line.starts_with("include")) return "";
    line = trim(line.substr(std::string_view("include").size()));
    if (line.empty() || (line[0] != '"' && line[0] != '<')) return "";
    return std::string(line.substr(1, line.find_first_of("\">", 1) - 1));
}

// "" where a file of `module` may include `path`, else why not.
std::string objection(const IncludeTable& table, const std::string& module, const std::string& path,
                      bool quoted) {
    const std::string folder = path.substr(0, path.find('/'));
    if (path.find("..") != std::string::npos) return "is relative";
    const bool is_module = table.contains(folder);
    if (!is_module) return quoted ? "is no module's header" : "";
    if (path == folder || folder == module || table.at(module).contains(folder)) return "";
    return "is not allowed";
}

std::vector<std::string> check_file(const IncludeTable& table, const std::string& module,
                                    const fs::path& file) {
    std::vector<std::string> findings;
    const std::vector<std::string> lines = split(read_text_file(file), '\n');
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string path = included_path(lines[i]);
        if (path.empty()) continue;
        const std::string reason = objection(table, module, path, lines[i].find('"') != std::string::npos);
        if (!reason.empty()) {
            findings.push_back(fmt::format("{}:{}: {} {}", file.string(), i + 1, path, reason));
        }
    }
    return findings;
}

// Every include in `source` that the table forbids, and every folder it does not know.
std::vector<std::string> check_includes(const IncludeTable& table, const fs::path& source) {
    std::vector<std::string> findings;
    for (const auto& entry : fs::recursive_directory_iterator(source)) {
        const std::string extension = entry.path().extension().string();
        if (!entry.is_regular_file() || (extension != ".h" && extension != ".cpp")) continue;
        const std::string module = fs::relative(entry.path(), source).begin()->string();
        if (!table.contains(module)) {
            findings.push_back(fmt::format("{}: module '{}' has no row", entry.path().string(), module));
            continue;
        }
        const auto of_file = check_file(table, module, entry.path());
        findings.insert(findings.end(), of_file.begin(), of_file.end());
    }
    return findings;
}

// The DEPENDS lists of qcalib_module(...) calls in src/CMakeLists.txt.
IncludeTable read_link_table(const fs::path& path) {
    IncludeTable table;
    const std::string text = read_text_file(path);
    constexpr std::string_view call = "\nqcalib_module(";
    for (std::size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
        const std::size_t begin = at + call.size();
        const std::vector<std::string> words = words_of(text.substr(begin, text.find(')', begin) - begin));
        auto& allowed = table[words.front()];
        bool in_depends = false;
        for (std::size_t i = 1; i < words.size(); ++i) {
            if (words[i] == "DEPENDS" || words[i] == "LINK") {
                in_depends = words[i] == "DEPENDS";
            } else if (in_depends) {
                allowed.insert(words[i]);
            }
        }
    }
    return table;
}

const fs::path project = QCALIB_SOURCE_DIR;

IncludeTable project_table() {
    return read_include_table(project / "tests/include_table.txt");
}

}  // namespace

TEST_CASE("every include of src is allowed by tests/include_table.txt") {
    const IncludeTable table = project_table();
    REQUIRE(table.size() > 10);
    const std::vector<std::string> findings = check_includes(table, project / "src");
    CHECK_MESSAGE(findings.empty(), join(findings, "\n"));
}

TEST_CASE("src/CMakeLists.txt links each module to those it may include and no others") {
    CHECK(read_link_table(project / "src/CMakeLists.txt") == project_table());
}

TEST_CASE(
    "the include table allows no module to include the command line, nor the executor below the engine") {
    const IncludeTable table = project_table();
    for (const auto& [module, allowed] : table) {
        CAPTURE(module);
        CHECK_FALSE(allowed.contains("cli"));
    }
    for (const char* module : {"ranges", "encoding", "target", "format"}) {
        for (const char* forbidden : {"runtime", "dataset", "engine"}) {
            CAPTURE(module);
            CHECK_FALSE(table.at(module).contains(forbidden));
        }
    }
}

TEST_CASE("a planted include that the table forbids is found with its file and line") {
    const test::TemporaryFolder folder;
    fs::create_directories(folder / "graph");
    fs::create_directories(folder / "base");
    fs::create_directories(folder / "unknown");
    write_file(folder / "graph/good.cpp",
               "#include <vector>\n#include <onnx/onnx_pb.h>\n#include \"graph/graph.h\"\n#include "
               "\"base/text.h\"\n");
    const IncludeTable table = {{"base", {}}, {"graph", {"base"}}, {"runtime", {"base", "graph"}}};
    CHECK(check_includes(table, folder.path()).empty());

    write_file(folder / "graph/bad.cpp",
               "#pragma once\n  #  include \"runtime/plan.h\"\n#include <runtime/tap.h>\n");
    write_file(folder / "base/bad.h", "#include \"../graph/graph.h\"\n#include \"files.h\"\n");
    write_file(folder / "unknown/new.cpp", "int x;\n");
    std::vector<std::string> findings = check_includes(table, folder.path());
    std::sort(findings.begin(), findings.end());
    const std::string root = folder.path().string();
    CHECK(findings == std::vector<std::string>{
                          root + "/base/bad.h:1: ../graph/graph.h is relative",
                          root + "/base/bad.h:2: files.h is no module's header",
                          root + "/graph/bad.cpp:2: runtime/plan.h is not allowed",
                          root + "/graph/bad.cpp:3: runtime/tap.h is not allowed",
                          root + "/unknown/new.cpp: module 'unknown' has no row",
                      });
}

}  // namespace qcalib
