#include "dataset/file_reader.h"

#include <algorithm>
#include <array>
#include <string>

namespace qcalib {

namespace {

struct Ending {
    std::string_view ending;
    ReadFile read;
};

constexpr std::array endings = {
    Ending{".npy", read_npy_file}, Ending{".jpg", read_picture},  Ending{".jpeg", read_picture},
    Ending{".png", read_picture},  Ending{".bmp", read_picture},  Ending{".webp", read_picture},
    Ending{".tif", read_picture},  Ending{".tiff", read_picture}, Ending{".ppm", read_picture},
    Ending{".pgm", read_picture},
};

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

ReadFile reader_for(const std::filesystem::path& path) {
    std::string ending = path.extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(), lower);
    const auto found =
        std::find_if(endings.begin(), endings.end(), [&](const Ending& e) { return e.ending == ending; });
    return found == endings.end() ? read_raw_file : found->read;
}

bool is_picture(const std::filesystem::path& file) {
    return reader_for(file) == read_picture;
}

}  // namespace qcalib
