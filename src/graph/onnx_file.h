#pragma once

#include <filesystem>

#include "graph/graph.h"
#include "graph/verify.h"

namespace qcalib {

// Reads an ONNX model of IR 3 or newer and opset 7 or newer. The file stays mapped: raw initializer data and
// external data (paths relative to the model, inside its folder) are read in place. Whatever the file's
// faults are, one Error lists all of them, each with its tensor or node.
Model read_onnx_file(const std::filesystem::path& path, ModelInputs inputs = ModelInputs::numbers);

}  // namespace qcalib
