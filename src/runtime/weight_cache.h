#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tensor/tensor.h"

namespace qcalib {

// Memory from the system in whole 2 MiB pages where it grants them (for anything of 1 MiB or more), else
// plain, always 64-byte aligned. Contents start as zeros.
class HugeBuffer {
  public:
    HugeBuffer() = default;
    explicit HugeBuffer(std::size_t bytes);
    ~HugeBuffer();
    HugeBuffer(HugeBuffer&& other) noexcept;
    HugeBuffer& operator=(HugeBuffer&& other) noexcept;

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t mapped_ = 0;
};

// Weights in the order a kernel wants them, each made once and shared by all plans and workers. Thread-safe.
class WeightCache {
  public:
    // The bytes kept under the data of `weight` and `layout` (a text that tells apart everything the packed
    // form depends on); made by `fill` into a buffer of `bytes` where not there yet. `weight` is kept alive;
    // where its data is mapped, its pages are given back after packing.
    std::shared_ptr<const HugeBuffer> get(const Tensor& weight, const std::string& layout, std::size_t bytes,
                                          const std::function<void(std::byte*)>& fill);
    // Bytes held.
    std::size_t bytes() const;

  private:
    struct Entry {
        Tensor source;
        std::shared_ptr<const HugeBuffer> packed;
    };
    mutable std::mutex mutex_;
    std::unordered_map<std::string, Entry> entries_;
};

}  // namespace qcalib
