#pragma once

namespace qcalib {

// While it lives, denormal results and operands count as zero on this thread (FTZ and DAZ of MXCSR).
class DenormalGuard {
  public:
    DenormalGuard();
    ~DenormalGuard();
    DenormalGuard(const DenormalGuard&) = delete;
    DenormalGuard& operator=(const DenormalGuard&) = delete;

  private:
    unsigned int saved_;
};

// While it lives, OpenMP regions that this thread enters use one thread: oneDNN is built on OpenMP and fixes
// its thread count when a primitive is made, so creation and execution both need it.
class SingleThreadGuard {
  public:
    SingleThreadGuard();
    ~SingleThreadGuard();
    SingleThreadGuard(const SingleThreadGuard&) = delete;
    SingleThreadGuard& operator=(const SingleThreadGuard&) = delete;

  private:
    int saved_;
};

}  // namespace qcalib
