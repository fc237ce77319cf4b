#include <filesystem>

#include <doctest/doctest.h>

#include "base/files.h"

using namespace qcalib;

TEST_CASE("every example pipeline is run by the case example_pipelines") {
    const std::filesystem::path root = QCALIB_SOURCE_DIR;
    const std::string runs = read_text_file(root / "tests/cases/example_pipelines/case.yaml");
    std::size_t examples = 0;
    for (const auto& entry : std::filesystem::directory_iterator(root / "configs")) {
        if (entry.path().extension() != ".yaml") continue;
        ++examples;
        CAPTURE(entry.path().filename().string());
        CHECK(runs.find("run ${CONFIGS}/" + entry.path().filename().string()) != std::string::npos);
    }
    CHECK(examples >= 6);
}
