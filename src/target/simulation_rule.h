#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace qcalib {

// How a value that falls halfway between two codes is rounded.
enum class ValueRounding : std::uint8_t { half_up, half_away, half_even };

// Which encoding a weight is quantized with.
enum class WeightSource : std::uint8_t {
    given,   // the one in the file of encodings; where it has none, that of the weight's own extremes
    file,    // anew, of the extremes of the weight in the model
    clipped  // anew, of the weight after it was clipped to the ends of the given grid (as MQBench writes it)
};

// What a bias is. int32: at the scale of input times weight; int8: of its own extremes; split: a product of
// two integers at the scale of input times weight, one of 16 bits (IntegerChain alone).
enum class BiasForm : std::uint8_t { floating, int32, int8, split };

// Whose ranges the graph's inputs and what is computed of them without weights have.
enum class InputRanges : std::uint8_t {
    given,  // the file's
    list,   // those measured on the converter's own list of samples
};

// Whether a value that one Relu or Clip alone reads is quantized itself.
enum class PreActivations : std::uint8_t { quantized, skipped };

// How layers compute.
enum class Arithmetic : std::uint8_t {
    fake,     // in float, on values rounded to their grids
    integer,  // on codes: exact sums, a shift to the output's scale
};

// What the codes of the network's inputs are.
enum class NetworkInput : std::uint8_t {
    signed_power_of_two,  // 2^(bits-1) / 2^ceil(log2(max_abs)), whatever the sign of the data
    given,                // as their encodings say
};

// A Clip that an input goes through before all else.
enum class LeadingClip : std::uint8_t {
    batch_norm,  // a layer of its own: a batch norm of weight 1
    dropped,     // none
};

// The largest positive weight, 2^(bits-1) at its own scale, which has no code.
enum class TopWeight : std::uint8_t {
    saturated,  // 2^(bits-1) - 1
    kept,       // as if it had one
};

// How an accumulator that is shifted to the right is rounded.
enum class ShiftRounding : std::uint8_t { half_up, floor, half_even };

// The scale of a layer's output.
enum class OutputScale : std::uint8_t {
    shifted,  // the accumulator's, divided by a power of two
    given,    // that of its encoding
};

// Whether codes have a sign.
enum class ElementSigns : std::uint8_t {
    graph,  // unless the layer ends in a Relu or a Clip from 0
    given,  // as the encoding says
};

// The assumptions of the integer arithmetic of TIDL.
struct ChainSwitches {
    NetworkInput network_input = NetworkInput::signed_power_of_two;
    LeadingClip leading_clip = LeadingClip::batch_norm;
    TopWeight batch_norm_weights = TopWeight::saturated;
    TopWeight layer_weights = TopWeight::saturated;
    ShiftRounding shift_rounding = ShiftRounding::half_up;
    OutputScale output_scale = OutputScale::shifted;
    ElementSigns element_signs = ElementSigns::graph;

    bool operator==(const ChainSwitches&) const = default;
};

// What is known to differ between the tools and devices that run a quantized model.
struct SimulationSwitches {
    ValueRounding rounding = ValueRounding::half_up;
    WeightSource weights = WeightSource::given;
    BiasForm bias = BiasForm::floating;
    InputRanges inputs = InputRanges::given;
    PreActivations pre_activations = PreActivations::quantized;
    Arithmetic arithmetic = Arithmetic::fake;
    ChainSwitches chain;  // where the arithmetic is integer

    bool operator==(const SimulationSwitches&) const = default;
};

// The names of all values of a switch, by their enumerators.
constexpr std::array<std::string_view, 3> rounding_names{"half-up", "half-away", "half-even"};
constexpr std::array<std::string_view, 3> weight_source_names{"given", "file", "clipped"};
constexpr std::array<std::string_view, 4> bias_form_names{"float", "int32", "int8", "split"};
constexpr std::array<std::string_view, 2> input_range_names{"given", "list"};
constexpr std::array<std::string_view, 2> pre_activation_names{"quantized", "skipped"};
constexpr std::array<std::string_view, 2> arithmetic_names{"fake", "integer"};
constexpr std::array<std::string_view, 2> network_input_names{"signed-p2", "given"};
constexpr std::array<std::string_view, 2> leading_clip_names{"batch-norm", "dropped"};
constexpr std::array<std::string_view, 2> top_weight_names{"saturated", "kept"};
constexpr std::array<std::string_view, 3> shift_rounding_names{"half-up", "floor", "half-even"};
constexpr std::array<std::string_view, 2> output_scale_names{"shifted", "given"};
constexpr std::array<std::string_view, 2> element_sign_names{"graph", "given"};

}  // namespace qcalib
