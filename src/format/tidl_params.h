#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "encoding/encoding_file.h"

namespace qcalib {

// TIDL's codes of element types, as its files and logs have them.
struct TidlElement {
    int bits = 8;
    bool is_signed = false;
    bool is_float = false;
    std::string_view words;  // "unsigned 8 bit"
};
// 0 to 8; nothing for any other code.
std::optional<TidlElement> tidl_element(double code);
// The code of an integer type of 8 or 16 bits.
int tidl_element_code(int bits, bool is_signed);

// The grid that TIDL makes of a range: the scale is a multiplier, 2^bits / max for unsigned codes and
// 2^(bits-1) / max(|min|, |max|) for signed ones (the greatest range itself saturates). `range` may not be
// 0 to 0.
Encoding tidl_encoding(double min, double max, int bits, bool is_signed);
// The grid of a scale that TIDL prints.
Encoding tidl_grid(double scale, int bits, bool is_signed);

// The end of the range that gives TIDL the grid: 256 or 128 steps for 8 bits.
double tidl_range_end(const Encoding& encoding);
// Whether the codes of a grid start at 0.
inline bool tidl_unsigned(const Encoding& encoding) {
    return encoding.offset == 0;
}
// %.9g of the number as a float32: read again it is the same float32.
std::string tidl_number(double value);

// What the weights of a layer are called, since its file names layers alone.
inline std::string tidl_weights_name(const std::string& layer) {
    return layer + ".weights";
}

// A number of a file and where its digits stand.
struct TidlNumber {
    double value = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t line = 0;
    std::size_t field_begin = 0;  // of the name before it
};

// One `outputs`, `weights`, `bias` or `slope` of a layer.
struct TidlTensorParams {
    std::optional<TidlNumber> min;
    std::optional<TidlNumber> max;
    std::optional<TidlNumber> size;
    std::optional<TidlNumber> element_type;
    std::vector<double> scale;  // multipliers
    std::vector<double> zero_point;
    std::vector<double> value;
    std::vector<UnknownKey> unknown;
    std::size_t line = 0;
};

struct TidlLayerParams {
    std::string name;  // of its first output
    std::string type;  // "TIDL_ConvolutionLayer"
    std::optional<double> bit_depth;
    std::vector<TidlTensorParams> outputs;
    std::vector<TidlTensorParams> weights;
    std::vector<TidlTensorParams> bias;
    std::vector<TidlTensorParams> slope;
    std::size_t line = 0;
};

// TIDL's quantization parameters of a network ("quantization proto"), as
// advanced_options:quant_params_proto_path writes and reads them.
struct TidlNetParams {
    std::optional<double> num_layers;
    std::string quant_type = "SYMMETRIC";
    std::string calib_type = "PERTENSOR";
    std::vector<TidlLayerParams> layers;
    std::vector<std::string> unknown;  // names of fields that the schema does not have, "'name' (line 3)"
};

// Reads the text. What is wrong becomes a fault with its line: misspelt fields (with the nearest), values of
// a wrong type; fields that resemble none are kept in `unknown`. An Error for what is no message at all.
TidlNetParams parse_tidl_params(std::string_view text, const std::filesystem::path& path,
                                std::vector<EntryFault>& faults);

// The same where faults are one Error.
TidlNetParams parse_tidl_params(std::string_view text, const std::filesystem::path& path);

// What keeps TIDL from taking the file: blocks that are not num_layers, min or max that are missing (the
// default of min passes TIDL's test and makes the scale 0), bias values that are not `size`. One sentence
// each, with the line.
std::vector<std::string> tidl_objections(const TidlNetParams& params);

// Whether a text is such a file, garbled ones included: its first word is one of its fields.
bool is_tidl_params(std::string_view text);

}  // namespace qcalib
