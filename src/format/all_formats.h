#pragma once

#include "format/format.h"

namespace qcalib {

// The formats, one a file; registered in format.cpp.
const Format& mqbench_format();
const Format& snpe_format();
const Format& aimet_040_format();
const Format& aimet_050_format();
const Format& aimet_061_format();
const Format& aimet_100_format();
const Format& aimet_200_format();
const Format& ppq_format();
const Format& ort_table_format();
const Format& ort_overrides_format();
const Format& tensorrt_format();
const Format& qairt_format();
const Format& circle_qparam_format();
const Format& circle_model_format();
const Format& tidl_prototxt_format();
const Format& tidl_onnx_format();
const Format& tidl_options_format();

}  // namespace qcalib
