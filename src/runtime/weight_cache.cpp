#include "runtime/weight_cache.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace qcalib {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t small_page = 4096;
constexpr std::size_t least_mapped = std::size_t{1} << 20;
constexpr std::align_val_t alignment{64};

std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// The last part is given a whole huge page where at least half of it is used.
std::size_t mapped_length(std::size_t bytes) {
    const bool most_of_the_last = bytes % huge_page >= huge_page / 2;
    return round_up(bytes, most_of_the_last ? huge_page : small_page);
}

// Pages from the system, the first at a multiple of a huge page; what lies before and behind is given back.
std::byte* map_aligned(std::size_t length) {
    void* mapped =
        mmap(nullptr, length + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    auto* begin = static_cast<std::byte*>(mapped);
    const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
    if (before > 0) munmap(begin, before);
    std::byte* aligned = begin + before;
    munmap(aligned + length, huge_page - before);
    madvise(aligned, length, MADV_HUGEPAGE);  // a wish: containers may forbid it
    return aligned;
}

}  // namespace

HugeBuffer::HugeBuffer(std::size_t bytes) : size_(bytes) {
    if (bytes == 0) return;
    if (bytes >= least_mapped) {
        mapped_ = mapped_length(bytes);
        data_ = map_aligned(mapped_);
    } else {
        data_ = static_cast<std::byte*>(::operator new(bytes, alignment));
        std::memset(data_, 0, bytes);
    }
}

HugeBuffer::~HugeBuffer() {
    if (mapped_ > 0) {
        munmap(data_, mapped_);
    } else if (data_ != nullptr) {
        ::operator delete(data_, alignment);
    }
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    return *this;
}

std::shared_ptr<const HugeBuffer> WeightCache::get(const Tensor& weight, const std::string& layout,
                                                   std::size_t bytes,
                                                   const std::function<void(std::byte*)>& fill) {
    const std::byte* data = weight.data();
    std::string key(reinterpret_cast<const char*>(&data), sizeof(data));
    key += layout;
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) return found->second.packed;
    auto packed = std::make_shared<HugeBuffer>(bytes);
    fill(packed->data());
    weight.release_pages();
    entries_.emplace(std::move(key), Entry{weight, packed});
    return packed;
}

std::size_t WeightCache::bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [key, entry] : entries_) sum += entry.packed->size();
    return sum;
}

}  // namespace qcalib
