#include "graph/model_file.h"

#include <array>
#include <fstream>

#include "graph/circle_file.h"
#include "graph/onnx_file.h"

namespace qcalib {

namespace {

bool begins_as_circle(const std::filesystem::path& path) {
    std::array<char, 8> beginning{};
    std::ifstream file(path, std::ios::binary);
    file.read(beginning.data(), beginning.size());
    return file.gcount() == static_cast<std::streamsize>(beginning.size()) &&
           is_circle_file(std::as_bytes(std::span(beginning)));
}

}  // namespace

Model read_model(const std::filesystem::path& path) {
    return begins_as_circle(path) ? read_circle_file(path).model : read_onnx_file(path);
}

}  // namespace qcalib
