#include "cli/base_file.h"

#include "format/format.h"
#include "graph/onnx_file.h"
#include "target/qat_ranges.h"

namespace qcalib {

BaseEncodings read_base(const std::string& path, const Graph& graph, Remarks& remarks) {
    BaseEncodings base;
    base.label = path;
    if (path.ends_with(".onnx")) {
        const Model model = read_onnx_file(path);
        return read_qat_ranges(*model.graph, graph, path, remarks);
    }
    const auto is_parameter = [&](const std::string& tensor) {
        const ValueId value = graph.find(tensor);
        return value != no_value && graph.values[value].initializer.has_value();
    };
    base.set = encoding_set(read_encodings(path, remarks), is_parameter);
    return base;
}

}  // namespace qcalib
