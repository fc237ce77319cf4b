#include "pipeline/pipeline.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

// A folder with a model and a list, and pipelines in it.
struct Scene {
    TemporaryFolder folder;

    Scene() {
        write("model.onnx", "");
        write("list.txt", "");
    }
    void write(const std::string& name, const std::string& text) {
        fs::create_directories((folder.path() / name).parent_path());
        write_file(folder.path() / name, text);
    }
    Pipeline load(const std::vector<std::string>& settings = {}, const Environment& environment = nothing) {
        PipelineFaults faults;
        Pipeline pipeline = load_pipeline(folder.path() / "p.yaml", settings, environment, faults);
        faults.throw_if_any();
        return pipeline;
    }
    // The faults without the folder's path.
    std::string faults(const std::vector<std::string>& settings = {},
                       const Environment& environment = nothing) {
        try {
            load(settings, environment);
        } catch (const Error& error) {
            std::string text = error.what();
            const std::string prefix = folder.path().string() + "/";
            for (std::size_t at = 0; (at = text.find(prefix)) != std::string::npos;)
                text.erase(at, prefix.size());
            return text;
        }
        return "";
    }
    static std::optional<std::string> nothing(const std::string&) { return std::nullopt; }
};

const std::string least = "model: model.onnx\ndata: list.txt\n";

}  // namespace

TEST_CASE("short forms are written out and paths are looked up beside the file") {
    Scene scene;
    scene.write("p.yaml", least + "targets: snpe\n");
    const Pipeline pipeline = scene.load();
    CHECK(pipeline.text("data.list") == (scene.folder.path() / "list.txt").string());
    CHECK(pipeline.items("targets").size() == 1);
    CHECK(pipeline.items("targets").front()->find("name")->scalar == "snpe");
    CHECK(pipeline.integer("calibration.jobs") == std::nullopt);
    CHECK(pipeline.text("output", "none") == "none");
}

TEST_CASE("a resolved pipeline is a pipeline that resolves to itself") {
    Scene scene;
    scene.write("more.yaml", "calibration: {jobs: 3, method: [minmax, 'a=mse']}\nselection: {limit: 5}\n");
    scene.write("p.yaml", "include: more.yaml\n" + least +
                              "calibration: {jobs: 4}\ntargets: [snpe, {name: snpe, format: x}]\n"
                              "overrides: {'conv*': {bits: 4}, '1': {skip: true}}\n"
                              "report: {explain: ['12', yes]}\n");
    const std::string resolved = scene.load().yaml();
    CHECK(resolved.find("jobs: 4") != std::string::npos);
    CHECK(resolved.find("limit: 5") != std::string::npos);
    CHECK(resolved.find("isa: best") != std::string::npos);
    scene.write("p.yaml", resolved);
    CHECK(scene.load().yaml() == resolved);
}

TEST_CASE("what includes say holds where the file says nothing, later ones before earlier ones") {
    Scene scene;
    scene.write("parts/a.yaml",
                "calibration: {jobs: 1, memory: 1G, isa: avx2}\ntargets: [a, b]\ninclude: deep.yaml\n");
    scene.write("parts/deep.yaml", "calibration: {checkpoint: 7, isa: sse4}\n");
    scene.write("parts/b.yaml", "calibration: {memory: 2G}\n");
    scene.write("p.yaml",
                "include: [parts/a.yaml, parts/b.yaml]\n" + least + "calibration: {jobs: 9}\ntargets: c\n");
    const Pipeline pipeline = scene.load();
    CHECK(pipeline.integer("calibration.jobs") == 9);
    CHECK(pipeline.text("calibration.memory") == "2G");
    CHECK(pipeline.text("calibration.isa") == "avx2");
    CHECK(pipeline.integer("calibration.checkpoint") == 7);
    CHECK(pipeline.items("targets").size() == 1);
}

TEST_CASE("faults of an included file name that file, and a missing one the place that includes it") {
    Scene scene;
    scene.write("parts/a.yaml", "# first\ncalibration:\n  jobs: x\n");
    scene.write("p.yaml", "include: parts/a.yaml\n" + least);
    CHECK(scene.faults() == "parts/a.yaml:3:9: jobs: expected a whole number from 1 to 4096, found 'x'");
    scene.write("p.yaml", "include: [parts/b.yaml]\n" + least);
    CHECK(scene.faults() == "p.yaml:1:11: include: no file 'parts/b.yaml'");
}

TEST_CASE("settings of the command line go over the file, the last of them first") {
    Scene scene;
    scene.write("p.yaml", least + "targets: [snpe, qnn]\ncalibration:\n");
    const Pipeline pipeline =
        scene.load({"calibration.jobs=2", "calibration.jobs=3", "targets.1.format=json", "selection.limit=8",
                    "data.shapes.\"x.y\"=[1, 2]", "calibration.method=[mse, 'a=ema']"});
    CHECK(pipeline.integer("calibration.jobs") == 3);
    CHECK(pipeline.integer("selection.limit") == 8);
    CHECK(pipeline.items("targets")[1]->find("format")->scalar == "json");
    CHECK(pipeline.find("data.shapes")->find("x.y")->items.size() == 2);
    CHECK(pipeline.texts("calibration.method") == std::vector<std::string>{"mse", "a=ema"});
}

TEST_CASE("faults of settings name the setting") {
    Scene scene;
    scene.write("p.yaml", least + "targets: [snpe]\n");
    CHECK(scene.faults({"calibration.jobs=many"}) ==
          "--set calibration.jobs=many: jobs: expected a whole number from 1 to 4096, found 'many'");
    CHECK(scene.faults({"calibraton.jobs=4"})
              .find("--set calibraton.jobs=4: pipeline: unknown key 'calibraton'") == 0);
    CHECK(scene.faults({"jobs"}) == "--set jobs: expected KEY=VALUE, as calibration.jobs=4");
    CHECK(scene.faults({"model.x=4"}) == "--set model.x=4: expected a map to set 'x' in, found 'model.onnx'");
    CHECK(scene.faults({"targets.3=snpe"}) ==
          "--set targets.3=snpe: expected the number of an item of the list, 0 to 0, found '3'");
    CHECK(scene.faults({"calibration.method=[mse"}).find("--set calibration.method=[mse: expected YAML") ==
          0);
}

TEST_CASE("variables of the environment are put in, with a default where they may be unset") {
    Scene scene;
    const Environment environment = [](const std::string& name) -> std::optional<std::string> {
        if (name == "JOBS") return "5";
        if (name == "EMPTY") return "";
        return std::nullopt;
    };
    scene.write("p.yaml",
                least + "calibration: {jobs: \"7\"}\noutput: a-${JOBS}-${NONE:-b}${EMPTY:-c}$${x}\n");
    CHECK(scene.faults({}, environment).find("p.yaml:3:21: jobs: expected a whole number") == 0);
    scene.write("p.yaml",
                least + "calibration:\n  jobs: ${JOBS}\noutput: a-${JOBS}-${NONE:-b}${EMPTY:-c}$${x}\n");
    const Pipeline pipeline = scene.load({}, environment);
    CHECK(pipeline.integer("calibration.jobs") == 5);
    CHECK(pipeline.text("output") == "a-5-bc${x}");
    CHECK(scene.faults({"output=${NONE}"}, environment) ==
          "--set output=${NONE}: environment variable 'NONE' is not set (${NONE:-default} does without)");
}

TEST_CASE("a fraction is a number") {
    CHECK(parse_fraction("1/255") == 1.0 / 255);
    CHECK(parse_fraction("-0.5") == -0.5);
    CHECK(parse_fraction("1/0") == std::nullopt);
    CHECK(parse_fraction("1/x") == std::nullopt);
    CHECK(parse_fraction("") == std::nullopt);
    CHECK(parse_fraction("nan") == std::nullopt);
}
