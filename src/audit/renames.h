#pragma once

#include <map>
#include <string>
#include <vector>

#include "audit/converter_report.h"
#include "encoding/encoding_file.h"
#include "graph/graph.h"

namespace qcalib {

// Tensors of one model under the names another one gives them: name in `other` -> name in `given`.
using Renames = std::map<std::string, std::string>;

// Weights that one file alone has and whose encodings (several channels, or one that no other weight of
// either file has) are those of a weight that the other file alone has.
Renames renamed_weights(const EncodingFile& given, const EncodingFile& other);

// Tensors that two models compute alike: inputs of the same name or place, initializers with equal bytes, and
// what operators of the same type make of them.
Renames renamed_tensors(const Graph& given, const Graph& other);

// Gives the tensors of `other` the names of `given`, where that file has no entry of the old name and `other`
// none of the new one.
void rename(ConverterReport& other, const EncodingFile& given, const Renames& renames);

}  // namespace qcalib
