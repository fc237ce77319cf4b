#include "report/calibration_report.h"

#include <filesystem>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "statistics/counter.h"

namespace qcalib {
namespace {

using Json = nlohmann::json;

// Statistics of an activation with the values -1, 0, 3 in one sample, and of a constant.
class SmallStatistics {
  public:
    SmallStatistics() {
        StatisticsHeader header;
        header.model_hash = "abc";
        header.settings = "resize=none\nseed=none";
        header.instruction_set = "avx2";
        header.selected = 2;
        header.tensors = {{"x", false}, {"w", true}};
        const std::vector<float> x = {-1, 0, 3};
        const std::vector<float> w = {0.5};
        Counter counter;
        std::vector<TensorStatistics> statistics = {counter.count(x), {}};
        StatisticsWriter writer(path_, header);
        writer.add_row({0, {summarize(statistics[0])}});
        statistics[1] = counter.count(w);
        const std::vector<std::uint64_t> skipped = {1};
        writer.finish(statistics, skipped);
    }
    ~SmallStatistics() { std::filesystem::remove(path_); }
    SmallStatistics(const SmallStatistics&) = delete;
    SmallStatistics& operator=(const SmallStatistics&) = delete;

    StatisticsFile file() const { return StatisticsFile(path_); }

  private:
    std::filesystem::path path_ =
        std::filesystem::temp_directory_path() / "qcalib_calibration_report_test.qstats";
};

ReportedTarget small_target() {
    ReportedTarget target{"snpe", "snpe", "m.snpe.json", "snpe: method minmax", {}};
    ReportedEncoding x;
    x.tensor = "x";
    x.kind = "activation";
    x.method = "minmax";
    x.origin = "minmax";
    x.ranges = {{-1, 3}};
    x.encoding = TensorEncoding{"x", {encode_asymmetric({-1, 3}, 8, 0.01)}, {}, "minmax"};
    ReportedEncoding weight;
    weight.tensor = "unseen";
    weight.kind = "weight";
    weight.no_encoding = "skipped";
    weight.overrides = {"--override 'unseen'"};
    target.encodings = {x, weight};
    return target;
}

TEST_CASE("a report says how to repeat the run") {
    const SmallStatistics statistics;
    CalibrationReport report{"1.2", "m.onnx", "list.txt", "def", 7, {small_target()}, {"a remark"}};
    const Json json = Json::parse(report_json(report, statistics.file()));
    CHECK(json["version"] == 1);
    CHECK(json["qcalib"] == "1.2");
    CHECK(json["run"]["model_sha256"] == "abc");
    CHECK(json["run"]["data_sha256"] == "def");
    CHECK(json["run"]["settings"] == Json({"resize=none", "seed=none"}));
    CHECK(json["run"]["shuffle_seed"] == 7);
    CHECK(json["run"]["samples"]["selected"] == 2);
    CHECK(json["run"]["samples"]["counted"] == 1);
    CHECK(json["run"]["samples"]["skipped"] == Json({1}));
    CHECK(json["remarks"] == Json({"a remark"}));
    CHECK(json["targets"][0]["file"] == "m.snpe.json");
    report.shuffle_seed.reset();
    CHECK(Json::parse(report_json(report, statistics.file()))["run"]["shuffle_seed"].is_null());
}

TEST_CASE("an entry without a range is reported by its type and width, one in blocks with these") {
    const SmallStatistics statistics;
    ReportedTarget target = small_target();
    target.encodings[0].encoding = TensorEncoding{"x", {}, {}, "base"};
    target.encodings[0].encoding->type = CodeType::floating;
    target.encodings[0].encoding->bits = 16;
    target.encodings[1].encoding = TensorEncoding{"unseen", {{}, {}}, 0, "base"};
    target.encodings[1].encoding->block_axis = 1;
    target.encodings[1].encoding->block_size = 32;
    const CalibrationReport report{"1.2", "m.onnx", "", "", {}, {target}, {}};
    const Json tensors = Json::parse(report_json(report, statistics.file()))["tensors"];
    const Json& of_x = tensors[0]["targets"][0];
    CHECK(of_x["type"] == "float");
    CHECK(of_x["bits"] == 16);
    CHECK_FALSE(of_x.contains("encodings"));
    const Json& in_blocks = tensors[2]["targets"][0];
    CHECK(in_blocks["block_axis"] == 1);
    CHECK(in_blocks["block_size"] == 32);
    CHECK(in_blocks["encodings"].size() == 2);
}

TEST_CASE("a report has every tensor once, with its statistics and each target's encoding") {
    const SmallStatistics statistics;
    const CalibrationReport report{"1.2", "m.onnx", "", "", {}, {small_target()}, {}};
    const Json tensors = Json::parse(report_json(report, statistics.file()))["tensors"];
    REQUIRE(tensors.size() == 3);
    CHECK(tensors[0]["name"] == "x");
    CHECK(tensors[0]["samples"] == 1);
    CHECK(tensors[0]["statistics"]["range"] == Json({-1.0, 3.0}));
    CHECK(tensors[0]["statistics"]["zeros"] == 1);
    CHECK(tensors[0]["statistics"]["elements"] == 3);
    CHECK(tensors[0]["statistics"]["mean"].get<double>() == doctest::Approx(2.0 / 3).epsilon(0.01));
    const Json& encoded = tensors[0]["targets"][0];
    CHECK(encoded["method"] == "minmax");
    CHECK(encoded["ranges"] == Json::array({Json({-1.0, 3.0})}));
    CHECK(encoded["encodings"][0]["scale"].get<double>() == doctest::Approx(4.0 / 255));
    CHECK(tensors[1]["name"] == "w");
    CHECK(tensors[1]["constant"] == true);
    CHECK_FALSE(tensors[1].contains("targets"));
    CHECK(tensors[2]["name"] == "unseen");
    CHECK(tensors[2]["targets"][0]["no_encoding"] == "skipped");
    CHECK(tensors[2]["targets"][0]["overrides"] == Json({"--override 'unseen'"}));
}

}  // namespace
}  // namespace qcalib
