#include "base/remarks.h"

#include <algorithm>
#include <utility>

namespace qcalib {

void Remarks::add(std::string text) {
    const std::scoped_lock lock(mutex_);
    if (std::find(texts_.begin(), texts_.end(), text) == texts_.end()) texts_.push_back(std::move(text));
}

std::vector<std::string> Remarks::all() const {
    const std::scoped_lock lock(mutex_);
    return texts_;
}

bool Remarks::empty() const {
    const std::scoped_lock lock(mutex_);
    return texts_.empty();
}

}  // namespace qcalib
