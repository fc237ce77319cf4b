#include "base/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr std::size_t write_buffer_bytes = std::size_t{1} << 18;

std::string system_message(int code) {
    return std::generic_category().message(code);
}

std::string shown(const std::filesystem::path& path) {
    return printable(path.string());
}

// Opens a regular file for reading and answers its descriptor and size. O_NONBLOCK: a pipe is refused, not
// waited for.
std::pair<int, std::size_t> open_regular_file(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) fail("{}: cannot be read: {}", shown(path), system_message(errno));
    struct stat status = {};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        ::close(descriptor);
        fail("{}: expected a file, found {}", shown(path),
             S_ISDIR(status.st_mode) ? "a folder" : "no regular file");
    }
    return {descriptor, static_cast<std::size_t>(status.st_size)};
}

// Locks the file for as long as the descriptor is open, which ends with the process, however that ends. Where
// the file system has no locks, there is none. False where another process has it, or had and has moved it.
bool lock(int descriptor, const std::filesystem::path& path) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    struct stat opened = {};
    struct stat named = {};
    return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
    const auto [descriptor, size] = open_regular_file(path);
    size_ = size;
    if (size_ > 0) {
        void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
        const int code = errno;
        ::close(descriptor);
        if (mapping == MAP_FAILED) fail("{}: cannot be mapped: {}", shown(path), system_message(code));
        data_ = static_cast<const std::byte*>(mapping);
    } else {
        ::close(descriptor);
    }
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release_pages(std::span<const std::byte> range) const {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t before = reinterpret_cast<std::uintptr_t>(range.data()) % page;
    const std::size_t skipped = before == 0 ? 0 : page - before;
    if (range.size() < skipped + page) return;
    const std::span<const std::byte> pages = range.subspan(skipped, (range.size() - skipped) / page * page);
    ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_DONTNEED);
}

std::string read_text_file(const std::filesystem::path& path) {
    const auto [descriptor, size] = open_regular_file(path);
    std::string text(size, '\0');
    std::size_t done = 0;
    while (done < size) {
        const ssize_t count = ::read(descriptor, text.data() + done, size - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    ::close(descriptor);
    if (done != size) fail("{}: cannot be read: {} of {} bytes came", shown(path), done, size);
    return text;
}

void prepare_output_folder(const std::filesystem::path& folder) {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    if (!std::filesystem::is_directory(folder)) {
        fail("{}: cannot be made a folder: {}", shown(folder),
             code ? code.message() : std::string("a file of that name exists"));
    }
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        fail("{}: cannot be written to: {}", shown(folder), system_message(errno));
    }
}

OutputFile::OutputFile(std::filesystem::path path, std::string_view temporary_suffix)
    : path_(std::move(path)) {
    temporary_ = path_;
    temporary_ += temporary_suffix;
    open_temporary(O_CREAT, 0);
}

OutputFile::OutputFile(std::filesystem::path path, std::string_view temporary_suffix, std::uint64_t kept)
    : path_(std::move(path)), stays_(true), size_(kept) {
    temporary_ = path_;
    temporary_ += temporary_suffix;
    open_temporary(0, kept);
}

void OutputFile::open_temporary(int flags, std::uint64_t kept) {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC | flags, 0644);
    if (descriptor_ < 0) fail("{}: cannot be written: {}", shown(path_), system_message(errno));
    const auto end = static_cast<off_t>(kept);
    const bool locked = lock(descriptor_, temporary_);
    const bool cut = locked && (::ftruncate(descriptor_, end) == 0 || errno == EINVAL) &&
                     ::lseek(descriptor_, end, SEEK_SET) == end;
    if (!cut) {
        const std::string reason = locked ? system_message(errno) : "another run is writing it";
        ::close(std::exchange(descriptor_, -1));
        fail("{}: cannot be written: {}", shown(path_), reason);
    }
    buffer_.reserve(write_buffer_bytes);
}

OutputFile::~OutputFile() {
    if (descriptor_ < 0) return;
    if (!stays_) ::unlink(temporary_.c_str());
    ::close(descriptor_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
    size_ += bytes.size();
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= write_buffer_bytes) flush_buffer();
}

void OutputFile::write(std::string_view text) {
    write(std::as_bytes(std::span(text.data(), text.size())));
}

void OutputFile::flush_buffer() {
    std::size_t done = 0;
    while (done < buffer_.size()) {
        const ssize_t count = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail("{}: cannot be written: {}", shown(path_), system_message(errno));
        done += static_cast<std::size_t>(count);
    }
    buffer_.clear();
}

void OutputFile::bring_to_disk() {
    flush_buffer();
    if (::fsync(descriptor_) != 0 && errno != EINVAL) {
        fail("{}: cannot be written: {}", shown(path_), system_message(errno));
    }
}

void OutputFile::sync() {
    bring_to_disk();
    stays_ = true;
}

void OutputFile::commit() {
    bring_to_disk();
    const bool in_place = ::rename(temporary_.c_str(), path_.c_str()) == 0;
    const int code = errno;
    if (!in_place && !stays_) ::unlink(temporary_.c_str());
    ::close(std::exchange(descriptor_, -1));
    if (!in_place) {
        fail("{}: cannot be put in place: {}", shown(path_), system_message(code));
    }
}

void write_file(const std::filesystem::path& path, std::string_view text) {
    OutputFile file(path);
    file.write(text);
    file.commit();
}

}  // namespace qcalib
