// Stores of samples in .npy and .npz files: arrays with a sample axis in front.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/array_binding.h"
#include "dataset/input_names.h"
#include "dataset/npz_archive.h"
#include "dataset/sample_store.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

class NpyStore : public SampleStore {
  public:
    NpyStore(const std::filesystem::path& path, std::size_t input) : file_(path), input_(input) {
        array_.shown = printable(path.string());
        NpyHeader header = read_npy_header(file_.bytes(), array_.shown);
        array_.descriptor = std::move(header.descriptor);
        elements_ = file_.bytes().subspan(header.data);
        const TensorDescriptor& found = array_.descriptor;
        const std::size_t size = size_of(found.type);
        if (elements_.size() % size != 0 || elements_.size() / size != found.elements()) {
            fail("{}: expected {} elements of {} bytes for {} {}, found {} bytes", array_.shown,
                 found.elements(), size, name_of(found.type), to_string(found.shape), elements_.size());
        }
        const SampleArray* const all[] = {&array_};
        samples_ = count_samples(all);
    }

    std::uint64_t samples() const override { return samples_; }
    bool has(std::size_t input) const override { return input == input_; }
    StoredSample read(std::size_t /*input*/, std::uint64_t sample) const override {
        Tensor tensor(array_.sample());
        const auto target = tensor.mutable_view().bytes();
        const auto source = elements_.subspan(sample * target.size(), target.size());
        std::copy(source.begin(), source.end(), target.begin());
        file_.release_pages(source);
        if (tensor.type() == DataType::boolean) mend_bools(target);
        return {std::move(tensor), false, fmt::format("{}, sample {}", array_.shown, sample)};
    }

  private:
    MappedFile file_;
    std::size_t input_;
    SampleArray array_;
    std::span<const std::byte> elements_;
    std::uint64_t samples_ = 0;
};

class NpzStore : public SampleStore {
  public:
    NpzStore(const std::filesystem::path& path, std::span<const InputSpec> inputs, Remarks& remarks)
        : archive_(path) {
        const std::string shown = printable(path.string());
        bound_ = bind_arrays(archive_.names(), inputs, shown);
        remark_on_unused(archive_.names(), bound_, shown, remarks);
        std::vector<SampleArray> arrays;
        for (const auto& index : bound_) {
            if (index) arrays.push_back({archive_.shown(*index), archive_.descriptor(*index)});
        }
        std::vector<const SampleArray*> all;
        for (const SampleArray& array : arrays) all.push_back(&array);
        samples_ = count_samples(all);
    }

    std::uint64_t samples() const override { return samples_; }
    bool has(std::size_t input) const override { return bound_[input].has_value(); }
    StoredSample read(std::size_t input, std::uint64_t sample) const override {
        const std::size_t array = *bound_[input];
        return {archive_.read_row(array, sample), false,
                fmt::format("{}, sample {}", archive_.shown(array), sample)};
    }

  private:
    NpzArchive archive_;
    std::vector<std::optional<std::size_t>> bound_;  // by input
    std::uint64_t samples_ = 0;
};

}  // namespace

std::shared_ptr<const SampleStore> open_npy_store(const std::filesystem::path& path,
                                                  std::span<const InputSpec> inputs, Remarks& /*remarks*/) {
    std::vector<std::size_t> required;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].otherwise) required.push_back(i);
    }
    if (required.size() != 1) {
        fail(
            "{}: a .npy file has the samples of one input, the model asks for {}; use .npz or .h5 with an "
            "array for each of {}",
            printable(path.string()), required.size(), list_of_inputs(inputs));
    }
    return std::make_shared<NpyStore>(path, required.front());
}

std::shared_ptr<const SampleStore> open_npz_store(const std::filesystem::path& path,
                                                  std::span<const InputSpec> inputs, Remarks& remarks) {
    return std::make_shared<NpzStore>(path, inputs, remarks);
}

}  // namespace qcalib
