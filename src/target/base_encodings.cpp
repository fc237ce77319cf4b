#include "target/base_encodings.h"

#include <array>
#include <string_view>
#include <unordered_set>

#include "base/text.h"

namespace qcalib {

namespace {

// What Qualcomm's converters add to the names of tensors.
constexpr std::array<std::string_view, 7> converter_suffixes{"_fc",  "_permute", ".nchw", ".ncs",
                                                             "_nfc", "_ncf",     ":0"};

// " (did you mean 'x'?)", also where the name has what a converter adds.
std::string nearest(const std::string& name, std::span<const std::string> names,
                    const std::unordered_set<std::string>& known) {
    for (const std::string_view suffix : converter_suffixes) {
        if (!name.ends_with(suffix)) continue;
        const std::string without = name.substr(0, name.size() - suffix.size());
        if (known.contains(without))
            return fmt::format(" (did you mean '{}'? '{}' is what a converter adds)", printable(without),
                               suffix);
    }
    return did_you_mean(name, names);
}

}  // namespace

BaseTable::BaseTable(const BaseEncodings& base) : base_(base) {
    for (const auto* section : {&base.set.activations, &base.set.parameters}) {
        for (const TensorEncoding& entry : *section) entries_.emplace(entry.tensor, &entry);
    }
}

const TensorEncoding* BaseTable::find(const std::string& tensor) const {
    const auto found = entries_.find(tensor);
    return found == entries_.end() ? nullptr : found->second;
}

void BaseTable::remark_dropped(std::span<const std::string> names, const EncodingSet& written,
                               const std::unordered_map<std::string, std::string>& why,
                               Remarks& remarks) const {
    const std::unordered_set<std::string> known(names.begin(), names.end());
    std::unordered_set<std::string> kept;
    for (const auto* section : {&written.activations, &written.parameters}) {
        for (const TensorEncoding& entry : *section) kept.insert(entry.tensor);
    }
    constexpr std::size_t most = 20;  // remarks on names that are unknown
    std::size_t unknown = 0;
    for (const auto* section : {&base_.set.activations, &base_.set.parameters}) {
        for (const TensorEncoding& entry : *section) {
            if (kept.contains(entry.tensor)) continue;
            if (!known.contains(entry.tensor)) {
                if (++unknown > most) continue;
                remarks.add(fmt::format("{}: '{}' is no tensor of the model and is left out{}",
                                        printable(base_.label), printable(entry.tensor),
                                        nearest(entry.tensor, names, known)));
                continue;
            }
            const auto reason = why.find(entry.tensor);
            remarks.add(fmt::format("{}: the entry of '{}' is left out: {}", printable(base_.label),
                                    printable(entry.tensor),
                                    reason == why.end() ? "it gets no encoding" : reason->second));
        }
    }
    if (unknown > most) {
        remarks.add(fmt::format("{}: {} more of its names are no tensors of the model and are left out",
                                printable(base_.label), unknown - most));
    }
}

}  // namespace qcalib
