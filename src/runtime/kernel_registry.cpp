#include "runtime/kernel_registry.h"

#include <cassert>
#include <iterator>

#include <fmt/format.h>

namespace qcalib {

void KernelRegistry::add(OperatorEntry entry) {
    assert(entry.make != nullptr && entry.make_reference != nullptr);
    auto& versions = operators_[{entry.domain, entry.op_type}];
    const std::int64_t since = entry.since;
    const bool inserted = versions.emplace(since, std::move(entry)).second;
    assert(inserted);
    static_cast<void>(inserted);
}

const OperatorEntry* KernelRegistry::find(std::string_view domain, std::string_view op_type,
                                          std::int64_t opset) const {
    const auto found = operators_.find({std::string(domain), std::string(op_type)});
    if (found == operators_.end()) return nullptr;
    const auto next = found->second.upper_bound(opset);
    return next == found->second.begin() ? nullptr : &std::prev(next)->second;
}

std::vector<const OperatorEntry*> KernelRegistry::entries() const {
    std::vector<const OperatorEntry*> all;
    for (const auto& [name, versions] : operators_) {
        for (const auto& [since, entry] : versions) all.push_back(&entry);
    }
    return all;
}

void check_elements(const OperatorEntry& entry, const NodeContext& context) {
    if (entry.any_elements) return;
    for (const InputInfo& input : context.inputs) {
        if (!input.present() || is_numeric(input.descriptor.type)) continue;
        context.refuse(fmt::format("expected tensors of numbers, found an input of type {}",
                                   name_of(input.descriptor.type)));
    }
}

std::vector<std::string> KernelRegistry::names(std::string_view domain) const {
    std::vector<std::string> names;
    for (const auto& [name, versions] : operators_) {
        if (name.first == domain) names.push_back(name.second);
    }
    return names;
}

}  // namespace qcalib
