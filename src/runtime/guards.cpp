#include "runtime/guards.h"

#include <immintrin.h>

// OpenMP's own declarations: <omp.h> is a compiler's, and clang-tidy has none beside GCC's OpenMP.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

namespace qcalib {

namespace {

// MXCSR: bit 15 flushes denormal results to zero, bit 6 takes denormal operands as zero.
constexpr unsigned int flush_to_zero = 1U << 15;
constexpr unsigned int denormals_are_zero = 1U << 6;

}  // namespace

DenormalGuard::DenormalGuard() : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | flush_to_zero | denormals_are_zero);
}

DenormalGuard::~DenormalGuard() {
    _mm_setcsr(saved_);
}

SingleThreadGuard::SingleThreadGuard() : saved_(omp_get_max_threads()) {
    if (saved_ != 1) omp_set_num_threads(1);
}

SingleThreadGuard::~SingleThreadGuard() {
    if (saved_ != 1) omp_set_num_threads(saved_);
}

}  // namespace qcalib
