// Stores of samples in HDF5 files: a data set for each input with a sample axis in front, or the form that
// Samsung ONE's record-minmax reads: groups /value/0, /value/1, ... of data sets 0, 1, ... in the order of
// the inputs, with types and shapes, or as plain bytes where group value has an attribute rawData.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/array_binding.h"
#include "dataset/hdf5_file.h"
#include "dataset/sample_store.h"

namespace qcalib {

namespace {

constexpr std::size_t most_datasets = 4096;

class ArrayStore : public SampleStore {
  public:
    ArrayStore(const std::filesystem::path& path, std::span<const InputSpec> inputs, Remarks& remarks)
        : file_(path), names_(file_.datasets(most_datasets)) {
        for (const InputSpec& input : inputs) add_rooted(input.name);
        bound_ = bind_arrays(names_, inputs, file_.shown());
        remark_on_unused(names_, bound_, file_.shown(), remarks);
        std::vector<SampleArray> arrays;
        for (const auto& index : bound_) {
            if (index) arrays.push_back({file_.shown(names_[*index]), file_.describe(names_[*index])});
        }
        std::vector<const SampleArray*> all;
        for (const SampleArray& array : arrays) all.push_back(&array);
        samples_ = count_samples(all);
    }

    std::uint64_t samples() const override { return samples_; }
    bool has(std::size_t input) const override { return bound_[input].has_value(); }
    StoredSample read(std::size_t input, std::uint64_t sample) const override {
        const std::string& name = names_[*bound_[input]];
        return {file_.read_row(name, sample), false, fmt::format("{}, sample {}", file_.shown(name), sample)};
    }

  private:
    // A name that begins with '/' is that of the same data set without it.
    void add_rooted(const std::string& name) {
        if (!name.starts_with('/')) return;
        const auto found = std::find(names_.begin(), names_.end(), name.substr(1));
        if (found != names_.end()) *found = name;
    }

    Hdf5File file_;
    std::vector<std::string> names_;
    std::vector<std::optional<std::size_t>> bound_;  // by input
    std::uint64_t samples_ = 0;
};

class RecordStore : public SampleStore {
  public:
    RecordStore(const std::filesystem::path& path, std::span<const InputSpec> inputs)
        : file_(path),
          raw_(file_.has_attribute("value", "rawData")),
          samples_(file_.link_count("value")),
          inputs_(inputs.size()) {
        if (samples_ == 0) fail("{}: expected samples in group 'value', found none", file_.shown());
        const std::string first = "value/0";
        if (!file_.is_group(first)) {
            fail("{}: expected groups 'value/0' to 'value/{}', found {}", file_.shown(), samples_ - 1,
                 file_.links("value", 1).empty() ? "none"
                                                 : "'value/" + printable(file_.links("value", 1)[0]) + "'");
        }
        const std::uint64_t found = file_.link_count(first);
        if (found != inputs.size()) {
            fail("{}: expected {} data sets in group '{}', one for each input in the model's order, found {}",
                 file_.shown(), inputs.size(), first, found);
        }
    }

    std::uint64_t samples() const override { return samples_; }
    bool has(std::size_t /*input*/) const override { return true; }
    StoredSample read(std::size_t input, std::uint64_t sample) const override {
        const std::string group = fmt::format("value/{}", sample);
        const std::string name = fmt::format("{}/{}", group, input);
        if (file_.is_group(group) && file_.link_count(group) != inputs_) {
            fail("{}: expected {} data sets in group '{}', one for each input in the model's order, found {}",
                 file_.shown(), inputs_, group, file_.link_count(group));
        }
        Tensor elements = file_.read(name);
        if (raw_ && (elements.type() != DataType::uint8 || elements.shape().size() != 1)) {
            fail("{}: expected bytes (uint8 of rank 1), as attribute rawData says, found {} {}",
                 file_.shown(name), name_of(elements.type()), to_string(elements.shape()));
        }
        return {std::move(elements), raw_, file_.shown(name)};
    }

  private:
    Hdf5File file_;
    bool raw_;
    std::uint64_t samples_;
    std::size_t inputs_;
};

}  // namespace

std::shared_ptr<const SampleStore> open_hdf5_store(const std::filesystem::path& path,
                                                   std::span<const InputSpec> inputs, Remarks& remarks) {
    const bool records = [&] {
        const Hdf5File file(path);
        if (!file.is_group("value")) return false;
        return file.link_count("value") == 0 || file.is_group("value/" + file.links("value", 1).front());
    }();
    if (records) return std::make_shared<RecordStore>(path, inputs);
    return std::make_shared<ArrayStore>(path, inputs, remarks);
}

}  // namespace qcalib
