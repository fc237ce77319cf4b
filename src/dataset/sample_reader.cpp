#include "dataset/sample_reader.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "dataset/file_reader.h"
#include "dataset/picture_axes.h"

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

// A count that fits no input of the model is a mistake of the command line, not of each picture.
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

}  // namespace

SampleReader::SampleReader(std::vector<InputSpec> inputs, Preprocessing preprocessing)
    : inputs_(std::move(inputs)), preprocessing_(std::move(preprocessing)) {
    check_numbers({preprocessing_.multiply}, "--multiply");
    check_numbers(preprocessing_.mean, "--mean");
    check_numbers(preprocessing_.std, "--std");
    for (const double value : preprocessing_.std) {
        if (value == 0) fail("--std: expected numbers other than 0, found 0");
    }
    check_count(preprocessing_.mean, inputs_, "--mean");
    check_count(preprocessing_.std, inputs_, "--std");
}

std::vector<Tensor> SampleReader::read(const ListEntry& entry) const {
    assert(entry.files.size() == inputs_.size());
    std::vector<Tensor> tensors;
    tensors.reserve(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const std::filesystem::path& file = entry.files[i];
        tensors.push_back(reader_for(file)(file, inputs_[i], preprocessing_));
    }
    return tensors;
}

}  // namespace qcalib
