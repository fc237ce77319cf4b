#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "ranges/range_method.h"
#include "tensor/grid.h"
#include "tensor/tensor.h"

namespace qcalib {

// The ranges a method gives a float32 weight: of the whole, or of each slice along `axis`. NaN and infinities
// are an Error that starts with the tensor's name.
std::vector<Range> chosen_weight_ranges(const Tensor& weight, std::optional<int> axis,
                                        const std::string& name, const MethodChoice& choice,
                                        const GridRules& grid);

// What is odd about the channels of a model's weights.
class ChannelRemarks {
  public:
    // `ranges` are the channels' extremes. Dead: all zero. Outlier, looked for where channels share one
    // encoding: its greatest magnitude is eight times the median channel's or more, which costs the median
    // channel three bits.
    void look_at(const std::string& weight, std::span<const Range> ranges, bool per_channel);

    // A remark for dead channels, one for outliers; starts anew.
    void add_to(Remarks& remarks);

  private:
    std::vector<std::string> dead_;  // "'w' (3, 17)"
    std::vector<std::string> outliers_;
};

}  // namespace qcalib
