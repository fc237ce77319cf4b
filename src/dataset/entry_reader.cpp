#include "dataset/entry_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "dataset/array_binding.h"
#include "dataset/input_names.h"
#include "dataset/npz_archive.h"
#include "dataset/sample_store.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

// An array of the entry's .npz file.
struct NpzArray {
    NpzArchive archive;
    std::optional<std::size_t> index;

    // The file is bound for all inputs that it is named for at once, as a store is.
    NpzArray(const ListEntry& entry, std::size_t input, std::span<const InputSpec> inputs)
        : archive(entry.files[input]) {
        std::vector<InputSpec> together;
        std::size_t position = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (i == input) position = together.size();
            if (entry.files[i] == entry.files[input]) together.push_back(inputs[i]);
        }
        index = bind_arrays(archive.names(), together, printable(entry.files[input].string()))[position];
    }
};

Tensor fit_stored(StoredSample stored, const InputSpec& input, const Preprocessing& preprocessing) {
    if (!stored.raw) return fit_array(std::move(stored.elements), stored.shown, input, preprocessing);
    return fit_bytes(stored.elements.view().bytes(), stored.shown, input, preprocessing);
}

std::uint64_t bytes_for(const InputSpec& input, const std::string& shown) {
    Shape shape;
    for (const auto& size : input.shape) {
        if (!size) break;
        shape.push_back(*size);
    }
    if (!input.rank_known || shape.size() != input.shape.size() || !is_numeric(input.type)) {
        fail(
            "{}: holds the data of several inputs, and {} has no fixed size to cut it by; give --shape "
            "{}=...",
            shown, describe(input), printable(input.name));
    }
    return static_cast<std::uint64_t>(element_count(shape)) * size_of(input.type);
}

// One input of a file that has several, one after the other.
Tensor read_joined(const ListEntry& entry, std::size_t input, std::span<const InputSpec> inputs,
                   const Preprocessing& preprocessing) {
    const MappedFile file(entry.files[input]);
    const std::string shown = printable(entry.files[input].string());
    std::uint64_t first = 0;
    std::uint64_t total = 0;
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (entry.files[i].empty()) continue;
        const std::uint64_t bytes = bytes_for(inputs[i], shown);
        if (i == input) first = total;
        total += bytes;
        parts.push_back(fmt::format("{} of {} for {}", bytes, name_of(inputs[i].type), describe(inputs[i])));
    }
    if (file.bytes().size() != total) {
        fail(
            "{}: expected {} bytes ({}), found {} bytes; where each input has a file of its own, they are "
            "given "
            "as name:=path",
            shown, total, join(parts, ", "), file.bytes().size());
    }
    const std::uint64_t bytes = bytes_for(inputs[input], shown);
    return fit_bytes(file.bytes().subspan(first, bytes),
                     fmt::format("{}, bytes {} to {}", shown, first, first + bytes), inputs[input],
                     preprocessing);
}

std::optional<FileSteps> cut_stored(const StoredSample& stored, const InputSpec& input,
                                    const Preprocessing& preprocessing) {
    if (!stored.raw) return cut_array(stored.elements, stored.shown, input, preprocessing);
    const std::span<const std::byte> bytes = stored.elements.view().bytes();
    auto steps = cut_bytes(bytes, stored.shown, input, preprocessing);
    if (!steps) return std::nullopt;
    const auto elements = static_cast<std::int64_t>(steps->count * steps->stored.elements());
    steps->elements = Tensor({input.type, {elements}, MemoryOrder::row_major});
    const auto target = steps->elements.mutable_view().bytes();
    std::copy_n(bytes.begin(), target.size(), target.begin());
    return steps;
}

}  // namespace

std::optional<Tensor> read_input(const ListEntry& entry, std::size_t input, const InputSpec& spec,
                                 std::span<const InputSpec> inputs, const Preprocessing& preprocessing) {
    const std::filesystem::path& file = entry.files[input];
    if (file.empty()) return std::nullopt;
    if (entry.store) return fit_stored(entry.store->read(input, entry.line - 1), spec, preprocessing);
    if (entry.joined) return read_joined(entry, input, inputs, preprocessing);
    if (!is_npz(file)) return reader_for(file)(file, spec, preprocessing);
    const NpzArray array(entry, input, inputs);
    if (!array.index) return std::nullopt;
    return fit_array(array.archive.read(*array.index), array.archive.shown(*array.index), spec,
                     preprocessing);
}

std::optional<FileSteps> cut_input(const ListEntry& entry, std::size_t input,
                                   std::span<const InputSpec> inputs, const Preprocessing& preprocessing) {
    const std::filesystem::path& file = entry.files[input];
    if (file.empty() || entry.joined) return std::nullopt;
    if (entry.store)
        return cut_stored(entry.store->read(input, entry.line - 1), inputs[input], preprocessing);
    if (is_npz(file)) {
        const NpzArray array(entry, input, inputs);
        if (!array.index) return std::nullopt;
        return cut_array(array.archive.read(*array.index), array.archive.shown(*array.index), inputs[input],
                         preprocessing);
    }
    const CutFile cut = cutter_for(file);
    return cut == nullptr ? std::nullopt : cut(file, inputs[input], preprocessing);
}

std::optional<TensorDescriptor> stored_array(const ListEntry& entry, std::size_t input,
                                             std::span<const InputSpec> inputs) {
    const std::filesystem::path& file = entry.files[input];
    if (file.empty() || entry.joined) return std::nullopt;
    if (entry.store) {
        const StoredSample sample = entry.store->read(input, entry.line - 1);
        return sample.raw ? std::nullopt : std::optional(sample.elements.descriptor());
    }
    if (is_npz(file)) {
        const NpzArray array(entry, input, inputs);
        return array.index ? std::optional(array.archive.descriptor(*array.index)) : std::nullopt;
    }
    if (ending_of(file) != ".npy") return std::nullopt;
    return read_npy_header(MappedFile(file).bytes(), printable(file.string())).descriptor;
}

std::string shown_source(const ListEntry& entry, std::size_t input) {
    const std::string file = printable(entry.files[input].string());
    return entry.store ? fmt::format("{}, sample {}", file, entry.line - 1) : file;
}

}  // namespace qcalib
