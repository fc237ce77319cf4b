#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace qcalib::test {

// A temporary folder to put sample files and lists into.
class SampleFolder : public TemporaryFolder {
  public:
    // Writes a file of the folder, with the folders above it, and answers its path.
    std::filesystem::path write(const std::string& name, std::string_view bytes) const {
        const std::filesystem::path file = path() / name;
        std::filesystem::create_directories(file.parent_path());
        write_unsynced(file, bytes);
        return file;
    }

    template <typename T>
    std::filesystem::path write_values(const std::string& name, std::span<const T> values) const {
        return write(name, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    }
};

// Makes a folder the working directory while it lives.
class WorkingDirectory {
  public:
    explicit WorkingDirectory(const std::filesystem::path& path) : before_(std::filesystem::current_path()) {
        std::filesystem::current_path(path);
    }
    ~WorkingDirectory() {
        std::error_code ignored;
        std::filesystem::current_path(before_, ignored);
    }
    WorkingDirectory(const WorkingDirectory&) = delete;
    WorkingDirectory& operator=(const WorkingDirectory&) = delete;

  private:
    std::filesystem::path before_;
};

// The message of the Error that `action` throws, or "".
template <typename Action>
std::string error_of(Action action) {
    return message_of<Error>(action);
}

}  // namespace qcalib::test
