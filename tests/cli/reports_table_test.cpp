// tests/cases/reports.tsv: every report of another calibrator's users has its place.
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/files.h"
#include "base/text.h"

using namespace qcalib;

namespace {

const std::filesystem::path tests_folder = std::filesystem::path(QCALIB_SOURCE_DIR) / "tests";

// The reports that were collected, by number; those left out were about what qcalib does not do.
constexpr std::array reports = {1,  2,  3,  4,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 17, 18, 20,
                                21, 23, 24, 25, 27, 29, 30, 31, 32, 33, 34, 35, 36, 37, 39, 40, 42,
                                43, 44, 45, 46, 48, 49, 51, 52, 53, 54, 56, 57, 58, 59, 60, 61, 62,
                                63, 64, 65, 68, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80};

// Those of Qualcomm's users.
constexpr std::array qualcomm_reports = {1,  2,  3,  4,  5,  7,  8,  9,  10, 11, 13, 15, 16, 18, 19,
                                         22, 23, 24, 26, 27, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40,
                                         41, 42, 43, 44, 45, 47, 48, 49, 50, 52, 54, 55, 57, 59, 60};

// Those of TIDL's, and of Samsung ONE's.
constexpr std::array tidl_reports = {1,  2,  3,  5,  6,  7,  8,  9,  11, 13, 14, 16, 17, 18, 20,
                                     21, 22, 23, 25, 26, 27, 28, 30, 31, 32, 34, 36, 37, 38, 39};
constexpr std::array circle_reports = {1,  2,  3,  4,  6,  7,  8,  10, 12, 13, 14, 16, 17,
                                       18, 20, 21, 22, 23, 24, 26, 27, 28, 30, 31, 32, 33,
                                       34, 35, 37, 38, 39, 40, 42, 43, 45, 46, 47, 50};

struct Report {
    std::string state;
    std::string place;
};

std::map<std::string, Report> read_reports() {
    std::map<std::string, Report> found;
    std::ifstream file(tests_folder / "cases/reports.tsv");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        const std::vector<std::string> fields = split(line, '\t');
        CAPTURE(line);
        REQUIRE(fields.size() == 3);
        CHECK(found.emplace(fields[0], Report{fields[1], fields[2]}).second);
    }
    return found;
}

// The text of a source file with its adjacent string literals joined.
std::string joined_literals(const std::filesystem::path& path) {
    std::string joined;
    for (const std::string& line : split(read_text_file(path), '\n')) {
        const std::string text(trim(line));
        if (text.starts_with('"') && joined.ends_with('"')) {
            joined.pop_back();
            joined += text.substr(1);
        } else {
            joined += text;
        }
    }
    return joined;
}

// "tests/x/y_test.cpp: the name of a test".
void check_test(const std::string& place) {
    const std::size_t colon = place.find(": ");
    REQUIRE(colon != std::string::npos);
    const std::filesystem::path path = tests_folder.parent_path() / place.substr(0, colon);
    REQUIRE(std::filesystem::is_regular_file(path));
    CHECK(joined_literals(path).find("TEST_CASE(\"" + place.substr(colon + 2) + "\")") != std::string::npos);
}

}  // namespace

TEST_CASE("every report has a place, and no place is of a report that is not there") {
    const std::map<std::string, Report> found = read_reports();
    CHECK(found.size() ==
          reports.size() + qualcomm_reports.size() + tidl_reports.size() + circle_reports.size());
    for (const int number : reports) {
        CAPTURE(number);
        CHECK(found.contains(fmt::format("peers-{}", number)));
    }
    for (const int number : qualcomm_reports) {
        CAPTURE(number);
        CHECK(found.contains(fmt::format("snpe-7.{}", number)));
    }
    for (const int number : tidl_reports) {
        CAPTURE(number);
        CHECK(found.contains(fmt::format("tidl-6.{}", number)));
    }
    for (const int number : circle_reports) {
        CAPTURE(number);
        CHECK(found.contains(fmt::format("circle-6.{}", number)));
    }
}

TEST_CASE("the case, test or reason that a report names is there") {
    for (const auto& [id, report] : read_reports()) {
        CAPTURE(id);
        if (report.state == "case") {
            CHECK(std::filesystem::is_regular_file(tests_folder / "cases" / report.place / "case.yaml"));
        } else if (report.state == "test") {
            check_test(report.place);
        } else {
            CHECK((report.state == "design" || report.state == "open"));
            CHECK(report.place.size() >= 10);
        }
    }
}
