#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/error.h"

namespace qcalib::test {

// A new empty folder that is removed with all that was put into it.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        static std::atomic<int> count = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("qcalib_dataset_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
        std::filesystem::create_directories(path_);
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

    // Writes a file of the folder, with the folders above it, and answers its path.
    std::filesystem::path write(const std::string& name, std::string_view bytes) const {
        const std::filesystem::path path = path_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return path;
    }

    template <typename T>
    std::filesystem::path write_values(const std::string& name, std::span<const T> values) const {
        return write(name, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    }

  private:
    std::filesystem::path path_;
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

// The message of the Error that `function` throws; "no error" where it throws none.
template <typename Function>
std::string error_of(Function&& function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace qcalib::test
