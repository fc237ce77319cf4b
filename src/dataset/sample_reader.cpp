#include "dataset/sample_reader.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataset/batch.h"
#include "dataset/entry_reader.h"
#include "dataset/input_names.h"
#include "dataset/picture_axes.h"
#include "dataset/sequence.h"

namespace qcalib {

namespace {

void check_numbers(const std::vector<double>& values, std::string_view what) {
    for (const double value : values) {
        if (!std::isfinite(value)) fail("{}: expected finite numbers, found {}", what, value);
    }
}

bool may_have_channels(const InputSpec& input, std::size_t count) {
    if (!input.rank_known) return true;
    const auto axes = picture_axes(input);
    if (!axes) return false;
    const auto channels = input.shape[axes->channel];
    return !channels || *channels == static_cast<std::int64_t>(count);
}

// A count that fits no input of the model is a mistake of the settings, not of each picture.
void check_count(const std::vector<double>& values, std::span<const InputSpec> inputs,
                 std::string_view what) {
    if (values.size() <= 1) return;
    if (std::any_of(inputs.begin(), inputs.end(),
                    [&](const InputSpec& i) { return may_have_channels(i, values.size()); }))
        return;
    fail(
        "{}: expected one number or one for each channel, found {} numbers, and no input of the model has {} "
        "channels",
        what, values.size(), values.size());
}

// Items [1, ...] of the same shape, one after the other along the batch.
Tensor stacked(std::span<const Tensor> items, const SelectedSample& sample, std::size_t input) {
    Shape shape = items.front().shape();
    shape[0] = static_cast<std::int64_t>(items.size());
    Tensor batch(TensorDescriptor{items.front().type(), shape, MemoryOrder::row_major});
    std::byte* target = batch.mutable_view().data;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].shape() != items.front().shape()) {
            fail("{}: expected shape {} as {} in the same batch, found {}",
                 shown_source(sample.entries[i], input), to_string(items.front().shape()),
                 shown_source(sample.entries.front(), input), to_string(items[i].shape()));
        }
        const std::span<const std::byte> bytes = items[i].view().bytes();
        target = std::copy(bytes.begin(), bytes.end(), target);
    }
    return batch;
}

// Whether no line of a batch names a file for the input; Error where only some do.
bool left_out(const SelectedSample& sample, const InputSpec& input, std::size_t index) {
    const auto lacks = [&](const ListEntry& entry) { return entry.files[index].empty(); };
    const auto& entries = sample.entries;
    if (std::none_of(entries.begin(), entries.end(), lacks)) return false;
    if (std::all_of(entries.begin(), entries.end(), lacks)) return true;
    const auto without = std::find_if(entries.begin(), entries.end(), lacks);
    const auto with = std::find_if_not(entries.begin(), entries.end(), lacks);
    fail("{}: line {} of the same batch names no file for input '{}'", printable(with->files[index].string()),
         without->line, printable(input.name));
}

}  // namespace

SampleReader::SampleReader(std::vector<InputSpec> inputs, Preprocessing preprocessing)
    : inputs_(std::move(inputs)), preprocessing_(std::move(preprocessing)) {
    for (const PictureStep& step : preprocessing_.steps) {
        if (const auto* scale = std::get_if<ScaleStep>(&step)) check_numbers({scale->multiply}, "--multiply");
        const auto* normalize = std::get_if<NormalizeStep>(&step);
        if (normalize == nullptr) continue;
        check_numbers(normalize->mean, "--mean");
        check_numbers(normalize->std, "--std");
        if (std::count(normalize->std.begin(), normalize->std.end(), 0.0) > 0) {
            fail("--std: expected numbers other than 0, found 0");
        }
        check_count(normalize->mean, inputs_, "mean");
        check_count(normalize->std, inputs_, "std");
    }
}

std::vector<Tensor> SampleReader::read(const ListEntry& entry) const {
    assert(entry.files.size() == inputs_.size());
    std::vector<Tensor> tensors;
    tensors.reserve(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        std::optional<Tensor> given = read_input(entry, i, inputs_[i], inputs_, preprocessing_);
        tensors.push_back(given ? std::move(*given) : *inputs_[i].otherwise);
    }
    return tensors;
}

std::vector<Tensor> SampleReader::read(const SelectedSample& sample) const {
    if (sample.entries.size() == 1) return read(sample.entries.front());
    const std::size_t group = sample.entries.size();
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (left_out(sample, inputs_[i], i)) {
            tensors.push_back(*inputs_[i].otherwise);
            continue;
        }
        const std::optional<InputSpec> item = item_of_batch(inputs_[i], group);
        std::vector<Tensor> items;
        for (const ListEntry& entry : sample.entries) {
            std::optional<Tensor> given =
                read_input(entry, i, item.value_or(inputs_[i]), inputs_, preprocessing_);
            if (!given) break;
            items.push_back(std::move(*given));
            if (!item) break;
        }
        if (items.empty()) {
            tensors.push_back(*inputs_[i].otherwise);
        } else if (item && items.size() < group) {
            fail("{}: gives nothing for input '{}', as others of the same batch do",
                 shown_source(sample.entries[items.size()], i), printable(inputs_[i].name));
        } else {
            tensors.push_back(item ? stacked(items, sample, i) : items.front());
        }
    }
    return tensors;
}

Sequence SampleReader::open(const SelectedSample& sample) const {
    return {sample.entries.front(), inputs_, preprocessing_};
}

void remark_on_moved(const ListEntry& entry, std::span<const InputSpec> inputs,
                     const Preprocessing& preprocessing, Remarks& remarks) {
    const DataLayout layout = preprocessing.layout().data;
    if (layout != DataLayout::as_model) return;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        try {
            const auto array = stored_array(entry, i, inputs);
            if (!array) continue;
            const std::string shown = shown_source(entry, i);
            const DataMove move = data_move(inputs[i], layout, array->shape, shown);
            if (move == DataMove::none) continue;
            remarks.add(fmt::format("{}: shape {} fits {} as {} alone and is permuted; so are all like it",
                                    shown, to_string(array->shape), describe(inputs[i]),
                                    move == DataMove::from_nhwc ? "NHWC" : "NCHW"));
        } catch (const Error&) {
            continue;  // it is named when its turn comes
        }
    }
}

std::string describe_source(const SelectedSample& sample) {
    const std::vector<std::filesystem::path>& files = sample.entries.front().files;
    const auto given =
        std::find_if(files.begin(), files.end(), [](const auto& file) { return !file.empty(); });
    if (given == files.end()) return fmt::format("sample {}", sample.number);
    const std::string file =
        shown_source(sample.entries.front(), static_cast<std::size_t>(given - files.begin()));
    return sample.entries.size() == 1 ? file : fmt::format("{} and {} more", file, sample.entries.size() - 1);
}

}  // namespace qcalib
