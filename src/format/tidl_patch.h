#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"
#include "format/tidl_params.h"

namespace qcalib {

// Where a patch takes its encodings from: nullptr for what it has none for.
struct TidlPatchSource {
    // Of output `index` of the layer.
    std::function<const TensorEncoding*(const TidlLayerParams& layer, std::size_t index)> output;
    // Of the layer's weights.
    std::function<const TensorEncoding*(const TidlLayerParams& layer)> weights;
};

// TIDL's own file with the bytes of those numbers replaced that change what TIDL derives: min and max where
// its scale becomes another, element_type where the width does (the signedness stays the file's: TIDL takes
// it from its graph), a min that is missing put in. All else stays, byte for byte; so a source without
// encodings answers the very text. Remarks name the layers that keep their numbers, and encodings that a
// file's layer cannot take: per channel, asymmetric. An Error for a text that is no such file.
std::string patch_tidl_params(const std::string& text, const std::filesystem::path& path,
                              const TidlPatchSource& source, Remarks& remarks);

}  // namespace qcalib
