#include <doctest/doctest.h>

#include "cli/command.h"
#include "report/table.h"

using namespace qcalib;

namespace {

ExitCode run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "qcalib");
    return run_command_line(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("wrong usage ends with exit code 2, help with 0") {
    CHECK(run({}) == ExitCode::bad_input);
    CHECK(run({"--help"}) == ExitCode::fine);
    CHECK(run({"--version"}) == ExitCode::fine);
    CHECK(run({"inspect", "--help"}) == ExitCode::fine);
    CHECK(run({"emitt"}) == ExitCode::bad_input);
    CHECK(run({"--modle", "x"}) == ExitCode::bad_input);
    CHECK(run({"merge"}) == ExitCode::bad_input);
    CHECK(run({"list", "operators"}) == ExitCode::fine);
    CHECK(run({"list", "operator"}) == ExitCode::bad_input);
    CHECK(run({"inspect", "/nonexistent/file.qstats"}) == ExitCode::bad_input);
}

TEST_CASE("every command has a name of its own and a summary") {
    std::vector<std::string> names;
    for (const auto& command : make_commands()) {
        CHECK_FALSE(command->summary().empty());
        CHECK(std::find(names.begin(), names.end(), command->name()) == names.end());
        names.push_back(command->name());
    }
    CHECK(names.front() == "calibrate");
}

TEST_CASE("tables align numbers to the right and cut long names in their middle") {
    Table table;
    table.column("name").column("value", Table::Align::right);
    table.row({"a/very/long/tensor/name/output_0", "1.5"}).row({"x", "-20"});
    CHECK(table.text(24) ==
          "name               value\n"
          "a/very/...utput_0    1.5\n"
          "x                    -20\n");
    CHECK(table.text(200).find("a/very/long/tensor/name/output_0    1.5\n") != std::string::npos);
}

TEST_CASE("elided names keep both ends and whole characters") {
    CHECK(elide_middle("short", 10) == "short");
    CHECK(elide_middle("abcdefghij", 7) == "ab...ij");
    CHECK(elide_middle("\u00e4\u00f6\u00fc\u00df\u00e4\u00f6\u00fc\u00df", 7) ==
          "\u00e4\u00f6...\u00fc\u00df");
    CHECK(elide_middle("abcdef", 2) == "ab");
}
