#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "format/format.h"

namespace qcalib {

// Options of a TIDL compilation that follow from encodings.
struct TidlOptionSet {
    int tensor_bits = 8;
    int accuracy_level = 0;
    int scale_type = 0;                        // 0: any scale, 1: powers of two, 4: asymmetric
    std::vector<std::string> wide_features;    // outputs of layers in 16 bits, where tensor_bits is 8
    std::vector<std::string> wide_parameters;  // outputs of layers whose parameters have 16 bits
    std::string params_path;                   // of the quantization-parameter file; "": none
    std::string clip_model;                    // the model with Clip nodes beside it; "": none
};

// The file's text, with a comment for each choice.
std::string to_yaml(const TidlOptionSet& options);

// What follows from a model's encodings; `name` is that of the file. Remarks tell what TIDL would ignore.
std::string tidl_options_text(const EncodingSet& encodings, const EmittedModel& model,
                              const std::filesystem::path& name, Remarks& remarks);

}  // namespace qcalib
