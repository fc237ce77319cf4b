#include "dataset/array_binding.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "base/text.h"
#include "dataset/input_names.h"

namespace qcalib {

namespace {

constexpr std::size_t most_named = 8;

std::string quoted_list(std::vector<std::string> names) {
    const std::size_t count = names.size();
    if (count > most_named) names.resize(most_named);
    for (std::string& name : names) name = fmt::format("'{}'", printable(name));
    return join(names, ", ") + (count > most_named ? ", ..." : "");
}

}  // namespace

std::vector<std::optional<std::size_t>> bind_arrays(std::span<const std::string> names,
                                                    std::span<const InputSpec> inputs,
                                                    const std::string& shown) {
    if (inputs.empty()) fail("{}: the model has no inputs that samples could fill", shown);
    const auto required =
        std::count_if(inputs.begin(), inputs.end(), [](const auto& i) { return !i.otherwise; });
    std::vector<std::optional<std::size_t>> bound;
    for (const InputSpec& input : inputs) {
        const auto found = std::find(names.begin(), names.end(), input.name);
        if (found != names.end()) {
            bound.emplace_back(found - names.begin());
        } else if (input.otherwise) {
            bound.emplace_back(std::nullopt);
        } else if (required == 1 && names.size() == 1) {
            bound.emplace_back(0);
        } else {
            const std::string hint = did_you_mean(input.name, names);
            fail("{}: no array for input '{}'{}; found {}", shown, printable(input.name), hint,
                 names.empty() ? "none" : quoted_list({names.begin(), names.end()}));
        }
    }
    return bound;
}

void remark_on_unused(std::span<const std::string> names, std::span<const std::optional<std::size_t>> bound,
                      const std::string& shown, Remarks& remarks) {
    std::vector<std::string> unused;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (std::find(bound.begin(), bound.end(), std::optional(i)) == bound.end())
            unused.push_back(names[i]);
    }
    if (unused.empty()) return;
    remarks.add(fmt::format("{}: {} left out, which no input takes: {}", shown,
                            unused.size() == 1 ? "an array is" : "arrays are", quoted_list(unused)));
}

TensorDescriptor SampleArray::sample() const {
    assert(!descriptor.shape.empty());
    return {descriptor.type, {descriptor.shape.begin() + 1, descriptor.shape.end()}, MemoryOrder::row_major};
}

std::uint64_t count_samples(std::span<const SampleArray* const> arrays) {
    const SampleArray* first = nullptr;
    for (const SampleArray* array : arrays) {
        const Shape& shape = array->descriptor.shape;
        if (shape.empty())
            fail("{}: expected an axis of samples in front, found a single number", array->shown);
        if (shape.front() == 0) fail("{}: expected samples along the first axis, found none", array->shown);
        if (first == nullptr) first = array;
        if (shape.front() == first->descriptor.shape.front()) continue;
        fail("{}: expected {} samples along the first axis, as in {}, found {}", array->shown,
             first->descriptor.shape.front(), first->shown, shape.front());
    }
    return first == nullptr ? 0 : static_cast<std::uint64_t>(first->descriptor.shape.front());
}

}  // namespace qcalib
