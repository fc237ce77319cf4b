#include <utility>

#include "ranges/range_method.h"

namespace qcalib {

TensorSamples::TensorSamples(const StatisticsFile& file, std::size_t tensor)
    : name_(file.header().tensors[tensor].name),
      constant_(file.header().tensors[tensor].constant),
      statistics_(&file.tensor(tensor)),
      file_(&file),
      tensor_(tensor) {}

TensorSamples::TensorSamples(std::string name, const TensorStatistics& statistics)
    : name_(std::move(name)), statistics_(&statistics) {}

std::size_t TensorSamples::rows() const {
    return constant_ ? 0 : file_->rows();
}

SampleSummary TensorSamples::row(std::size_t index) const {
    return file_->entry(index, tensor_);
}

}  // namespace qcalib
