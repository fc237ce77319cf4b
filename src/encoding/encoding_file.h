#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encoding/encoding.h"
#include "tensor/shape.h"

namespace qcalib {

// Which part of a file an entry stands in; `any` in formats that have only one list.
enum class Section : std::uint8_t { activation, parameter, any };

// How a file writes the offset of a grid whose zero point is N.
enum class OffsetConvention : std::uint8_t {
    none,               // there is no offset, or it is 0 in all conventions
    negative,           // -N: Qualcomm, AIMET
    positive,           // N: PPQ, ONNX with unsigned codes
    positive_less_one,  // N - 1: AIMET's first TensorFlow exporter, an example of SNPE's documentation
    signed_negative,    // 2^(bits-1) - N: of codes stored signed, as in a DLC; 0 where symmetric
    signed_positive,    // N - 2^(bits-1): ONNX with signed codes; 0 where symmetric
};
std::string_view name_of(OffsetConvention convention);

// A key the format does not know, kept with its value.
struct UnknownKey {
    std::string key;
    std::string json;  // the value as the file writes it

    bool operator==(const UnknownKey&) const = default;
};

// The numbers of one encoding as the file writes them.
struct GivenNumbers {
    std::optional<double> min;
    std::optional<double> max;
    std::optional<double> scale;
    std::optional<double> offset;
    std::optional<bool> symmetric;

    bool operator==(const GivenNumbers&) const = default;
};

// One tensor of an encodings file. `encoding` is on our convention: `scale` and `offset` follow from `min`
// and `max` where the file gives only those, and the other way round; min and max stay as given, even where
// they are not multiples of the scale (a compiler moves both ends by up to half a step then).
struct FileEntry {
    TensorEncoding encoding;
    Section section = Section::any;
    std::size_t line = 0;             // from 1; 0: not from a text file
    std::vector<GivenNumbers> given;  // one for each of encoding.encodings
    // One list for each element of an entry that is a list of objects, else one.
    std::vector<std::vector<UnknownKey>> unknown;
    // Per block: the shape scales are nested in (the tensor's, with the blocks along block_axis and 1
    // elsewhere but the channels). Empty where it is not known.
    Shape nesting;
    OffsetConvention convention = OffsetConvention::none;
};

// What an encodings file says, whatever its format.
struct EncodingFile {
    std::filesystem::path path;
    std::string format;               // its name in the registry of formats: "mqbench", "aimet-1.0.0", ...
    std::string version;              // as the file gives it; "" where it has none
    std::vector<FileEntry> entries;   // order of the file
    std::vector<UnknownKey> unknown;  // of the file itself
};

// What is wrong with one entry. `text` says what was expected and what was found.
struct EntryFault {
    std::string tensor;
    std::size_t line = 0;  // 0: no line
    std::string text;
};

// "file:line: 'tensor': text" (or "file: 'tensor': text").
std::string describe(const std::filesystem::path& file, const EntryFault& fault);

// The entries as a set, with `origin` "file:line". Where a format has no sections `is_parameter` decides; all
// are activations where there is none.
EncodingSet encoding_set(const EncodingFile& file,
                         const std::function<bool(const std::string& tensor)>& is_parameter = {});

// The other way round: a file of no format, as Format::emit takes it.
EncodingFile encoding_file(const EncodingSet& set);

// The shape of a tensor of the model; nothing where it is not known.
using ShapeLookup = std::function<std::optional<Shape>(const std::string& tensor)>;

// Channel counts, axes and block sizes that do not fit the shapes; names the model does not have are not
// looked at.
std::vector<EntryFault> check_shapes(const EncodingFile& file, const ShapeLookup& shape);

}  // namespace qcalib
