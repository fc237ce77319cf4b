#pragma once

#include <span>
#include <vector>

#include "format/circle_check.h"
#include "format/format.h"

namespace qcalib {

// The entries of a model's float tensors in the order of its file, constants as codes in its own layout.
// Encodings of tensors it does not have are an Error that offers the nearest name.
std::vector<CircleQparam> circle_qparams(const CircleFile& file, const EncodingSet& encodings,
                                         const EmittedModel& model);

// `name` (the JSON) and numbered .npy files beside it, as q-implant reads them.
std::vector<FormattedFile> circle_qparam_files(std::span<const CircleQparam> entries,
                                               const std::filesystem::path& name);

}  // namespace qcalib
