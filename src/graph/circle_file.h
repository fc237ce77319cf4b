#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace qcalib {

// The domain of the nodes of .circle and .tflite files.
constexpr const char* circle_domain = "circle";

// What a .circle or .tflite file says of a tensor's quantization, as it stands there: lists may be empty, of
// length 1 or of the length of dimension `quantized_dimension`.
struct CircleQuantization {
    std::vector<float> min;
    std::vector<float> max;
    std::vector<float> scale;
    std::vector<std::int64_t> zero_point;
    std::int32_t quantized_dimension = 0;

    bool empty() const { return min.empty() && max.empty() && scale.empty() && zero_point.empty(); }
};

// What the file says of one value beyond what Value holds.
struct CircleTensorFacts {
    std::size_t subgraph = 0;
    std::size_t index = 0;                      // in the subgraph's list of tensors
    std::string name;                           // as in the file: may be empty, or another tensor's too
    std::int32_t type_code = 0;                 // TensorType as in the file
    std::vector<std::int32_t> shape;            // as in the file: 1 where the signature has -1
    std::vector<std::int32_t> shape_signature;  // empty where the file has none
    std::uint32_t buffer = 0;                   // 0: the empty buffer
    CircleQuantization quantization;
    bool is_variable = false;
};

// A .circle (schema 0.3 to 0.10) or .tflite file. Its graph is what the first subgraph says: nodes of domain
// "circle", tensors in the file's own shapes. Subgraphs that a node runs (IF, WHILE, CALL) are bodies of that
// node: "then_branch" and "else_branch", "cond" and "body", "body"; one that two nodes run is there twice.
struct CircleFile {
    Model model;
    std::vector<CircleTensorFacts> tensors;  // by ValueId
    std::size_t subgraph_count = 0;
    std::uint32_t schema_version = 0;
    std::string description;
};

// True where `bytes`, the beginning of a file, are that of a .circle or .tflite file ("CIR0" or "TFL3" at
// byte 4).
bool is_circle_file(std::span<const std::byte> bytes);

// Reads and checks the file; constants stay mapped. Throws Error "<path>: ..." naming tensors and operators,
// several findings at once.
CircleFile read_circle_file(const std::filesystem::path& path);

}  // namespace qcalib
