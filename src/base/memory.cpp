#include "base/memory.h"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace qcalib {

void give_freed_memory_back() {
#ifdef __GLIBC__
    constexpr int bytes = 256 * 1024;
    ::mallopt(M_MMAP_THRESHOLD, bytes);
#endif
}

}  // namespace qcalib
