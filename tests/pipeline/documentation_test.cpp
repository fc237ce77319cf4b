#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/files.h"
#include "cli/pipeline_settings.h"
#include "pipeline/schema.h"

using namespace qcalib;

TEST_CASE("docs/pipeline.md is what the schema prints") {
    const std::string page = read_text_file(std::filesystem::path(QCALIB_SOURCE_DIR) / "docs/pipeline.md");
    const bool same = page == pipeline_documentation(registry_documentation());
    CHECK_MESSAGE(same, "write it anew: qcalib list pipeline > docs/pipeline.md");
}

TEST_CASE("every key of the schema is documented, and no section has a key twice") {
    for (const PipelineSection& section : pipeline_schema()) {
        CAPTURE(section.name);
        CHECK_FALSE(section.description.empty());
        std::set<std::string> names;
        for (const PipelineKey& key : section.keys) {
            CAPTURE(key.name);
            CHECK(names.insert(key.name).second);
            CHECK(key.description.ends_with("."));
            CHECK_FALSE(expected_value(key).empty());
            if (key.type == PipelineType::section) CHECK(pipeline_section(key.section).name == key.section);
            if (key.type == PipelineType::choice) CHECK(key.choices.size() > 1);
            if (!key.required && section.name == "calibration") CHECK_FALSE(key.otherwise.empty());
        }
    }
}
