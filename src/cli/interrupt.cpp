#include "cli/interrupt.h"

#include <csignal>

namespace qcalib {

namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int number) {
    interrupted = true;
    std::signal(number, SIG_DFL);
}

}  // namespace

InterruptHandler::InterruptHandler() {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
}

InterruptHandler::~InterruptHandler() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& InterruptHandler::flag() {
    return interrupted;
}

}  // namespace qcalib
