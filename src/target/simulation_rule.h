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

// What a bias is. int32: at the scale of input times weight; int8: of its own extremes.
enum class BiasForm : std::uint8_t { floating, int32, int8 };

// Whose ranges the graph's inputs and what is computed of them without weights have.
enum class InputRanges : std::uint8_t {
    given,  // the file's
    list,   // those measured on the converter's own list of samples
};

// Whether a value that one Relu or Clip alone reads is quantized itself.
enum class PreActivations : std::uint8_t { quantized, skipped };

// What is known to differ between the tools and devices that run a quantized model.
struct SimulationSwitches {
    ValueRounding rounding = ValueRounding::half_up;
    WeightSource weights = WeightSource::given;
    BiasForm bias = BiasForm::floating;
    InputRanges inputs = InputRanges::given;
    PreActivations pre_activations = PreActivations::quantized;

    bool operator==(const SimulationSwitches&) const = default;
};

// The names of all values of a switch, by their enumerators.
constexpr std::array<std::string_view, 3> rounding_names{"half-up", "half-away", "half-even"};
constexpr std::array<std::string_view, 3> weight_source_names{"given", "file", "clipped"};
constexpr std::array<std::string_view, 3> bias_form_names{"float", "int32", "int8"};
constexpr std::array<std::string_view, 2> input_range_names{"given", "list"};
constexpr std::array<std::string_view, 2> pre_activation_names{"quantized", "skipped"};

}  // namespace qcalib
