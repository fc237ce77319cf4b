#include "ranges/range_method.h"

namespace qcalib {

TensorSamples::TensorSamples(const StatisticsFile& file, std::size_t tensor)
    : file_(&file), tensor_(tensor) {}

const std::string& TensorSamples::name() const {
    return file_->header().tensors[tensor_].name;
}

bool TensorSamples::constant() const {
    return file_->header().tensors[tensor_].constant;
}

const TensorStatistics& TensorSamples::statistics() const {
    return file_->tensor(tensor_);
}

std::size_t TensorSamples::rows() const {
    return constant() ? 0 : file_->rows();
}

SampleSummary TensorSamples::row(std::size_t index) const {
    return file_->entry(index, tensor_);
}

}  // namespace qcalib
