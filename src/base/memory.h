#pragma once

#include <cstdint>

namespace qcalib {

// Makes the allocator give blocks of 256 KiB and more back to the system once they are freed, for the whole
// process. Left alone, glibc raises that bound with every large block freed, and pictures decoded on several
// threads then leave holes: a long run would take more memory than a short one. To be called once, at the
// start of main().
void give_freed_memory_back();

// Bytes the system can still give without swapping, or 0 where it does not say.
std::uint64_t available_memory();

}  // namespace qcalib
