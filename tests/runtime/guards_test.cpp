#include "runtime/guards.h"

#include <cmath>
#include <limits>
#include <thread>

#include <doctest/doctest.h>
#include <omp.h>

#include "base/error.h"
#include "runtime/isa.h"

using namespace qcalib;

namespace {

// Not to be computed by the compiler.
float product(float a, float b) {
    const volatile float first = a;
    const volatile float second = b;
    return first * second;
}

constexpr float smallest_normal = std::numeric_limits<float>::min();
constexpr float denormal = std::numeric_limits<float>::denorm_min();

}  // namespace

TEST_CASE("denormals are zero while the guard lives, and only then") {
    CHECK(product(smallest_normal, 0.5F) > 0);
    {
        const DenormalGuard guard;
        CHECK(product(smallest_normal, 0.5F) == 0);
        CHECK(product(denormal, 1e30F) == 0);
        {
            const DenormalGuard inner;
            CHECK(product(denormal, 1e30F) == 0);
        }
        CHECK(product(denormal, 1e30F) == 0);
    }
    CHECK(product(smallest_normal, 0.5F) > 0);
    CHECK(product(denormal, 1e30F) > 0);
}

TEST_CASE("OpenMP regions use one thread while the guard lives, on its thread only") {
    const int before = omp_get_max_threads();
    omp_set_num_threads(3);
    {
        const SingleThreadGuard guard;
        CHECK(omp_get_max_threads() == 1);
        const SingleThreadGuard inner;
        CHECK(omp_get_max_threads() == 1);
    }
    CHECK(omp_get_max_threads() == 3);
    std::thread([] {
        const SingleThreadGuard guard;
        CHECK(omp_get_max_threads() == 1);
    }).join();
    CHECK(omp_get_max_threads() == 3);
    omp_set_num_threads(before);
}

TEST_CASE("instruction sets are known by name") {
    CHECK(parse_isa("sse4") == Isa::baseline);
    CHECK(parse_isa("avx2") == Isa::avx2);
    CHECK(parse_isa("avx512") == Isa::avx512);
    CHECK(parse_isa("best") == Isa::best);
    CHECK_THROWS_WITH_AS(parse_isa("avx21"), doctest::Contains("did you mean 'avx2'?"), Error);
    const std::string in_force = isa_in_force();
    const bool known =
        in_force == "avx512" || in_force == "avx2" || in_force == "sse4" || in_force == "baseline";
    CHECK(known);
}
