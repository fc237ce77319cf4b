#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding.h"

namespace qcalib {

// Encodings that exist already, to be kept and completed.
struct BaseEncodings {
    EncodingSet set;
    std::string label;                             // what remarks call it: the file
    std::unordered_set<std::string> ranges_alone;  // tensors whose width is the run's, not the base's
};

// A base, by the names of tensors; remembers which of its entries were used. A tensor that it names twice has
// the entry of the section looked at first.
class BaseTable {
  public:
    explicit BaseTable(const BaseEncodings& base);

    // The entry of a tensor, or nullptr.
    const TensorEncoding* find(const std::string& tensor) const;
    // Whether of that entry only the range counts.
    bool range_alone(const std::string& tensor) const { return base_.ranges_alone.contains(tensor); }

    // Remarks for what is not in `written`: names that are none of `names` (with the nearest), and tensors
    // that get no encoding, with the reason that `why` has for them, if any.
    void remark_dropped(std::span<const std::string> names, const EncodingSet& written,
                        const std::unordered_map<std::string, std::string>& why, Remarks& remarks) const;

  private:
    const BaseEncodings& base_;
    std::unordered_map<std::string, const TensorEncoding*> entries_;
};

}  // namespace qcalib
