#include "base/memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

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

std::uint64_t available_memory() {
    std::ifstream file("/proc/meminfo");
    std::string key;
    std::uint64_t kibibytes = 0;
    std::string unit;
    while (file >> key >> kibibytes) {
        std::getline(file, unit);
        if (key == "MemAvailable:") return kibibytes * 1024;
    }
    return 0;
}

}  // namespace qcalib
