#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "audit/printed_number.h"
#include "audit/tidl_line.h"

namespace qcalib {

// One encoding of a converter's result: of a tensor or of one of its channels.
struct FoundEncoding {
    int bits = 8;
    PrintedNumber min;
    PrintedNumber max;
    std::optional<PrintedNumber> scale;   // as printed
    std::optional<PrintedNumber> offset;  // as printed: the negative zero point, or 0 in signed storage

    double step() const;  // from both ends: printed steps lose digits
    bool operator==(const FoundEncoding& other) const;
};

// A tensor of a converter's result.
struct FoundTensor {
    enum class Kind : std::uint8_t { unknown, activation, parameter };

    std::string name;   // the buffer, as the tool prints it
    std::string layer;  // that makes it, where the tool says so
    std::string role;   // "weight", "bias": where the tool names a parameter by its layer and role only
    Kind kind = Kind::unknown;
    std::vector<FoundEncoding> encodings;  // of the tensor, or of its first channels
    std::optional<std::size_t> channels;   // of which the tool shows the first ones
    std::string data_type;                 // "uFxp_8", "Float_16": where the tool says so
    std::string renamed_from;              // its name in the other file, where it was renamed
    bool fell_back = false;                // left in float for want of an encoding
    std::string where;                     // "file:line"
    std::optional<TidlTensor> tidl = {};   // as TIDL prints it
};

// What converter and quantizer said, all files together.
struct ConverterReport {
    std::vector<FoundTensor> tensors;  // in the order of the files, which is that of the layers
    bool shows_parameters = false;     // whether the tools print parameters at all
    bool shows_activations = false;
    std::optional<std::uint64_t> processed;  // "Processed N quantization encodings"
    std::string processed_where;
    bool converted = false;               // a converter ran
    bool quantizer_ran = false;           // a quantizer ran
    bool overrides_asked = false;         // --quantization_overrides was seen
    bool bias_bitwidth = false;           // --bias_bitwidth was seen
    bool override_params = false;         // --override_params was seen
    std::uint64_t missing_encodings = 0;  // of a Quantizer-V2 summary
    std::uint64_t float_fallbacks = 0;
    std::vector<std::string> notes;                   // other lines that matter, "file:line: ..."
    std::map<std::int64_t, std::string> tidl_names;   // TIDL's data ids
    std::map<std::int64_t, std::string> tidl_layers;  // names of the outputs of its layers, by layer id
    std::map<std::string, std::string> tidl_weights;  // what is odd about the weights of a layer, by tensor

    // Adds a tensor that was read. One of that name that is there already is replaced by `keep_last`, else
    // kept; a remark tells where the two differ.
    void add(FoundTensor tensor, bool keep_last, std::vector<std::string>& remarks);
    // Gives the tensors that TIDL shows by a number the names that are known.
    void name_tidl_data();
};

// Why an encoding is none that a quantizer could use, or "": NaN, ends in the wrong order, no width, a width
// of bits out of 2 to 32, an offset outside the codes or in contradiction to min and max.
std::string fault_of(const FoundEncoding& encoding);

// Gives offsets of signed storage (0 for symmetric data, as in types sFxp_N) the unsigned convention.
void normalise_signed_storage(FoundTensor& tensor);

}  // namespace qcalib
