// Every file of broken/ has the faults, places and hints that stand in the file of its name beside it.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "cli/pipeline_settings.h"
#include "pipeline/pipeline.h"

using namespace qcalib;
namespace fs = std::filesystem;

namespace {

const fs::path folder = fs::path(QCALIB_SOURCE_DIR) / "tests/pipeline/broken";

std::vector<fs::path> broken_files() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

// The text without the folder's path before names of files.
std::string without_folder(std::string text) {
    const std::string prefix = folder.string() + "/";
    for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;)
        text.erase(at, prefix.size());
    return text;
}

std::string faults_of(const fs::path& file) {
    try {
        PipelineFaults faults;
        const Environment none = [](const std::string&) { return std::nullopt; };
        const Pipeline pipeline = load_pipeline(file, {}, none, faults);
        FlagPlaces places;
        pipeline_settings(pipeline, places, faults);
        faults.throw_if_any();
    } catch (const Error& error) {
        return without_folder(error.what()) + "\n";
    }
    return "";
}

}  // namespace

TEST_CASE("broken pipelines have all their faults reported, each with its place and a hint") {
    const std::vector<fs::path> files = broken_files();
    CHECK(files.size() >= 20);
    for (const fs::path& file : files) {
        CAPTURE(file.filename().string());
        const fs::path expected = fs::path(file).replace_extension(".txt");
        REQUIRE(fs::is_regular_file(expected));
        CHECK(faults_of(file) == read_text_file(expected));
    }
}
