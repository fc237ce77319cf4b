#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace qcalib {

// Something the user can cause and mend: a missing file, a malformed model, an unknown name. The message
// starts with the file (and line) or tensor it is about and says what was expected and what was found.
class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Throws an Error with a formatted message.
template <typename... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    throw Error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace qcalib
