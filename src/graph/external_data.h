#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace qcalib {

// The files beside a model that hold its external tensor data. They may not lie outside the model's folder.
class ExternalData {
  public:
    explicit ExternalData(const std::filesystem::path& model_path);

    // The file at `location` (relative to the model's folder), mapped once; null where it cannot be had,
    // which problems() then tells, with `tensor` among those that need it.
    std::shared_ptr<const MappedFile> open(const std::string& location, std::string_view tensor);

    // One sentence for each location that could not be opened.
    std::vector<std::string> problems() const;

    // In the order of first use.
    const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }

  private:
    struct Failure {
        std::string location;
        std::string reason;
        std::string first_tensor;
        std::size_t tensors = 0;
    };

    std::filesystem::path resolve(const std::string& location) const;  // throws Error

    std::filesystem::path folder_;
    std::vector<std::shared_ptr<const MappedFile>> files_;
    std::vector<Failure> failures_;
    std::map<std::string, std::shared_ptr<const MappedFile>> by_location_;  // null: failed
};

}  // namespace qcalib
