#pragma once

#include <atomic>

namespace qcalib {

// While it lives, SIGINT and SIGTERM set a flag instead of ending the program; a second one ends it at once.
class InterruptHandler {
  public:
    InterruptHandler();
    ~InterruptHandler();
    InterruptHandler(const InterruptHandler&) = delete;
    InterruptHandler& operator=(const InterruptHandler&) = delete;

    // The flag, valid for the whole run.
    static const std::atomic<bool>& flag();
};

}  // namespace qcalib
