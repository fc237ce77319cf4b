#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace qcalib {

// The counts of one side of a histogram, all 0 at first, or none. A copy has memory of its own.
class BinCounts {
  public:
    static constexpr std::size_t bins = 4096;

    BinCounts() = default;
    BinCounts(const BinCounts& other);
    BinCounts& operator=(const BinCounts& other);
    BinCounts(BinCounts&&) noexcept = default;
    BinCounts& operator=(BinCounts&&) noexcept = default;
    ~BinCounts() = default;

    bool empty() const { return counts_ == nullptr; }
    void make();  // where empty
    std::uint32_t* data() const { return counts_.get(); }
    std::uint32_t& operator[](std::size_t bin) const { return counts_.get()[bin]; }
    std::span<std::uint32_t> all() const { return {counts_.get(), empty() ? 0 : bins}; }

    // Has the counts of `second` follow those of `first`, in memory made anew where they do not yet. Both
    // must be all 0.
    static void adjoin(BinCounts& first, BinCounts& second);

  private:
    std::shared_ptr<std::uint32_t> counts_;  // shared by adjoined counts alone
};

}  // namespace qcalib
