#include "runtime/kernels/erf_table.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace qcalib {

namespace {

// The polynomial through f at Chebyshev's nodes of [0, 1], near the least maximum error: Newton's divided
// differences, multiplied out.
template <std::size_t terms, typename Function>
std::array<double, terms> fit(const Function& f) {
    std::array<double, terms> nodes{};
    std::array<double, terms> values{};
    for (std::size_t i = 0; i < terms; ++i) {
        nodes[i] = 0.5 - 0.5 * std::cos(std::numbers::pi * (static_cast<double>(i) + 0.5) / terms);
        values[i] = f(nodes[i]);
    }
    for (std::size_t order = 1; order < terms; ++order) {
        for (std::size_t i = terms - 1; i >= order; --i) {
            values[i] = (values[i] - values[i - 1]) / (nodes[i] - nodes[i - order]);
        }
    }
    std::array<double, terms> coefficients{};
    for (std::size_t k = terms; k-- > 0;) {  // Horner's rule with polynomials: c = c (t - node) + value
        for (std::size_t i = terms - 1; i > 0; --i)
            coefficients[i] = coefficients[i - 1] - nodes[k] * coefficients[i];
        coefficients[0] = values[k] - nodes[k] * coefficients[0];
    }
    return coefficients;
}

ErfTable make_table() {
    ErfTable table{};
    const auto first = fit<4>([](double t) { return std::erf(t * ErfTable::width) / t; });
    for (std::size_t i = 0; i < first.size(); ++i)
        table.coefficients[i + 1][0] = static_cast<float>(first[i]);
    const std::size_t last = table.coefficients[0].size() - 1;
    for (std::size_t segment = 1; segment < last; ++segment) {
        const auto start = static_cast<double>(segment);
        const auto next = fit<5>([start](double t) { return std::erf((start + t) * ErfTable::width); });
        for (std::size_t i = 0; i < next.size(); ++i)
            table.coefficients[i][segment] = static_cast<float>(next[i]);
    }
    table.coefficients[0][last] = 1;  // where erf(x) is above 1 - 5e-8, so that it ends at 1 exactly
    return table;
}

}  // namespace

const ErfTable& erf_table() {
    static const ErfTable table = make_table();
    return table;
}

}  // namespace qcalib
