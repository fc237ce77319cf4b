#include "format/losses.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "format/format_reader.h"

namespace qcalib {

void Losses::unknown_keys(const FileEntry& entry) {
    if (same_format()) return;
    std::set<std::string> keys;
    for (const std::vector<UnknownKey>& element : entry.unknown) {
        for (const UnknownKey& one : element) keys.insert(one.key);
    }
    for (const std::string& key : keys) {
        add(fmt::format("the key '{}' is left out", printable(key)), entry.encoding.tensor);
    }
}

std::vector<UnknownKey> Losses::kept_keys(const std::vector<std::string>& documented) {
    std::vector<UnknownKey> kept;
    for (const UnknownKey& one : file_.unknown) {
        if (same_format() || std::find(documented.begin(), documented.end(), one.key) != documented.end()) {
            kept.push_back(one);
        } else {
            keys_left_out_.push_back(one.key);
        }
    }
    return kept;
}

std::vector<UnknownKey> Losses::kept_keys(const FileEntry& entry, std::size_t index) {
    if (!same_format() || index >= entry.unknown.size()) return {};
    return entry.unknown[index];
}

void Losses::report(Remarks& remarks) const {
    if (!keys_left_out_.empty()) {
        remarks.add(fmt::format("{}: has no place for {} of {}: left out", format_, name_list(keys_left_out_),
                                printable(file_.path.string())));
    }
    for (const auto& [text, tensors] : tensors_) {
        remarks.add(fmt::format("{}: {} {} ({}): {}", format_, tensors.size(),
                                tensors.size() == 1 ? "entry" : "entries", name_list(tensors), text));
    }
}

}  // namespace qcalib
