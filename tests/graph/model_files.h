#pragma once

#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "graph/onnx_file.h"
#include "support/onnx_builder.h"
#include "support/temporary_folder.h"

namespace qcalib::test {

// A model of one Relu, x to y, sound as it is.
inline OnnxModel relu_model() {
    OnnxModel model;
    model.graph.input("x", {1, 3, "H", OnnxDimension()}).node("Relu", {"x"}, {"y"}).output("y");
    return model;
}

inline Model load(const std::string& bytes) {
    const TemporaryFolder folder;
    write_unsynced(folder / "m.onnx", bytes);
    return read_onnx_file(folder / "m.onnx");
}

inline Model load(const OnnxModel& model) {
    return load(model.bytes());
}

// The error of loading the file, without its path, which must come first; "" where it loads.
inline std::string error_of_file(const std::filesystem::path& path) {
    const std::string message = message_of<Error>([&] { read_onnx_file(path); });
    if (message.empty()) return "";
    REQUIRE(message.starts_with(path.string() + ": "));
    return message.substr(path.string().size() + 2);
}

inline std::string error_of(const std::string& bytes) {
    const TemporaryFolder folder;
    write_unsynced(folder / "m.onnx", bytes);
    return error_of_file(folder / "m.onnx");
}

inline std::string error_of(const OnnxModel& model) {
    return error_of(model.bytes());
}

inline const Value& value(const Graph& graph, std::string_view name) {
    const ValueId id = graph.find(name);
    REQUIRE(id != no_value);
    return graph.values[id];
}

}  // namespace qcalib::test
