#include "graph/external_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

bool leads_out(const std::filesystem::path& relative) {
    return relative.empty() || relative.is_absolute() || *relative.begin() == "..";
}

}  // namespace

ExternalData::ExternalData(const std::filesystem::path& model_path)
    : folder_(std::filesystem::canonical(std::filesystem::absolute(model_path).parent_path())) {}

std::filesystem::path ExternalData::resolve(const std::string& location) const {
    if (location.empty()) fail("expected a file name, found an empty one");
    if (location.find('\0') != std::string::npos) fail("expected a file name, found a zero byte in it");
    const std::filesystem::path relative(location);
    if (relative.is_absolute()) fail("expected a path relative to the model's folder, found an absolute one");
    if (leads_out(relative.lexically_normal())) {
        fail("expected a path inside the model's folder, found one that leads out of it");
    }
    std::error_code code;
    std::filesystem::path real = std::filesystem::canonical(folder_ / relative, code);
    if (code) fail("cannot be read: {}", code.message());
    if (leads_out(real.lexically_relative(folder_))) {
        fail("expected a path inside the model's folder, found a link that leads out of it");
    }
    return real;
}

std::shared_ptr<const MappedFile> ExternalData::open(const std::string& location, std::string_view tensor) {
    const auto [entry, is_new] = by_location_.try_emplace(location, nullptr);
    if (!is_new && entry->second) return entry->second;
    if (!is_new) {
        const auto failure = std::find_if(failures_.begin(), failures_.end(),
                                          [&](const Failure& known) { return known.location == location; });
        ++failure->tensors;
        return nullptr;
    }
    try {
        const std::filesystem::path path = resolve(location);
        const auto known = std::find_if(files_.begin(), files_.end(),
                                        [&](const auto& file) { return file->path() == path; });
        if (known != files_.end()) return entry->second = *known;
        files_.push_back(std::make_shared<const MappedFile>(path));
        return entry->second = files_.back();
    } catch (const Error& error) {
        failures_.push_back({location, error.what(), std::string(tensor), 1});
        return nullptr;
    }
}

std::vector<std::string> ExternalData::problems() const {
    std::vector<std::string> sentences;
    for (const Failure& failure : failures_) {
        const std::string others =
            failure.tensors > 1 ? fmt::format(" and {} more", failure.tensors - 1) : std::string();
        sentences.push_back(fmt::format("external data '{}' of {}{}: {}", printable(failure.location),
                                        failure.first_tensor, others, failure.reason));
    }
    return sentences;
}

}  // namespace qcalib
