#include "mapping/fingerprint.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace qcalib {

namespace {

constexpr double least_spread = 1e-3;  // of the largest magnitude

// The order statistics of the positions [first, last) of `at`, all of which lie in [begin, end) of `values`.
void select_orders(std::vector<float>& values, std::size_t begin, std::size_t end,
                   std::span<const std::size_t> at, std::span<float> answer) {
    if (at.empty()) return;
    const std::size_t middle = at.size() / 2;
    const auto start = values.begin();
    const auto nth = start + static_cast<std::ptrdiff_t>(at[middle]);
    std::nth_element(start + static_cast<std::ptrdiff_t>(begin), nth,
                     start + static_cast<std::ptrdiff_t>(end));
    answer[middle] = *nth;
    select_orders(values, begin, at[middle], at.first(middle), answer.first(middle));
    // Positions may repeat where there are few values.
    select_orders(values, at[middle], end, at.subspan(middle + 1), answer.subspan(middle + 1));
}

template <typename T>
Fingerprint fingerprint_of(std::span<const T> elements) {
    Fingerprint print;
    print.elements = elements.size();
    std::vector<float> finite;
    finite.reserve(elements.size());
    for (const T element : elements) {
        const auto value = static_cast<float>(element);
        if (std::isfinite(value)) finite.push_back(value);
    }
    print.nonfinite = elements.size() - finite.size();
    if (finite.empty()) return print;
    print.min = finite.front();
    print.max = finite.front();
    for (const float value : finite) {
        const double x = value;
        print.sum += x;
        print.squares += x * x;
        print.magnitude += std::abs(x);
        print.min = std::min(print.min, value);
        print.max = std::max(print.max, value);
    }
    std::array<std::size_t, Fingerprint::orders> at{};
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = (finite.size() - 1) * (i + 1) / (at.size() + 1);
    select_orders(finite, 0, finite.size(), at, print.order);
    return print;
}

}  // namespace

float Fingerprint::largest() const {
    return std::max(std::abs(min), std::abs(max));
}

Fingerprint fingerprint(TensorView tensor) {
    return tensor.descriptor->type == DataType::float64 ? fingerprint_of(tensor.as<double>())
                                                        : fingerprint_of(tensor.as<float>());
}

bool alike(const Fingerprint& a, const Fingerprint& b, double tolerance) {
    if (a.elements != b.elements || a.nonfinite != b.nonfinite) return false;
    const auto near = [&](double x, double y, double scale) { return std::abs(x - y) <= tolerance * scale; };
    const double largest = std::max(a.largest(), b.largest());
    if (!near(a.min, b.min, largest) || !near(a.max, b.max, largest)) return false;
    const double magnitude = std::max(a.magnitude, b.magnitude);
    const double spread = static_cast<double>(a.elements) * largest;
    if (!near(a.magnitude, b.magnitude, magnitude) || !near(a.sum, b.sum, std::max(magnitude, spread * 0.01)))
        return false;
    if (!near(a.squares, b.squares, 2 * std::max(a.squares, b.squares))) return false;
    for (std::size_t i = 0; i < a.order.size(); ++i) {
        if (!near(a.order[i], b.order[i], largest)) return false;
    }
    return true;
}

bool is_poor(std::span<const Fingerprint> samples) {
    if (samples.empty()) return true;
    float min = samples.front().min;
    float max = samples.front().max;
    for (const Fingerprint& one : samples) {
        min = std::min(min, one.min);
        max = std::max(max, one.max);
    }
    const double largest = std::max(std::abs(min), std::abs(max));
    if (!(largest > 0) || max - min < least_spread * largest) return true;
    const auto is_extreme = [&](float value) { return value == min || value == max; };
    return std::all_of(samples.begin(), samples.end(),
                       [&](const Fingerprint& one) {
                           return is_extreme(one.min) && is_extreme(one.max) &&
                                  std::all_of(one.order.begin(), one.order.end(), is_extreme);
                       }) &&
           samples.front().elements > 2;
}

}  // namespace qcalib
