#include "dataset/file_reader.h"

#include <algorithm>
#include <array>
#include <string>

namespace qcalib {

namespace {

struct Ending {
    std::string_view ending;
    ReadFile read;
    CutFile cut = nullptr;
};

constexpr Ending raw{"", read_raw_file, cut_raw_file};  // all that no other reader claims
constexpr std::array endings = {
    Ending{".npy", read_npy_file, cut_npy_file},
    Ending{".jpg", read_picture},
    Ending{".jpeg", read_picture},
    Ending{".png", read_picture},
    Ending{".bmp", read_picture},
    Ending{".webp", read_picture},
    Ending{".tif", read_picture},
    Ending{".tiff", read_picture},
    Ending{".ppm", read_picture},
    Ending{".pgm", read_picture},
};

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

const Ending& row_of(const std::filesystem::path& path) {
    const std::string ending = ending_of(path);
    const auto found =
        std::find_if(endings.begin(), endings.end(), [&](const Ending& e) { return e.ending == ending; });
    return found == endings.end() ? raw : *found;
}

}  // namespace

std::string ending_of(const std::filesystem::path& path) {
    std::string ending = path.extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(), lower);
    return ending;
}

ReadFile reader_for(const std::filesystem::path& path) {
    return row_of(path).read;
}

CutFile cutter_for(const std::filesystem::path& path) {
    return row_of(path).cut;
}

Tensor FileSteps::step(std::size_t index) const {
    return moved_data(stored.type, stored.shape, elements.data() + index * stored.bytes(), move);
}

bool is_npz(const std::filesystem::path& path) {
    return ending_of(path) == ".npz";
}

bool is_raw(const std::filesystem::path& path) {
    return !is_npz(path) && reader_for(path) == read_raw_file;
}

bool is_picture(const std::filesystem::path& file) {
    return reader_for(file) == read_picture;
}

}  // namespace qcalib
