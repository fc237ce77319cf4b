#pragma once

#include <optional>
#include <string>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "target/parameters.h"

namespace qcalib {

// What a bias is added to: the product of these two.
struct BiasOperands {
    ValueId data = no_value;
    ValueId weight = no_value;
};

// Nothing where the use is none as a bias (BiasRule, or a constant that a fusion adds to a product).
std::optional<BiasOperands> bias_operands(const ParameterUse& use, const Graph& graph,
                                          const ConstantLookup& constant, const Target& target);

// 32 bits: symmetric, the scale of the data times that of the weight, a channel each where the weight has as
// many channels as the bias has elements; a remark where the bias does not fit. Other widths: the bias's
// extremes by the run's rules for weights.
TensorEncoding encode_bias(const std::string& name, const Tensor& value, const Encoding& data,
                           const TensorEncoding& weight, const ResolvedOptions& options, Remarks& remarks);

}  // namespace qcalib
