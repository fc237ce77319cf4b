#include "cli/console.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/table.h"

namespace qcalib {

namespace {

constexpr std::chrono::milliseconds terminal_interval{100};
constexpr std::chrono::seconds plain_interval{5};

std::size_t terminal_width(int descriptor, std::size_t otherwise) {
    winsize size = {};
    return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

// The text in a colour of the terminal that standard error is; plain where it is none, and where the
// environment has NO_COLOR (https://no-color.org).
std::string coloured(std::string_view text, std::string_view code) {
    const char* wish = std::getenv("NO_COLOR");
    const bool plain = ::isatty(STDERR_FILENO) != 1 || (wish != nullptr && *wish != '\0');
    return plain ? std::string(text) : fmt::format("\033[{}m{}\033[0m", code, text);
}

constexpr std::string_view red = "31";
constexpr std::string_view yellow = "33";

}  // namespace

void Console::print(std::string_view text) const {
    fmt::print(stdout, "{}", text);
}

void Console::note(std::string_view text) const {
    if (!quiet_) fmt::print(stderr, "{}\n", text);
}

void Console::error(std::string_view text) const {
    fmt::print(stderr, "{} {}\n", coloured("qcalib:", red), text);
}

void Console::remarks(const Remarks& remarks) const {
    for (const std::string& text : remarks.all())
        fmt::print(stderr, "{} {}\n", coloured("remark:", yellow), text);
}

std::size_t Console::width() const {
    return terminal_width(STDOUT_FILENO, 120);
}

ProgressLine::ProgressLine(const Console& console)
    : console_(console), terminal_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()), last_(start_) {}

ProgressLine::~ProgressLine() {
    if (shown_ && terminal_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::advance(std::size_t done, std::size_t total, std::string_view current) {
    if (console_.quiet()) return;
    if (!before_) before_ = done - 1;
    const Clock::time_point now = Clock::now();
    if (terminal_ ? now - last_ < terminal_interval && done != total : now - last_ < plain_interval) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>(done - *before_) / std::max(seconds, 1e-9);
    const std::string figures = fmt::format("{}/{} samples, {:.1f}/s, {:.0f} s left, ", done, total, rate,
                                            static_cast<double>(total - done) / std::max(rate, 1e-9));
    if (terminal_) {
        const std::size_t width = terminal_width(STDERR_FILENO, 80);
        const std::size_t left = width > figures.size() + 1 ? width - figures.size() - 1 : 0;
        fmt::print(stderr, "\r\033[K{}{}", figures, elide_middle(std::string(current), left));
        std::fflush(stderr);
    } else {
        fmt::print(stderr, "{}{}\n", figures, current);
    }
    shown_ = true;
}

}  // namespace qcalib
