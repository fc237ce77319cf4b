#include "runtime/plan.h"

namespace qcalib {

const TensorDescriptor* Plan::descriptor(ValueId value) const {
    const auto found = tensor_of_value_.find(value);
    return found == tensor_of_value_.end() ? nullptr
                                           : &tensors_[static_cast<std::size_t>(found->second)].descriptor;
}

DataType Plan::declared_type(ValueId value) const {
    const auto found = declared_types_.find(value);
    return found == declared_types_.end() ? DataType::undefined : found->second;
}

}  // namespace qcalib
