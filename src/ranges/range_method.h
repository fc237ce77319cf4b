#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "statistics/statistics_file.h"
#include "tensor/range.h"

namespace qcalib {

// All that is known of one tensor: its statistics and, sample by sample in order, its row entries.
class TensorSamples {
  public:
    TensorSamples(const StatisticsFile& file, std::size_t tensor);

    const std::string& name() const;
    bool constant() const;
    const TensorStatistics& statistics() const;
    std::size_t rows() const;  // 0 for a constant
    SampleSummary row(std::size_t index) const;

  private:
    const StatisticsFile* file_;
    std::size_t tensor_;
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
    virtual std::string summary() const = 0;  // what it does and its source, one paragraph
    virtual std::vector<MethodParameter> parameters() const { return {}; }
    virtual bool needs_histogram() const { return false; }
    virtual bool needs_tails() const { return false; }
    // The range of a tensor, inside its observed extremes; nothing where no sample has data.
    virtual std::optional<Range> choose(const TensorSamples& tensor,
                                        const MethodParameters& parameters) const = 0;
};

// All methods; listed in ranges/range_method.cpp.
std::span<const RangeMethod* const> range_methods();

// A method with all its parameters set.
struct MethodChoice {
    const RangeMethod* method = nullptr;
    MethodParameters parameters;
};

// Parses "minmax" or "ema:momentum=0.95,group=4". Errors name the nearest method or parameter, or the allowed
// values.
MethodChoice parse_method(const std::string& text);

// "ema:group=1,momentum=0.9": the choice with every parameter.
std::string to_string(const MethodChoice& choice);

}  // namespace qcalib
