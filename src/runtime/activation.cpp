#include "runtime/activation.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "base/error.h"

namespace qcalib {

namespace {

float activated(const Activation& activation, float x) {
    switch (activation.kind) {
        case Activation::Kind::leaky_relu:
            return x < 0 ? activation.a * x : x;
        case Activation::Kind::clip: {
            const float raised = x < activation.a ? activation.a : x;
            return raised > activation.b ? activation.b : raised;
        }
        case Activation::Kind::hard_swish:
            return x * std::fmin(std::fmax(x + 3, 0.0F), 6.0F) / 6;
        case Activation::Kind::linear:
            break;
    }
    return activation.a * x + activation.b;
}

}  // namespace

std::vector<std::string> to_strings(std::span<const Activation> activations) {
    std::vector<std::string> texts;
    for (const Activation& activation : activations) {
        texts.push_back(fmt::format("{} {} {}", static_cast<unsigned>(activation.kind),
                                    std::bit_cast<std::uint32_t>(activation.a),
                                    std::bit_cast<std::uint32_t>(activation.b)));
    }
    return texts;
}

std::vector<Activation> parse_activations(std::span<const std::string> texts) {
    std::vector<Activation> activations;
    for (const std::string& text : texts) {
        unsigned kind = 0;
        std::array<std::uint32_t, 2> bits{};
        const int read = std::sscanf(text.c_str(), "%u %u %u", &kind, &bits[0], &bits[1]);
        if (read != 3 || kind > static_cast<unsigned>(Activation::Kind::linear)) {
            fail("activation: expected three whole numbers, found '{}'", text);
        }
        activations.push_back({static_cast<Activation::Kind>(kind), std::bit_cast<float>(bits[0]),
                               std::bit_cast<float>(bits[1])});
    }
    return activations;
}

void activate(std::span<const Activation> activations, std::span<float> elements) {
    for (const Activation& activation : activations) {
        for (float& element : elements) element = activated(activation, element);
    }
}

}  // namespace qcalib
