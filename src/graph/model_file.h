#pragma once

#include <filesystem>

#include "graph/graph.h"

namespace qcalib {

// Reads an ONNX, .circle or .tflite model, recognised by its content (graph/onnx_file.h,
// graph/circle_file.h).
Model read_model(const std::filesystem::path& path);

}  // namespace qcalib
