#pragma once

#include <filesystem>

namespace qcalib {

// The folder a run writes to. Made where missing; removed again, if empty, unless the run ends well and says
// keep().
class OutputFolder {
  public:
    explicit OutputFolder(std::filesystem::path folder);  // Error where it cannot be made or written to
    ~OutputFolder();
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;

    const std::filesystem::path& path() const { return folder_; }
    void keep() { made_ = false; }

  private:
    std::filesystem::path folder_;
    bool made_;
};

}  // namespace qcalib
