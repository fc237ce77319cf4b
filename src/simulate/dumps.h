#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "graph/graph.h"
#include "simulate/sample_runs.h"
#include "tensor/tensor.h"

namespace qcalib {

// Writes tensors as <folder>/Result_<sample>/<tensor>.npy, of a step of a sequence
// <folder>/Result_<sample>_<step>/... What cannot stand in a file's name becomes an underscore.
class DumpWriter {
  public:
    DumpWriter(std::filesystem::path folder, const Graph& graph);

    // Safe to call from several threads.
    void write(const SampleStep& step, ValueId value, TensorView view) const;

  private:
    std::filesystem::path folder_;
    std::vector<std::string> files_;  // by value, without ending
};

// Tensors that a device or another tool wrote, sample by sample: <folder>/Result_<N>/<tensor>.raw (float32)
// or .npy, or without a folder a sample where there is one sample alone. Names may be what a converter makes
// of the graph's.
class DumpFolder {
  public:
    // Lists the files. Errors: no folder, no file that is of a tensor of the graph. Files that are for no
    // tensor become one remark.
    DumpFolder(const std::filesystem::path& folder, const Graph& graph, std::size_t samples,
               Remarks& remarks);

    // Whether some sample has a file of the value.
    const std::vector<bool>& values() const { return values_; }

    // What the file holds, in the order of `expected`, which is float32; nothing where the sample has none.
    // Channels may come last: of the two orders the one that is nearer to `expected` is taken. Errors start
    // with the file.
    std::optional<Tensor> read(std::uint64_t sample, ValueId value, TensorView expected) const;

  private:
    void list(const std::filesystem::path& folder, std::uint64_t sample);

    const Graph& graph_;
    std::vector<bool> values_;
    std::map<std::pair<std::uint64_t, ValueId>, std::filesystem::path> files_;
    std::vector<std::string> foreign_;  // files of no tensor
};

}  // namespace qcalib
