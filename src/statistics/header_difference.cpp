#include "statistics/header_difference.h"

#include <algorithm>

#include "base/text.h"

namespace qcalib {

namespace {

// The first line in which two texts differ.
HeaderDifference differing_lines(const std::string& expected, const std::string& found) {
    const std::vector<std::string> lines_expected = split(expected, '\n');
    const std::vector<std::string> lines_found = split(found, '\n');
    const auto line = [](const std::vector<std::string>& lines, std::size_t i) {
        return i < lines.size() ? fmt::format("'{}'", printable(lines[i])) : std::string("nothing");
    };
    std::size_t i = 0;
    while (i < lines_expected.size() && i < lines_found.size() && lines_expected[i] == lines_found[i]) ++i;
    return {"a line of the settings", line(lines_expected, i), line(lines_found, i)};
}

std::string describe(const CounterSettings& counter) {
    return fmt::format("{}, masks below {}", counter.extremes_only ? "extremes" : "full",
                       counter.mask_below ? fmt::format("{}", *counter.mask_below) : "nothing");
}

std::string describe(const TensorInfo& tensor) {
    return fmt::format("'{}'{}", printable(tensor.name), tensor.constant ? ", a constant" : "");
}

std::optional<HeaderDifference> differing_tensors(const std::vector<TensorInfo>& expected,
                                                  const std::vector<TensorInfo>& found) {
    if (expected.size() != found.size()) {
        return HeaderDifference{"the number of tensors", fmt::format("{}", expected.size()),
                                fmt::format("{}", found.size())};
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] == found[i]) continue;
        return HeaderDifference{fmt::format("tensor {}", i), describe(expected[i]), describe(found[i])};
    }
    return std::nullopt;
}

}  // namespace

std::optional<HeaderDifference> difference_of_runs(const StatisticsHeader& expected,
                                                   const StatisticsHeader& found) {
    const auto numbers = [](std::string what, std::uint64_t one, std::uint64_t other) {
        return HeaderDifference{std::move(what), fmt::format("{}", one), fmt::format("{}", other)};
    };
    if (expected.model_hash != found.model_hash) {
        return HeaderDifference{"the model hash", printable(expected.model_hash),
                                printable(found.model_hash)};
    }
    if (expected.settings != found.settings) return differing_lines(expected.settings, found.settings);
    if (expected.instruction_set != found.instruction_set) {
        return HeaderDifference{"the instruction set", printable(expected.instruction_set),
                                printable(found.instruction_set)};
    }
    if (!(expected.counter == found.counter)) {
        return HeaderDifference{"the kind of statistics", describe(expected.counter),
                                describe(found.counter)};
    }
    if (expected.selected != found.selected) {
        return numbers("the number of samples", expected.selected, found.selected);
    }
    if (expected.shards != found.shards) {
        return numbers("the number of shards", expected.shards, found.shards);
    }
    return differing_tensors(expected.tensors, found.tensors);
}

}  // namespace qcalib
