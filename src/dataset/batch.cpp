#include "dataset/batch.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "dataset/entry_reader.h"
#include "dataset/sample_list.h"
#include "dataset/sample_reader.h"

namespace qcalib {

namespace {

// The fixed batch above 1 of the first input that has one, else 1.
std::size_t fixed_batch(std::span<const InputSpec> inputs) {
    for (const InputSpec& input : inputs) {
        if (input.rank_known && !input.shape.empty() && input.shape[0].value_or(1) > 1) {
            return static_cast<std::size_t>(*input.shape[0]);
        }
    }
    return 1;
}

// Whether a raw file has the whole batch: it is no single item by its size.
bool raw_holds_batch(const std::filesystem::path& file, const InputSpec& input) {
    Shape item;
    for (const std::optional<std::int64_t>& dimension : input.shape) {
        if (!dimension) return true;
        item.push_back(*dimension);
    }
    item[0] = 1;
    const auto bytes = static_cast<std::uint64_t>(element_count(item)) * size_of(input.type);
    return std::filesystem::file_size(file) != bytes;
}

// Whether what the entry has for the input is the whole batch. An array is, where its rank is the input's and
// its first dimension the batch.
bool holds_batch(const ListEntry& entry, std::size_t i, std::span<const InputSpec> inputs) {
    const InputSpec& input = inputs[i];
    if (is_picture(entry.files[i])) return false;
    if (const auto array = stored_array(entry, i, inputs)) {
        return array->shape.size() == input.shape.size() && array->shape[0] == *input.shape[0];
    }
    if (entry.store || entry.joined) return true;  // bytes of the whole input
    return raw_holds_batch(entry.files[i], input);
}

}  // namespace

std::optional<InputSpec> item_of_batch(const InputSpec& input, std::size_t batch) {
    const bool has_batch = input.rank_known && !input.shape.empty() && input.shape[0] &&
                           static_cast<std::size_t>(*input.shape[0]) == batch;
    if (!has_batch) return std::nullopt;
    InputSpec item = input;
    item.shape[0] = 1;
    return item;
}

std::size_t group_size(std::span<const ListEntry> entries, std::span<const InputSpec> inputs) {
    const std::size_t batch = fixed_batch(inputs);
    if (batch == 1) return 1;
    for (const ListEntry& entry : entries) {
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            std::error_code ignored;
            if (!item_of_batch(inputs[i], batch) || !std::filesystem::exists(entry.files[i], ignored))
                continue;
            try {
                return holds_batch(entry, i, inputs) ? 1 : batch;
            } catch (const Error&) {
                continue;  // a file that cannot be read decides nothing; it is named when its turn comes
            } catch (const std::filesystem::filesystem_error&) {
                continue;
            }
        }
    }
    return 1;
}

}  // namespace qcalib
