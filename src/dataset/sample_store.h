#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/remarks.h"
#include "dataset/input_spec.h"

namespace qcalib {

// What a store has for one input of one sample.
struct StoredSample {
    Tensor elements;    // as they lie there; `raw`: their bytes as uint8
    bool raw = false;   // bytes of the input's type, without a shape
    std::string shown;  // what messages about it start with: "x.npz, array 'image', sample 3"
};

// One file with all samples. Thread-safe; a sample is read when asked for and not kept.
class SampleStore {
  public:
    SampleStore() = default;
    SampleStore(const SampleStore&) = delete;
    SampleStore& operator=(const SampleStore&) = delete;
    virtual ~SampleStore() = default;

    virtual std::uint64_t samples() const = 0;
    // False for an input that has a value without the store.
    virtual bool has(std::size_t input) const = 0;
    // Throws Error "<file>, ...: ...".
    virtual StoredSample read(std::size_t input, std::uint64_t sample) const = 0;
};

// Opens a store and finds its arrays for the inputs (see read_sample_source). Arrays that no input takes are
// a remark.
std::shared_ptr<const SampleStore> open_npy_store(const std::filesystem::path& path,
                                                  std::span<const InputSpec> inputs, Remarks& remarks);
std::shared_ptr<const SampleStore> open_npz_store(const std::filesystem::path& path,
                                                  std::span<const InputSpec> inputs, Remarks& remarks);
std::shared_ptr<const SampleStore> open_hdf5_store(const std::filesystem::path& path,
                                                   std::span<const InputSpec> inputs, Remarks& remarks);

}  // namespace qcalib
