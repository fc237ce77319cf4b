#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qcalib {

// What may be done to each element x of a convolution's output. `a` and `b` are its numbers.
struct Activation {
    enum class Kind : std::uint8_t {
        leaky_relu,  // x < 0 ? a x : x; Relu with a = 0
        clip,        // min(max(x, a), b)
        hard_swish,  // x min(max(x + 3, 0), 6) / 6
        linear,      // a x + b
    };
    Kind kind = Kind::linear;
    float a = 0;
    float b = 0;
};

// Activations as text, to be carried by a node's attribute, and back; Error for other text.
std::vector<std::string> to_strings(std::span<const Activation> activations);
std::vector<Activation> parse_activations(std::span<const std::string> texts);

// Does them to all elements, one after the other, with plain loops.
void activate(std::span<const Activation> activations, std::span<float> elements);

}  // namespace qcalib
