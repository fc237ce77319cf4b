#include "base/files.h"

#include <algorithm>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace qcalib {

namespace {

using test::TemporaryFolder;

template <typename Action>
std::string error_of(Action action) {
    return test::message_of<Error>(action);
}

std::size_t files_in(const std::filesystem::path& folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

bool is_root() {
    return ::geteuid() == 0;
}

// KiB of the mapping at `address` that are in this process's memory, from /proc/self/smaps.
std::size_t resident_kib(const void* address) {
    std::ifstream maps("/proc/self/smaps");
    const std::string start = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(address));
    std::string line;
    while (std::getline(maps, line) && !line.starts_with(start)) {
    }
    while (std::getline(maps, line)) {
        if (line.starts_with("Rss:")) return std::stoul(line.substr(4));
    }
    return 0;
}

}  // namespace

TEST_CASE("a written file appears whole when it is committed and not before") {
    const TemporaryFolder folder;
    OutputFile file(folder / "out.txt");
    file.write(std::string_view("hello "));
    file.write(std::string_view("world"));
    CHECK(file.size() == 11);
    CHECK_FALSE(std::filesystem::exists(folder / "out.txt"));
    file.commit();
    CHECK(read_text_file(folder / "out.txt") == "hello world");
    CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a file that is not committed leaves nothing and keeps what was there") {
    const TemporaryFolder folder;
    {
        OutputFile file(folder / "new.txt", ".part");
        file.write(std::string_view("half"));
        CHECK(std::filesystem::exists(folder / "new.txt.part"));
    }
    CHECK(files_in(folder.path()) == 0);

    write_file(folder / "old.txt", "old");
    {
        OutputFile file(folder / "old.txt");
        file.write(std::string_view("half"));
    }
    CHECK(read_text_file(folder / "old.txt") == "old");
    CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a file larger than the write buffer keeps every byte") {
    const TemporaryFolder folder;
    std::string text(700'001, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 % 251);
    OutputFile file(folder / "large");
    for (std::size_t start = 0; start < text.size(); start += 1013) {
        file.write(std::string_view(text).substr(start, 1013));
    }
    file.commit();
    CHECK(read_text_file(folder / "large") == text);
}

TEST_CASE("a file that cannot be made is an error that names its final path") {
    const TemporaryFolder folder;
    const std::string path = (folder / "missing/out.txt").string();
    const std::string message = error_of([&] { OutputFile file(path); });
    CHECK(message.starts_with(path + ": cannot be written: "));
    CHECK(message.find(".tmp") == std::string::npos);
}

TEST_CASE("a file that cannot be put in place is an error and leaves no temporary file") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder / "taken/inside");
    OutputFile file(folder / "taken");
    CHECK(error_of([&] {
              file.commit();
          }).starts_with((folder / "taken").string() + ": cannot be put in place: "));
    CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a full device is an error and leaves no file") {
    if (!std::filesystem::exists("/dev/full")) return;
    const TemporaryFolder folder;
    std::filesystem::create_symlink("/dev/full", folder / "out.tmp");
    OutputFile file(folder / "out");
    file.write(std::string_view("x"));
    CHECK(error_of([&] { file.commit(); }).starts_with((folder / "out").string() + ": cannot be written: "));
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_CASE("a synced file stays where it is not committed, and another goes on behind its first bytes") {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "out";
    {
        OutputFile file(path, ".part");
        file.write("kept");
        file.sync();
        file.write("lost");
    }
    CHECK(read_text_file(folder / "out.part").starts_with("kept"));
    {
        OutputFile file(path, ".part", 4);
        CHECK(file.size() == 4);
        file.write(" and more");
    }
    CHECK(read_text_file(folder / "out.part") == "kept");
    OutputFile file(path, ".part", 4);
    file.write(", done");
    file.commit();
    CHECK(read_text_file(path) == "kept, done");
    CHECK_FALSE(std::filesystem::exists(folder / "out.part"));
    CHECK(error_of([&] { OutputFile none(path, ".part", 4); }).starts_with(path.string() + ": "));
}

TEST_CASE("a file that is being written cannot be written by another") {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "out";
    OutputFile first(path);
    first.write("first");
    const std::string message = path.string() + ": cannot be written: another run is writing it";
    CHECK(error_of([&] { OutputFile second(path); }) == message);
    CHECK(error_of([&] { OutputFile second(path, ".tmp", 0); }) == message);
    first.commit();
    CHECK(read_text_file(path) == "first");
    OutputFile second(path);
    second.write("second");
    second.commit();
    CHECK(read_text_file(path) == "second");
}

TEST_CASE("an output folder is made with its parents") {
    const TemporaryFolder folder;
    prepare_output_folder(folder / "a/b");
    CHECK(std::filesystem::is_directory(folder / "a/b"));
    prepare_output_folder(folder / "a/b");
    CHECK(files_in(folder / "a/b") == 0);
}

TEST_CASE("an output folder that cannot be had is an error that names it") {
    const TemporaryFolder folder;
    write_file(folder / "file", "x");
    CHECK(error_of([&] {
              prepare_output_folder(folder / "file");
          }).starts_with((folder / "file").string() + ": cannot be made a folder: "));
    CHECK(error_of([&] {
              prepare_output_folder(folder / "file/below");
          }).starts_with((folder / "file/below").string() + ": cannot be made a folder: "));
    if (is_root()) return;
    std::filesystem::create_directory(folder / "closed");
    std::filesystem::permissions(folder / "closed", std::filesystem::perms::owner_read);
    CHECK(error_of([&] { prepare_output_folder(folder / "closed"); }).find("cannot be written to") !=
          std::string::npos);
}

TEST_CASE("a mapped file shows the file's bytes") {
    const TemporaryFolder folder;
    write_file(folder / "data", "abc");
    const MappedFile file(folder / "data");
    REQUIRE(file.bytes().size() == 3);
    CHECK(file.bytes()[2] == std::byte{'c'});
    CHECK(file.path() == folder / "data");
    write_file(folder / "empty", "");
    CHECK(MappedFile(folder / "empty").bytes().empty());
}

TEST_CASE("what is no regular file is an error and is not waited for") {
    const TemporaryFolder folder;
    CHECK(error_of([&] {
              MappedFile file(folder / "none");
          }).starts_with((folder / "none").string() + ": cannot be read: "));
    CHECK(error_of([&] { MappedFile file(folder.path()); }) ==
          folder.path().string() + ": expected a file, found a folder");
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    CHECK(error_of([&] { MappedFile file(folder / "pipe"); }) ==
          (folder / "pipe").string() + ": expected a file, found no regular file");
    CHECK(error_of([&] {
              read_text_file(folder / "none\n");
          }).starts_with((folder / "none").string() + "\\x0a: cannot be read: "));
}

TEST_CASE("released pages leave memory and come back with the same bytes") {
    const TemporaryFolder folder;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::string text(page * 8 + 100, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 253);
    write_file(folder / "data", text);
    const MappedFile file(folder / "data");
    const auto same = [&] {
        return std::equal(text.begin(), text.end(), reinterpret_cast<const char*>(file.bytes().data()));
    };
    REQUIRE(same());
    const std::size_t page_kib = page / 1024;
    CHECK(resident_kib(file.bytes().data()) == 9 * page_kib);
    file.release_pages(file.bytes());
    CHECK(resident_kib(file.bytes().data()) <= page_kib);  // the last page is not whole
    CHECK(same());
    // Parts: one that spans no whole page, one that begins and ends inside pages, the empty one.
    file.release_pages(file.bytes().subspan(10, 100));
    file.release_pages(file.bytes().subspan(page - 1, 3 * page));
    file.release_pages({});
    CHECK(same());
}

}  // namespace qcalib
