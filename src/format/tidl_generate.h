#pragma once

#include <string>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "format/format.h"

namespace qcalib {

// The quantization parameters of the layers that TIDL makes of the model, as far as its graph tells: see
// target/tidl_layers.h. One remark says what cannot be known, others name layers without a range.
std::string generate_tidl_params(const EncodingSet& encodings, const EmittedModel& model, Remarks& remarks);

// TIDL's own file, model.patch, with the numbers of the encodings in it.
std::string patch_tidl_params(const EncodingSet& encodings, const EmittedModel& model, Remarks& remarks);

}  // namespace qcalib
