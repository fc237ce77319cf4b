#include "statistics/statistics_file.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "statistics/statistics_reader.h"

namespace qcalib {

StatisticsSet::StatisticsSet(std::size_t tensors)
    : statistics_(tensors), locks_(std::make_unique<std::mutex[]>(tensors)) {}

void StatisticsSet::merge(std::size_t tensor, const TensorStatistics& sample) {
    const std::lock_guard lock(locks_[tensor]);
    statistics_[tensor].merge(sample);
}

struct StatisticsFile::State {
    explicit State(const std::filesystem::path& path)
        : reader(std::make_shared<const StatisticsReader>(path)), rows(reader->rows()) {
        tensors.reserve(reader->header().tensors.size());
        for (std::size_t i = 0; i < reader->header().tensors.size(); ++i) {
            tensors.push_back(reader->tensor(i));
            indices.emplace(reader->header().tensors[i].name, i);
        }
    }
    State(const State& whole, std::size_t rows)
        : reader(whole.reader), rows(std::min(rows, whole.rows)), indices(whole.indices) {
        for (std::size_t i = 0; i < reader->header().tensors.size(); ++i) {
            tensors.push_back(reader->header().tensors[i].constant ? whole.tensors[i] : extremes_of_rows(i));
        }
    }

    TensorStatistics extremes_of_rows(std::size_t tensor) const {
        TensorStatistics statistics;
        for (std::size_t row = 0; row < rows; ++row) {
            const SampleSummary sample = reader->entry(row, tensor);
            if (!sample.has_data) continue;
            TensorStatistics one;
            one.extremes = Range{sample.min, sample.max};
            statistics.merge(one);
        }
        return statistics;
    }

    std::shared_ptr<const StatisticsReader> reader;
    std::size_t rows = 0;
    std::vector<TensorStatistics> tensors;
    std::unordered_map<std::string_view, std::size_t> indices;  // names lie in the reader's header
};

StatisticsFile::StatisticsFile(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}
StatisticsFile::StatisticsFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
StatisticsFile::~StatisticsFile() = default;

StatisticsFile StatisticsFile::first(std::size_t rows) const {
    return StatisticsFile(std::make_unique<State>(*state_, rows));
}

const std::filesystem::path& StatisticsFile::path() const {
    return state_->reader->path();
}
const StatisticsHeader& StatisticsFile::header() const {
    return state_->reader->header();
}
std::size_t StatisticsFile::rows() const {
    return state_->rows;
}
std::uint64_t StatisticsFile::row_number(std::size_t row) const {
    return state_->reader->row_number(row);
}
const TensorStatistics& StatisticsFile::tensor(std::size_t tensor) const {
    return state_->tensors[tensor];
}
const std::vector<std::uint64_t>& StatisticsFile::skipped() const {
    return state_->reader->skipped();
}

SampleSummary StatisticsFile::entry(std::size_t row, std::size_t tensor) const {
    return state_->reader->entry(row, tensor);
}

Row StatisticsFile::row(std::size_t row) const {
    Row result;
    result.number = row_number(row);
    for (std::size_t tensor = 0; tensor < header().tensors.size(); ++tensor) {
        if (!header().tensors[tensor].constant) result.entries.push_back(entry(row, tensor));
    }
    return result;
}

std::optional<std::size_t> StatisticsFile::find(std::string_view name) const {
    const auto found = state_->indices.find(name);
    if (found == state_->indices.end()) return std::nullopt;
    return found->second;
}

}  // namespace qcalib
