#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

// Does one check after the other and keeps what is wrong, each thing once, to report all together.
class Checks {
  public:
    // Whether `check` threw no Error.
    template <typename Check>
    bool passed(Check&& check) {
        try {
            std::forward<Check>(check)();
            return true;
        } catch (const Error& error) {
            const std::string text = error.what();
            if (std::find(errors_.begin(), errors_.end(), text) == errors_.end()) errors_.push_back(text);
            return false;
        }
    }

    // One Error with all of them, a line each.
    void throw_if_any() const {
        if (!errors_.empty()) throw Error(join(errors_, "\n"));
    }

  private:
    std::vector<std::string> errors_;
};

}  // namespace qcalib
