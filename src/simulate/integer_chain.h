#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulate/comparison.h"
#include "simulate/encodings.h"
#include "simulate/fake_quantize.h"
#include "simulate/model.h"

namespace qcalib {

// What quantizing a constant did to it.
struct QuantizedConstant {
    QuantizationSums sums;
    ErrorSums error;  // before, and after
    double step = 0;
};

// The codes of an activation: integers of so many bits, q = round(x * scale).
struct ChainTensor {
    int bits = 8;
    bool is_signed = true;
    double scale = 1;

    double least() const;
    double greatest() const;
};

// A model in the integer arithmetic that is known of TIDL: layers compute on codes, sums are exact, and a
// shift brings them to the output's scale. It is made of what is public; that it is bit-exact is not claimed.
struct IntegerChain {
    std::shared_ptr<const Graph>
        graph;  // of chain_kernels(); values of the model keep their numbers and are reals
    std::unordered_map<ValueId, ChainTensor> tensors;
    std::unordered_map<ValueId, QuantizedConstant> constants;  // weights and biases
    std::vector<std::string> notes;                            // what was computed how, for the report
};

// Codes of weights that chains of one model share.
using ChainWeightCache = std::map<std::string, Tensor>;

// The chain of a model whose activations and weights have these encodings; ranges of activations come from
// them or from Clips, weights and biases from the model. What cannot be computed in integers is in float and
// named in a note. Sums of a convolution are kept exact: where they could reach 2^24, weights and codes are
// split into digits whose sums cannot.
IntegerChain make_integer_chain(const SimulatedModel& model, const SimulatedEncodings& encodings,
                                const SimulationSwitches& switches, ChainWeightCache* cache = nullptr);

}  // namespace qcalib
