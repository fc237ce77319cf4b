#pragma once

#include <span>
#include <string>
#include <string_view>

namespace qcalib {

// An option of TIDL's runtimes.
struct TidlOption {
    enum class Kind : unsigned char { text, integer, real };

    std::string_view name;
    Kind kind = Kind::text;
    std::string_view choices = "";  // "0, 1, 2, 9": an integer has to be one of them; "": any

    std::string expected() const;  // "one of 0, 1", "a whole number", "a number", "a text"
    // What is wrong with a value, quoted; "" where nothing is.
    std::string objection(const std::string& value) const;
};

// All that edgeai-tidl-tools documents (docs/model_compilation.md, examples/osrt_python/README.md).
std::span<const TidlOption> tidl_options();
// The option of that name, or nullptr.
const TidlOption* tidl_option(std::string_view name);

}  // namespace qcalib
