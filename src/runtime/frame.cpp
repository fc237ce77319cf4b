#include "runtime/frame.h"

#include "runtime/guards.h"

namespace qcalib {

void Frame::run(const std::shared_ptr<const Plan>& plan, std::span<const Tensor> inputs,
                std::uint64_t sample) {
    const DenormalGuard denormals;
    const SingleThreadGuard single_thread;
    views_.clear();
    for (const Tensor& input : inputs) views_.push_back(input.view());
    runner_.run(plan, views_, {}, sample);
}

}  // namespace qcalib
