#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/remarks.h"

namespace qcalib {

// Where a command writes: results to standard output, everything else to standard error. Colours only where
// that is a terminal and NO_COLOR is not set.
class Console {
  public:
    void set_quiet(bool quiet) { quiet_ = quiet; }
    bool quiet() const { return quiet_; }

    // A result. Not held back by --quiet.
    void print(std::string_view text) const;
    // What a user may like to know; held back by --quiet.
    void note(std::string_view text) const;
    void error(std::string_view text) const;
    void remarks(const Remarks& remarks) const;

    // Characters a line of standard output holds: the terminal's width, else 120.
    std::size_t width() const;

  private:
    bool quiet_ = false;
};

// Shows how far a run is on standard error: one line that is written over on a terminal, plain lines every
// few seconds elsewhere. Rate and time left come from the samples done so far.
class ProgressLine : public Progress {
  public:
    explicit ProgressLine(const Console& console);
    ~ProgressLine() override;
    void advance(std::size_t done, std::size_t total, std::string_view current) override;

  private:
    using Clock = std::chrono::steady_clock;

    const Console& console_;
    bool terminal_;
    bool shown_ = false;
    std::optional<std::size_t>
        before_;  // samples done before the first that was told of: by a run broken off
    Clock::time_point start_;
    Clock::time_point last_;
};

}  // namespace qcalib
