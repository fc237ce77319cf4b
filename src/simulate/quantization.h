#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/remarks.h"
#include "simulate/comparison.h"
#include "simulate/encodings.h"
#include "simulate/fake_quantize.h"
#include "simulate/integer_chain.h"
#include "simulate/model.h"

namespace qcalib {

// All that a simulated run changes: activations as they are made, constants before.
struct Quantization {
    std::vector<std::shared_ptr<const TensorQuantizer>> activations;  // by value; nullptr: left as it is
    std::map<ValueId, Tensor> replaced;                               // constants
    std::unordered_map<ValueId, QuantizedConstant> constants;         // of `replaced`
    std::string digest;                                               // of `replaced`: equal where it is
    std::shared_ptr<const IntegerChain> chain;  // run in place of the model; then `replaced` is empty

    // Whether the run makes codes of that activation.
    bool quantizes(ValueId value) const {
        return activations[value] != nullptr || (chain != nullptr && chain->tensors.contains(value));
    }
};

// The run of a model under these encodings; with BiasForm::int32 and int8 the biases of operators whose input
// and weight are encoded are quantized too. Encodings that cannot be computed become remarks, and their
// tensors stay in float.
Quantization make_quantization(const SimulatedModel& model, const SimulatedEncodings& encodings,
                               ValueRounding rounding, BiasForm bias, Remarks& remarks);

// The same by the arithmetic of the switches: fake quantization as above, or the integer chain.
Quantization make_quantization(const SimulatedModel& model, const SimulatedEncodings& encodings,
                               const SimulationSwitches& switches, Remarks& remarks,
                               ChainWeightCache* cache = nullptr);

}  // namespace qcalib
