#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace qcalib {

// What a run noticed and its user should know, in the order it was noticed. Safe to add to from several
// threads.
class Remarks {
  public:
    // Keeps `text` unless the very same text is kept already.
    void add(std::string text);
    std::vector<std::string> all() const;
    bool empty() const;

  private:
    mutable std::mutex mutex_;
    std::vector<std::string> texts_;
};

}  // namespace qcalib
