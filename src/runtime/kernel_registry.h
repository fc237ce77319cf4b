#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel.h"

namespace qcalib {

// One operator from one opset version on.
struct OperatorEntry {
    std::string domain;  // "" for ONNX's own
    std::string op_type;
    std::int64_t since = 1;  // the first opset version this entry serves
    std::string summary;     // one line for `qcalib list operators`
    std::vector<std::size_t> value_inputs =
        {};                          // integer inputs whose value prepare() must know (shapes, axes)
    bool needs_shapes_only = false;  // its outputs depend on the shapes of its inputs alone (Shape, Size)
    std::unique_ptr<Kernel> (*make)() = nullptr;            // the fast kernel (float32)
    std::unique_ptr<Kernel> (*make_reference)() = nullptr;  // the plain one beside it (float32 and float64)
    // Inputs whose values make the plan better where they are known (a condition, a trip count): integer
    // graph inputs of a few elements that lead to them are part of the signature.
    std::vector<std::size_t> useful_values = {};
    // Whether it takes strings, sequences and optional values, too.
    bool any_elements = false;
    // The body that stands for the node where what is known of its inputs decides it (an If), else nullptr.
    const Body* (*taken_body)(const Node& node, std::span<const InputInfo> inputs) = nullptr;
};

template <typename K>
std::unique_ptr<Kernel> make_kernel() {
    return std::make_unique<K>();
}

class KernelRegistry {
  public:
    // A second entry of the same operator and version is an internal error.
    void add(OperatorEntry entry);
    // The entry with the greatest `since` that is at most `opset`, or nullptr.
    const OperatorEntry* find(std::string_view domain, std::string_view op_type, std::int64_t opset) const;
    std::vector<const OperatorEntry*> entries() const;  // sorted by domain, name, version
    // Names of the operators of `domain`.
    std::vector<std::string> names(std::string_view domain) const;

  private:
    std::map<std::pair<std::string, std::string>, std::map<std::int64_t, OperatorEntry>> operators_;
};

// Throws Error naming the node where an input's elements are none that the operator takes.
void check_elements(const OperatorEntry& entry, const NodeContext& context);

// All operators qcalib has; listed in runtime/kernels/all.cpp.
const KernelRegistry& builtin_kernels();

}  // namespace qcalib
