#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qcalib {

// A file mapped read-only and private. Throws Error "<path>: ..." where it cannot be opened or is no regular
// file.
class MappedFile {
  public:
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const { return {data_, size_}; }
    const std::filesystem::path& path() const { return path_; }

    // Gives the pages that lie wholly inside `range` (a part of bytes()) back to the system; reading them
    // again brings them back from the file.
    void release_pages(std::span<const std::byte> range) const;

  private:
    std::filesystem::path path_;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

// The whole file as text or bytes; an Error names the path.
std::string read_text_file(const std::filesystem::path& path);

// Creates the folder and its parents where missing and checks that files can be made in it; an Error names
// the path.
void prepare_output_folder(const std::filesystem::path& folder);

// A file that appears whole or not at all: written beside its place under a temporary name, synced and
// renamed by commit(); removed by the destructor where commit() was not reached. One that another process is
// writing is an Error. Errors name the final path.
class OutputFile {
  public:
    // `temporary_suffix` is added to the final name while the file is being written.
    explicit OutputFile(std::filesystem::path path, std::string_view temporary_suffix = ".tmp");
    // Goes on behind the first `kept` bytes of a temporary file that is there, and cuts off the rest; it
    // stays where commit() is not reached.
    OutputFile(std::filesystem::path path, std::string_view temporary_suffix, std::uint64_t kept);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::span<const std::byte> bytes);
    void write(std::string_view text);
    std::uint64_t size() const { return size_; }
    // Brings all that was written to the disk; from now on the temporary file stays where commit() is not
    // reached.
    void sync();
    void commit();

  private:
    void open_temporary(int flags, std::uint64_t kept);
    void flush_buffer();
    void bring_to_disk();

    std::filesystem::path path_;
    std::filesystem::path temporary_;
    int descriptor_ = -1;
    bool stays_ = false;
    std::uint64_t size_ = 0;
    std::vector<std::byte> buffer_;
};

// Writes a whole small file through OutputFile.
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace qcalib
