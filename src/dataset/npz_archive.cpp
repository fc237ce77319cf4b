#include "dataset/npz_archive.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include <zip.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

constexpr std::string_view member_ending = ".npy";
// Rows that were run over on the way to another one and may be asked for next by another worker.
constexpr std::size_t most_kept_rows = 64;
constexpr std::uint64_t most_compression = 1032;  // of deflate
constexpr std::size_t most_kept_bytes = std::size_t{64} << 20;

struct CloseArchive {
    void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
    void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

std::string text_of(int code) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    return printable(text);
}

Archive open_archive(const std::filesystem::path& path) {
    static_cast<void>(MappedFile(path));  // refuses what is no regular file
    int code = 0;
    Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
    if (archive == nullptr) {
        fail("{}: expected a .npz file, a zip archive of .npy files: {}", printable(path.string()),
             text_of(code));
    }
    return archive;
}

struct Row {
    std::uint64_t index = 0;
    Tensor elements;
};

// A member and how far it has been read.
struct Array {
    zip_uint64_t index = 0;
    std::string shown;
    std::optional<NpyHeader> header;
    bool stored = false;  // not compressed
    Member stream;
    std::uint64_t position = 0;  // of `stream`
    std::deque<Row> kept;
};

}  // namespace

struct NpzArchive::Implementation {
    std::filesystem::path path;
    Archive archive;
    std::vector<Array> arrays;  // after the archive they belong to
    std::mutex mutex;           // libzip's archives are for one thread at a time

    void start(Array& array) {
        array.stream.reset(zip_fopen_index(archive.get(), array.index, 0));
        array.position = 0;
        if (array.stream == nullptr) {
            fail("{}: cannot be read: {}", array.shown, printable(zip_strerror(archive.get())));
        }
    }

    // Reads on to fill `target`.
    void read_on(Array& array, std::span<std::byte> target) {
        std::size_t done = 0;
        while (done < target.size()) {
            const zip_int64_t count =
                zip_fread(array.stream.get(), target.data() + done, target.size() - done);
            if (count <= 0) {
                const std::string reason =
                    count < 0 ? printable(zip_file_strerror(array.stream.get())) : "it ends early";
                array.stream.reset();
                fail("{}: damaged: {}", array.shown, reason);
            }
            done += static_cast<std::size_t>(count);
        }
        array.position += target.size();
    }

    void skip_to(Array& array, std::uint64_t position) {
        std::array<std::byte, 16384> scrap;
        while (array.position < position) {
            const auto count = std::min<std::uint64_t>(scrap.size(), position - array.position);
            read_on(array, std::span(scrap).first(static_cast<std::size_t>(count)));
        }
    }

    const NpyHeader& header(Array& array) {
        if (array.header) return *array.header;
        zip_stat_t facts;
        if (zip_stat_index(archive.get(), array.index, 0, &facts) != 0 ||
            (facts.valid & ZIP_STAT_SIZE) == 0) {
            fail("{}: damaged: its size is not known", array.shown);
        }
        array.stored = (facts.valid & ZIP_STAT_COMP_METHOD) != 0 && facts.comp_method == ZIP_CM_STORE;
        if (facts.size / most_compression > std::filesystem::file_size(path)) {
            fail("{}: damaged: {} bytes cannot come from this file", array.shown, facts.size);
        }
        start(array);
        std::vector<std::byte> first(
            static_cast<std::size_t>(std::min<std::uint64_t>(facts.size, most_npy_header)));
        read_on(array, first);
        NpyHeader header = read_npy_header(first, array.shown);
        const TensorDescriptor& descriptor = header.descriptor;
        const std::uint64_t bytes = facts.size - header.data;
        const std::size_t size = size_of(descriptor.type);
        if (bytes % size != 0 || bytes / size != descriptor.elements()) {
            fail("{}: expected {} elements of {} bytes for {} {}, found {} bytes", array.shown,
                 descriptor.elements(), size, name_of(descriptor.type), to_string(descriptor.shape), bytes);
        }
        array.header = std::move(header);
        return *array.header;
    }

    Tensor take(Array& array, TensorDescriptor descriptor) {
        Tensor tensor(std::move(descriptor));
        const auto bytes = tensor.mutable_view().bytes();
        read_on(array, bytes);
        if (tensor.type() == DataType::boolean) mend_bools(bytes);
        return tensor;
    }

    void keep(Array& array, Row row, std::size_t bytes) {
        const std::size_t most = std::min(most_kept_rows, most_kept_bytes / std::max<std::size_t>(bytes, 1));
        if (most == 0) return;
        if (array.kept.size() >= most) array.kept.pop_front();
        array.kept.push_back(std::move(row));
    }

    Tensor compressed_row(Array& array, const TensorDescriptor& descriptor, std::uint64_t row) {
        const auto found =
            std::find_if(array.kept.begin(), array.kept.end(), [&](const Row& r) { return r.index == row; });
        if (found != array.kept.end()) {
            Tensor elements = found->elements;
            array.kept.erase(found);
            return elements;
        }
        const std::size_t bytes = descriptor.bytes();
        const std::uint64_t data = array.header->data;
        const std::uint64_t wanted = data + row * bytes;
        const bool at_row = array.position >= data && (bytes == 0 || (array.position - data) % bytes == 0);
        if (array.stream == nullptr || array.position > wanted || !at_row) start(array);
        const std::uint64_t kept = std::min<std::uint64_t>(row, most_kept_rows) * bytes;
        skip_to(array, std::max<std::uint64_t>(std::max(array.position, data), wanted - kept));
        while (array.position < wanted) {
            const std::uint64_t index = (array.position - data) / bytes;
            keep(array, {index, take(array, descriptor)}, bytes);
        }
        return take(array, descriptor);
    }
};

NpzArchive::NpzArchive(std::filesystem::path path) : implementation_(std::make_unique<Implementation>()) {
    const std::string shown = printable(path.string());
    implementation_->archive = open_archive(path);
    implementation_->path = std::move(path);
    zip_t* archive = implementation_->archive.get();
    const auto count = static_cast<zip_uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive, 0)));
    for (zip_uint64_t index = 0; index < count; ++index) {
        const char* name = zip_get_name(archive, index, ZIP_FL_ENC_RAW);
        if (name == nullptr) continue;
        std::string_view text = name;
        if (!text.ends_with(member_ending)) continue;
        text.remove_suffix(member_ending.size());
        names_.emplace_back(text);
        Array& array = implementation_->arrays.emplace_back();
        array.index = index;
        array.shown = fmt::format("{}, array '{}'", shown, printable(text));
    }
    if (names_.empty()) fail("{}: expected arrays (.npy members), found none", shown);
}

NpzArchive::~NpzArchive() = default;

std::string NpzArchive::shown(std::size_t array) const {
    return implementation_->arrays[array].shown;
}

const TensorDescriptor& NpzArchive::descriptor(std::size_t array) const {
    const std::lock_guard lock(implementation_->mutex);
    return implementation_->header(implementation_->arrays[array]).descriptor;
}

Tensor NpzArchive::read(std::size_t array) const {
    const std::lock_guard lock(implementation_->mutex);
    Array& one = implementation_->arrays[array];
    const NpyHeader& header = implementation_->header(one);
    implementation_->start(one);
    implementation_->skip_to(one, header.data);
    return implementation_->take(one, header.descriptor);
}

Tensor NpzArchive::read_row(std::size_t array, std::uint64_t row) const {
    const std::lock_guard lock(implementation_->mutex);
    Array& one = implementation_->arrays[array];
    const NpyHeader& header = implementation_->header(one);
    TensorDescriptor descriptor = header.descriptor;
    descriptor.shape.erase(descriptor.shape.begin());
    if (!one.stored) return implementation_->compressed_row(one, descriptor, row);
    if (one.stream == nullptr) implementation_->start(one);
    const std::uint64_t position = header.data + row * descriptor.bytes();
    if (zip_fseek(one.stream.get(), static_cast<zip_int64_t>(position), SEEK_SET) != 0) {
        fail("{}: damaged: {}", one.shown, printable(zip_file_strerror(one.stream.get())));
    }
    one.position = position;
    return implementation_->take(one, std::move(descriptor));
}

}  // namespace qcalib
