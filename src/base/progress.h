#pragma once

#include <cstddef>
#include <string_view>

namespace qcalib {

// Told how far a run is. Calls come from one thread at a time.
class Progress {
  public:
    virtual ~Progress() = default;
    // `done` of `total` samples are finished; `current` names the file last finished.
    virtual void advance(std::size_t done, std::size_t total, std::string_view current) = 0;
};

}  // namespace qcalib
