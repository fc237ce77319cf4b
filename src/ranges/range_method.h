#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "statistics/statistics_file.h"
#include "tensor/grid.h"
#include "tensor/range.h"

namespace qcalib {

// All that is known of one tensor: its statistics and, sample by sample in order, its row entries.
class TensorSamples {
  public:
    TensorSamples(const StatisticsFile& file, std::size_t tensor);
    // A constant that is in no file, e.g. a channel of a weight. `statistics` has to outlive this.
    TensorSamples(std::string name, const TensorStatistics& statistics);

    const std::string& name() const { return name_; }
    bool constant() const { return constant_; }
    const TensorStatistics& statistics() const { return *statistics_; }
    std::size_t rows() const;  // 0 for a constant
    SampleSummary row(std::size_t index) const;

  private:
    std::string name_;
    bool constant_ = true;
    const TensorStatistics* statistics_;
    const StatisticsFile* file_ = nullptr;
    std::size_t tensor_ = 0;
};

// One setting of a method, for the listing and for validation.
struct MethodParameter {
    std::string name;  // as in --method ema:momentum=0.9
    double default_value = 0;
    double least = 0;
    double greatest = 0;
    std::string description;
    bool whole = false;  // whole numbers only
};

using MethodParameters =
    std::map<std::string, double>;  // complete: every parameter of the method has a value

// How a range is chosen from statistics. Stateless.
class RangeMethod {
  public:
    virtual ~RangeMethod() = default;
    virtual std::string name() const = 0;
    virtual std::string summary() const = 0;  // what it does, one paragraph
    virtual std::string source() const = 0;   // who does it so, and where this differs
    virtual std::vector<MethodParameter> parameters() const { return {}; }
    // Whether it needs what --statistics extremes leaves out: histograms, or the tails made from them.
    virtual bool needs_histogram(const MethodParameters& /*parameters*/) const { return false; }
    // The range of a tensor that is to be put on such a grid: min <= max, inside its observed extremes;
    // nothing where no sample has data. Methods that search take the grid's own arithmetic into account.
    virtual std::optional<Range> choose(const TensorSamples& tensor, const GridRules& grid,
                                        const MethodParameters& parameters) const = 0;
};

// All methods; listed in ranges/range_method.cpp.
std::span<const RangeMethod* const> range_methods();

// A method with all its parameters set.
struct MethodChoice {
    const RangeMethod* method = nullptr;
    MethodParameters parameters;

    bool needs_histogram() const { return method->needs_histogram(parameters); }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& grid) const {
        return method->choose(tensor, grid, parameters);
    }
};

// Parses "minmax" or "ema:momentum=0.95,group=4". Errors name the nearest method or parameter, or the allowed
// values.
MethodChoice parse_method(const std::string& text);

// "ema:group=1,momentum=0.9": the choice with every parameter.
std::string to_string(const MethodChoice& choice);

// The method of a run, or that of the tensors whose names match a pattern.
struct MethodRule {
    std::optional<std::string> pattern;  // a name, or a glob with * and ?; nothing: every tensor
    MethodChoice choice;
};

// Parses what parse_method takes, or "PATTERN=" and that: "ema:momentum=0.9", "conv*=mse", "input:0=mse". A
// pattern ends at the first '=' that the name of a method follows.
MethodRule parse_method_rule(const std::string& text);

}  // namespace qcalib
