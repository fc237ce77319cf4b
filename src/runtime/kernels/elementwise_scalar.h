#pragma once

// The scalar functions behind the operators of elementwise_binary.cpp, for each type of number.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/error.h"

namespace qcalib::scalar {

// Where sums, differences and products are taken: integers wrap around.
template <typename T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;

template <typename T>
T add(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
}

template <typename T>
T subtract(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
}

template <typename T>
T multiply(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
}

// True where an integer division would trap because the quotient, -min, is not there.
template <typename T>
bool overflows(T a, T b) {
    if constexpr (std::is_signed_v<T>)
        return b == T{-1} && a == std::numeric_limits<T>::min();
    else
        return false;
}

// Integers: towards zero; Error for a divisor of 0.
template <typename T>
T divide(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) fail("an integer is divided by 0");
        return overflows(a, b) ? a : static_cast<T>(a / b);
    } else {
        return a / b;
    }
}

// The remainder with the sign of the dividend (C's); Error for an integer divisor of 0.
template <typename T>
T remainder(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) fail("an integer is divided by 0");
        return overflows(a, b) ? T{0} : static_cast<T>(a % b);
    } else {
        return static_cast<T>(std::fmod(a, b));
    }
}

// The remainder with the sign of the divisor (Python's).
template <typename T>
T modulo(T a, T b) {
    const T rest = remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? add(rest, b) : rest;
}

// The greater and the less of the two; NaN where either is.
template <typename T>
T maximum(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a)) return a;
    }
    return a > b ? a : b;
}

template <typename T>
T minimum(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a)) return a;
    }
    return a < b ? a : b;
}

// A real number as `T`: integers are cut towards zero and held within their range, NaN is 0.
template <typename T>
T from_real(double value) {
    if constexpr (std::is_integral_v<T>) {
        if (std::isnan(value)) return 0;
        if (value <= static_cast<double>(std::numeric_limits<T>::lowest()))
            return std::numeric_limits<T>::lowest();
        if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(value);
}

// base^exponent by repeated squaring, wrapping; a negative exponent gives 1 / base^-exponent cut towards
// zero.
template <typename T, typename E>
T integer_power(T base, E exponent) {
    if constexpr (std::is_signed_v<E>) {
        if (exponent < 0) {
            if (base == 0) fail("the integer 0 is raised to a negative power");
            if (base == 1) return 1;
            if constexpr (std::is_signed_v<T>) {
                if (base == -1) return exponent % 2 == 0 ? T{1} : T{-1};
            }
            return 0;
        }
    }
    T result = 1;
    for (auto rest = std::uint64_t{static_cast<std::make_unsigned_t<E>>(exponent)}; rest != 0; rest >>= 1) {
        if ((rest & 1) != 0) result = multiply(result, base);
        base = multiply(base, base);
    }
    return result;
}

template <typename T, typename E>
T power(T base, E exponent) {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
        return integer_power(base, exponent);
    } else {
        return from_real<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
}

}  // namespace qcalib::scalar
