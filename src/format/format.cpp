#include "format/format.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "format/snpe_json.h"

namespace qcalib {

std::span<const Format* const> formats() {
    static const SnpeJson snpe;
    static const std::array<const Format*, 1> all{&snpe};
    return all;
}

const Format& find_format(const std::string& name) {
    std::vector<std::string> names;
    for (const Format* format : formats()) {
        if (format->name() == name) return *format;
        names.push_back(format->name());
    }
    fail("format '{}': expected one of {}{}", printable(name), join(names, ", "), did_you_mean(name, names));
}

}  // namespace qcalib
