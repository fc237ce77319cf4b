#include "report/calibration_report.h"

#include <cmath>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace qcalib {

namespace {

using Json = nlohmann::ordered_json;

constexpr int schema_version = 1;
constexpr int indent = 1;

Json json_of(Range range) {
    return Json::array({range.min, range.max});
}

// How many samples have a value of each tensor; 0 for constants.
std::vector<std::size_t> samples_with_data(const StatisticsFile& file) {
    const std::vector<TensorInfo>& tensors = file.header().tensors;
    std::vector<std::size_t> samples(tensors.size());
    for (std::size_t row = 0; row < file.rows(); ++row) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (!tensors[i].constant && file.entry(row, i).has_data) ++samples[i];
        }
    }
    return samples;
}

Json statistics_json(const TensorStatistics& statistics, bool extremes_only) {
    Json json = {{"zeros", statistics.zeros},
                 {"nan", statistics.nans},
                 {"positive_infinity", statistics.positive_infinities},
                 {"negative_infinity", statistics.negative_infinities},
                 {"positive_masks", statistics.positive_masks},
                 {"negative_masks", statistics.negative_masks}};
    if (!statistics.extremes) return json;
    json["range"] = json_of(*statistics.extremes);
    if (extremes_only) return json;
    const Moments of_values = moments(statistics);
    json["elements"] = statistics.elements();
    json["mean"] = of_values.mean;
    json["standard_deviation"] = std::sqrt(of_values.variance);
    json["percentiles"] = {{"0.01", quantile(statistics, 0.0001)},
                           {"50", quantile(statistics, 0.5)},
                           {"99.99", quantile(statistics, 0.9999)}};
    return json;
}

Json encoding_json(const TensorEncoding& entry) {
    Json json;
    if (entry.axis) json["axis"] = *entry.axis;
    if (entry.block_axis) json["block_axis"] = *entry.block_axis;
    if (entry.block_axis) json["block_size"] = entry.block_size;
    if (entry.encodings.empty()) {  // the type and width alone
        json["type"] = entry.type == CodeType::floating ? "float" : "int";
        json["bits"] = entry.bits;
        return json;
    }
    Json list = Json::array();
    for (const Encoding& encoding : entry.encodings) {
        list.push_back({{"bits", encoding.bits},
                        {"min", encoding.min},
                        {"max", encoding.max},
                        {"scale", encoding.scale},
                        {"offset", encoding.offset},
                        {"symmetric", encoding.symmetric}});
    }
    json["encodings"] = std::move(list);
    return json;
}

Json reported_json(const std::string& target, const ReportedEncoding& reported) {
    Json json = {{"target", target}, {"kind", reported.kind}};
    if (!reported.method.empty()) json["method"] = reported.method;
    if (!reported.origin.empty()) json["origin"] = reported.origin;
    if (!reported.ranges.empty()) {
        json["ranges"] = Json::array();
        for (const Range& range : reported.ranges) json["ranges"].push_back(json_of(range));
    }
    if (reported.encoding) json.update(encoding_json(*reported.encoding));
    if (!reported.no_encoding.empty()) json["no_encoding"] = reported.no_encoding;
    if (!reported.overrides.empty()) json["overrides"] = reported.overrides;
    if (!reported.notes.empty()) json["notes"] = reported.notes;
    return json;
}

// Every tensor once: those with statistics in the file's order, then what else has an encoding.
class TensorList {
  public:
    void add_statistics(const StatisticsFile& file) {
        const std::vector<std::size_t> samples = samples_with_data(file);
        const std::vector<TensorInfo>& tensors = file.header().tensors;
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            Json& json = entry(tensors[i].name);
            json["constant"] = tensors[i].constant;
            if (!tensors[i].constant) json["samples"] = samples[i];
            json["statistics"] = statistics_json(file.tensor(i), file.header().counter.extremes_only);
        }
    }
    void add_target(const ReportedTarget& target) {
        for (const ReportedEncoding& reported : target.encodings) {
            entry(reported.tensor)["targets"].push_back(reported_json(target.target, reported));
        }
    }
    Json take() { return std::move(list_); }

  private:
    Json& entry(const std::string& name) {
        const auto [place, is_new] = place_of_.emplace(name, list_.size());
        if (is_new) list_.push_back({{"name", name}});
        return list_[place->second];
    }

    Json list_ = Json::array();
    std::unordered_map<std::string, std::size_t> place_of_;
};

Json run_json(const CalibrationReport& report, const StatisticsFile& file) {
    const StatisticsHeader& header = file.header();
    Json json = {{"model", report.model}, {"model_sha256", header.model_hash}};
    if (!report.data.empty()) json["data"] = report.data;
    if (!report.data_sha256.empty()) json["data_sha256"] = report.data_sha256;
    json["settings"] = split(header.settings, '\n');
    json["statistics"] = header.counter.extremes_only ? "extremes" : "full";
    if (header.counter.mask_below) json["mask_below"] = *header.counter.mask_below;
    json["shuffle_seed"] = report.shuffle_seed ? Json(*report.shuffle_seed) : Json();
    json["instruction_set"] = header.instruction_set;
    json["shard"] = {header.shard, header.shards};
    Json samples = {{header.sequences ? "selected_sequences" : "selected", header.selected},
                    {"counted", file.rows()}};
    samples["skipped"] = file.skipped();
    json["samples"] = std::move(samples);
    return json;
}

}  // namespace

std::string report_json(const CalibrationReport& report, const StatisticsFile& statistics) {
    Json json = {{"report", "qcalib"}, {"version", schema_version}, {"qcalib", report.program_version}};
    json["run"] = run_json(report, statistics);
    json["targets"] = Json::array();
    TensorList tensors;
    tensors.add_statistics(statistics);
    for (const ReportedTarget& target : report.targets) {
        json["targets"].push_back({{"target", target.target},
                                   {"format", target.format},
                                   {"file", target.file},
                                   {"settings", target.settings}});
        tensors.add_target(target);
    }
    json["remarks"] = report.remarks;
    json["tensors"] = tensors.take();
    return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace qcalib
