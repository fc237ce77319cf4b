#include "allocation_counter.h"

#include <cstdlib>
#include <new>

#include "runtime/onednn.h"

namespace {

thread_local bool counting = false;
thread_local std::size_t allocations = 0;

void* counted_allocation(std::size_t bytes, std::size_t alignment) noexcept {
    if (counting && !qcalib::onednn::inside_library()) ++allocations;
    return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}

void* checked(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

constexpr std::size_t default_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(std::size_t bytes) {
    return checked(counted_allocation(bytes, default_alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return checked(counted_allocation(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return counted_allocation(bytes, default_alignment);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}

namespace qcalib::test {

std::size_t allocations_during(const std::function<void()>& action) {
    allocations = 0;
    counting = true;
    action();
    counting = false;
    return allocations;
}

}  // namespace qcalib::test
