#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "statistics/counter.h"
#include "statistics/statistics_file.h"
#include "support/temporary_folder.h"
#include "target/assignment.h"

namespace qcalib::test {

// A graph built value by value, and statistics of the values said to be counted.
class AssignmentFixture {
  public:
    // The value of that name, made when it is first named.
    ValueId value(const std::string& name) {
        const auto found = graph.index.find(name);
        if (found != graph.index.end()) return found->second;
        const auto id = static_cast<ValueId>(graph.values.size());
        graph.values.emplace_back().name = name;
        graph.index.emplace(name, id);
        return id;
    }

    void input(const std::string& name, DataType type = DataType::float32) {
        graph.values[value(name)].declared_type = type;
        graph.inputs.push_back(value(name));
    }

    // An initializer; counted as one.
    void constant(const std::string& name, Shape shape, const std::vector<float>& values) {
        constant(name, Tensor::of<float>(std::move(shape), values));
        count(name, values);
    }
    void constant(const std::string& name, const Tensor& tensor) {
        graph.values[value(name)].declared_type = tensor.type();
        constants[value(name)] = tensor;
    }

    // The empty name leaves an input or output out.
    Node& node(const std::string& op_type, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
        Node node;
        node.op_type = op_type;
        node.name = fmt::format("n{}", graph.nodes.size());
        for (const std::string& name : inputs) node.inputs.push_back(name.empty() ? no_value : value(name));
        for (const std::string& name : outputs) {
            node.outputs.push_back(name.empty() ? no_value : value(name));
            if (!name.empty()) {
                graph.values[value(name)].producer = static_cast<std::uint32_t>(graph.nodes.size());
            }
        }
        graph.nodes.push_back(std::move(node));
        return graph.nodes.back();
    }

    // One sample of a float value.
    void count(const std::string& name, const std::vector<float>& values) {
        counted_.emplace_back(name, values);
    }
    void forget(const std::string& name) {
        std::erase_if(counted_, [&](const auto& entry) { return entry.first == name; });
    }

    EncodingSet assign(const AssignmentOptions& options = {}) {
        write_statistics();
        const StatisticsFile statistics(file());
        Remarks remarks;
        const ConstantLookup lookup = [this](ValueId id) -> const Tensor* {
            const auto found = constants.find(id);
            return found == constants.end() ? nullptr : &found->second;
        };
        decisions.clear();
        EncodingSet set = assign_encodings(graph, lookup, statistics, target, options, remarks, &decisions);
        this->remarks = remarks.all();
        return set;
    }

    std::string error(const AssignmentOptions& options = {}) {
        return message_of<Error>([&] { assign(options); });
    }

    std::filesystem::path file() const { return *folder_ / "m.qstats"; }

    Graph graph;
    Target target = load_target("snpe");
    CounterSettings counter;
    std::unordered_map<ValueId, Tensor> constants;  // what the lookup knows
    std::vector<Decision> decisions;                // of the last assignment
    std::vector<std::string> remarks;               // of the last assignment

  private:
    void write_statistics() const {
        StatisticsHeader header;
        header.selected = 1;
        header.counter = counter;
        header.instruction_set = "avx2";
        Counter counting(counter);
        std::vector<TensorStatistics> statistics;
        Row row;
        for (const auto& [name, values] : counted_) {
            const bool is_constant = constants.count(graph.index.at(name)) != 0;
            header.tensors.push_back({name, is_constant});
            statistics.push_back(counting.count(values));
            if (!is_constant) row.entries.push_back(summarize(statistics.back()));
        }
        StatisticsWriter writer(file(), header);
        writer.add_row(row);
        writer.finish(std::span<const TensorStatistics>(statistics), {});
    }

    std::vector<std::pair<std::string, std::vector<float>>> counted_;
    std::unique_ptr<TemporaryFolder> folder_ = std::make_unique<TemporaryFolder>();
};

inline const TensorEncoding* find_entry(const std::vector<TensorEncoding>& entries, const std::string& name) {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const TensorEncoding& entry) { return entry.tensor == name; });
    return found == entries.end() ? nullptr : &*found;
}

inline std::vector<std::string> names_of(const std::vector<TensorEncoding>& entries) {
    std::vector<std::string> names;
    for (const TensorEncoding& entry : entries) names.push_back(entry.tensor);
    return names;
}

}  // namespace qcalib::test
