#include "graph/reading_problems.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

// Larger files are given back to the system piece by piece while they are hashed.
constexpr std::size_t hash_piece_bytes = std::size_t{1} << 24;

}  // namespace

void refuse_model(const std::filesystem::path& path, std::span<const std::string> problems) {
    const std::string shown = printable(path.string());
    if (problems.size() == 1) fail("{}: {}", shown, problems.front());
    std::string text = fmt::format("{}: {} problems:", shown, problems.size());
    for (const std::string& problem : problems) text += "\n  - " + problem;
    throw Error(text);
}

std::string double_remark(std::span<const std::string> tensors) {
    return fmt::format("double is computed as float32 ('{}'{})", printable(tensors.front()),
                       tensors.size() > 1 ? " and others" : "");
}

void hash_file(Sha256& hash, const MappedFile& file) {
    const std::span<const std::byte> bytes = file.bytes();
    for (std::size_t start = 0; start < bytes.size(); start += hash_piece_bytes) {
        const auto piece = bytes.subspan(start, std::min(hash_piece_bytes, bytes.size() - start));
        hash.update(piece);
        if (bytes.size() > hash_piece_bytes) file.release_pages(piece);
    }
}

}  // namespace qcalib
