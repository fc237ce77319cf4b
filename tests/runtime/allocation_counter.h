#pragma once

#include <cstddef>
#include <functional>

namespace qcalib::test {

// How often `action` allocates on this thread, allocations inside oneDNN left out.
std::size_t allocations_during(const std::function<void()>& action);

}  // namespace qcalib::test
