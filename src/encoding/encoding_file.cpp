#include "encoding/encoding_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

// What is wrong with the entry for a tensor of that shape, or "".
std::string shape_fault(const TensorEncoding& entry, const Shape& shape) {
    const auto rank = static_cast<int>(shape.size());
    const auto count = entry.encodings.size();
    for (const std::optional<int>& axis : {entry.axis, entry.block_axis}) {
        if (axis && (*axis >= rank || *axis < -rank)) {
            return fmt::format("expected an axis below {} for the shape {}, found {}", rank, to_string(shape),
                               *axis);
        }
    }
    const auto extent = [&](int axis) {
        return static_cast<std::uint64_t>(shape[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)]);
    };
    if (entry.per_channel() && count > 1 && count != extent(*entry.axis)) {
        const bool transposed = rank > 1 && *entry.axis == 0 && count == extent(1);
        return fmt::format("expected {} encodings, one a channel (axis {} of {}), found {}{}",
                           extent(*entry.axis), *entry.axis, to_string(shape), count,
                           transposed ? "; the channels of axis 1 are as many" : "");
    }
    if (!entry.per_block()) return "";
    const std::uint64_t extent_of_blocks = extent(*entry.block_axis);
    const auto size = static_cast<std::uint64_t>(entry.block_size);
    if (size == 0 || extent_of_blocks % size != 0) {
        return fmt::format("expected a block size that divides {} (axis {} of {}), found {}",
                           extent_of_blocks, *entry.block_axis, to_string(shape), size);
    }
    const std::uint64_t expected = (entry.axis ? extent(*entry.axis) : 1) * (extent_of_blocks / size);
    if (!entry.axis || expected == count) return "";
    return fmt::format(
        "expected {} encodings, one a channel and block of {} (axes {} and {} of {}), found {}", expected,
        size, *entry.axis, *entry.block_axis, to_string(shape), count);
}

}  // namespace

std::string_view name_of(OffsetConvention convention) {
    switch (convention) {
        case OffsetConvention::none:
            return "none";
        case OffsetConvention::negative:
            return "negative zero point (-N)";
        case OffsetConvention::positive:
            return "positive zero point (+N)";
        case OffsetConvention::positive_less_one:
            return "positive zero point less one (N-1)";
        case OffsetConvention::signed_negative:
            return "signed storage, negative zero point";
        case OffsetConvention::signed_positive:
            return "signed storage, zero point";
    }
    return "";
}

std::string describe(const std::filesystem::path& file, const EntryFault& fault) {
    std::string text = printable(file.string());
    if (fault.line > 0) text += fmt::format(":{}", fault.line);
    if (!fault.tensor.empty()) text += fmt::format(": '{}'", printable(fault.tensor));
    return text + ": " + fault.text;
}

EncodingSet encoding_set(const EncodingFile& file,
                         const std::function<bool(const std::string& tensor)>& is_parameter) {
    EncodingSet set;
    for (const FileEntry& entry : file.entries) {
        const bool parameter = entry.section == Section::any
                                   ? is_parameter && is_parameter(entry.encoding.tensor)
                                   : entry.section == Section::parameter;
        TensorEncoding& added = (parameter ? set.parameters : set.activations).emplace_back(entry.encoding);
        added.origin = printable(file.path.string());
        if (entry.line > 0) added.origin += fmt::format(":{}", entry.line);
    }
    return set;
}

EncodingFile encoding_file(const EncodingSet& set) {
    EncodingFile file;
    const auto add = [&](const std::vector<TensorEncoding>& encodings, Section section) {
        for (const TensorEncoding& encoding : encodings) {
            FileEntry& entry = file.entries.emplace_back();
            entry.encoding = encoding;
            entry.section = section;
        }
    };
    add(set.activations, Section::activation);
    add(set.parameters, Section::parameter);
    return file;
}

std::vector<EntryFault> check_shapes(const EncodingFile& file, const ShapeLookup& shape) {
    std::vector<EntryFault> faults;
    for (const FileEntry& entry : file.entries) {
        const std::optional<Shape> found = shape(entry.encoding.tensor);
        if (!found) continue;
        std::string text = shape_fault(entry.encoding, *found);
        if (!text.empty()) faults.push_back({entry.encoding.tensor, entry.line, std::move(text)});
    }
    return faults;
}

}  // namespace qcalib
