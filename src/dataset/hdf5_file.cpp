#include "dataset/hdf5_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include <hdf5.h>
#include <zlib.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

static_assert(std::endian::native == std::endian::little, "elements are read as little-endian");

constexpr std::size_t deepest_group = 16;
constexpr std::uint64_t most_compression =
    4096;  // what a byte of a file may become by a filter or as filling

// An identifier of the library, closed at the end of its life.
class Handle {
  public:
    using Close = herr_t (*)(hid_t);
    Handle(hid_t id, Close close) : id_(id), close_(close) {}
    ~Handle() {
        if (id_ >= 0) close_(id_);
    }
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    Handle& operator=(Handle&&) = delete;
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    bool valid() const { return id_ >= 0; }
    hid_t get() const { return id_; }

  private:
    hid_t id_;
    Close close_;
};

// While it lives, this thread alone is in the library, and the library prints no errors. libhdf5 keeps its
// state for the whole process, so the lock is one for the whole process, too.
class Entry {
  public:
    Entry() : lock_(mutex()) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

  private:
    static std::mutex& mutex() {
        static std::mutex the_only;
        return the_only;
    }
    std::lock_guard<std::mutex> lock_;
};

// What the library says of its last failure.
std::string last_error() {
    std::string text;
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned number, const H5E_error2_t* error, void* target) -> herr_t {
            if (number == 0 && error->desc != nullptr) *static_cast<std::string*>(target) = error->desc;
            return 0;
        },
        &text);
    return text.empty() ? "libhdf5 gives no reason" : printable(text);
}

// IEEE 754 by the widths of exponent and mantissa.
DataType float_type(hid_t type, std::size_t size) {
    std::size_t sign = 0;
    std::size_t exponent_at = 0;
    std::size_t exponent = 0;
    std::size_t mantissa_at = 0;
    std::size_t mantissa = 0;
    if (H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) < 0 || mantissa_at != 0)
        return DataType::undefined;
    if (size == 2 && exponent == 5 && mantissa == 10) return DataType::float16;
    if (size == 4 && exponent == 8 && mantissa == 23) return DataType::float32;
    if (size == 8 && exponent == 11 && mantissa == 52) return DataType::float64;
    return DataType::undefined;
}

DataType integer_type(bool is_signed, std::size_t size) {
    switch (size) {
        case 1:
            return is_signed ? DataType::int8 : DataType::uint8;
        case 2:
            return is_signed ? DataType::int16 : DataType::uint16;
        case 4:
            return is_signed ? DataType::int32 : DataType::uint32;
        case 8:
            return is_signed ? DataType::int64 : DataType::uint64;
        default:
            return DataType::undefined;
    }
}

// The type of a data set's elements; undefined where no tensor has it.
DataType type_of(hid_t type) {
    const std::size_t size = H5Tget_size(type);
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_ENUM) {
        // h5py's bool: FALSE and TRUE over int8.
        return size == 1 && H5Tget_nmembers(type) == 2 ? DataType::boolean : DataType::undefined;
    }
    if (kind != H5T_FLOAT && kind != H5T_INTEGER) return DataType::undefined;
    if (H5Tget_precision(type) != 8 * size || H5Tget_offset(type) != 0) return DataType::undefined;
    if (kind == H5T_FLOAT) return float_type(type, size);
    return integer_type(H5Tget_sign(type) == H5T_SGN_2, size);
}

// How many bytes a zlib stream holds, up to `most` and one more; 0 where it is damaged.
std::uint64_t inflated_size(std::span<const std::byte> stream, std::uint64_t most) {
    z_stream state = {};
    if (::inflateInit(&state) != Z_OK) return 0;
    std::vector<Bytef> window(std::size_t{1} << 16);
    state.next_in =
        const_cast<Bytef*>(reinterpret_cast<const Bytef*>(stream.data()));  // NOLINT: it only reads
    state.avail_in = static_cast<uInt>(stream.size());
    std::uint64_t held = 0;
    int status = Z_OK;
    while (status == Z_OK && held <= most) {
        state.next_out = window.data();
        state.avail_out = static_cast<uInt>(window.size());
        status = ::inflate(&state, Z_NO_FLUSH);
        held += window.size() - state.avail_out;
    }
    ::inflateEnd(&state);
    return status == Z_STREAM_END ? held : 0;
}

}  // namespace

struct Hdf5File::Implementation {
    std::filesystem::path path;
    std::string shown;
    std::uint64_t bytes = 0;
    std::optional<Handle> file;

    // A data set, opened and looked at.
    struct Dataset {
        Handle set;
        Handle type;
        TensorDescriptor descriptor;
    };

    std::string shown_set(const std::string& name) const {
        return fmt::format("{}, data set '{}'", shown, printable(name));
    }

    bool exists(const std::string& name) const {
        for (std::size_t end = name.find('/');; end = name.find('/', end + 1)) {
            const std::string part = name.substr(0, end);
            if (!part.empty() && H5Lexists(file->get(), part.c_str(), H5P_DEFAULT) <= 0) return false;
            H5L_info_t info;
            const bool known =
                part.empty() || H5Lget_info(file->get(), part.c_str(), &info, H5P_DEFAULT) >= 0;
            if (!known) return false;
            if (!part.empty() && info.type != H5L_TYPE_HARD && info.type != H5L_TYPE_SOFT) {
                fail("{}: '{}' is a link into another file", shown, printable(part));
            }
            if (end == std::string::npos) return true;
        }
    }

    H5I_type_t kind_of(const std::string& name) const {
        if (name.empty()) return H5I_GROUP;
        if (!exists(name)) return H5I_BADID;
        const Handle object(H5Oopen(file->get(), name.c_str(), H5P_DEFAULT), H5Oclose);
        return object.valid() ? H5Iget_type(object.get()) : H5I_BADID;
    }

    Handle open_group(const std::string& name) const {
        return {H5Gopen2(file->get(), name.empty() ? "/" : name.c_str(), H5P_DEFAULT), H5Gclose};
    }

    std::uint64_t link_count(const std::string& name) const {
        const Handle group = open_group(name);
        H5G_info_t info;
        if (!group.valid() || H5Gget_info(group.get(), &info) < 0) {
            fail("{}: group '{}' cannot be read: {}", shown, printable(name), last_error());
        }
        return info.nlinks;
    }

    std::vector<std::string> links(const std::string& name, std::size_t most) const {
        const std::uint64_t count = std::min<std::uint64_t>(link_count(name), most);
        const Handle group = open_group(name);
        std::vector<std::string> names;
        for (hsize_t i = 0; i < count; ++i) {
            std::array<char, 1024> text{};
            const ssize_t length = H5Lget_name_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_NATIVE, i,
                                                      text.data(), text.size(), H5P_DEFAULT);
            if (length < 0) {
                fail("{}: group '{}' cannot be read: {}", shown, printable(name), last_error());
            }
            names.emplace_back(text.data());
        }
        return names;
    }

    void find_datasets(const std::string& group, std::size_t depth, std::size_t most,
                       std::vector<std::string>& found) const {
        for (const std::string& link : links(group, most)) {
            if (found.size() >= most) return;
            const std::string name = group.empty() ? link : group + "/" + link;
            const H5I_type_t kind = kind_of(name);
            if (kind == H5I_DATASET) found.push_back(name);
            if (kind == H5I_GROUP && depth < deepest_group) find_datasets(name, depth + 1, most, found);
        }
    }

    // Data in other files are refused.
    void check_storage(const Handle& set, const std::string& name) const {
        const Handle plist(H5Dget_create_plist(set.get()), H5Pclose);
        if (!plist.valid()) fail("{}: cannot be read: {}", shown_set(name), last_error());
        const bool elsewhere =
            H5Pget_layout(plist.get()) == H5D_VIRTUAL || H5Pget_external_count(plist.get()) > 0;
        if (elsewhere)
            fail("{}: expected data in this file, found data kept in another one", shown_set(name));
    }

    Shape shape_of(const Handle& set, const std::string& name) const {
        const Handle space(H5Dget_space(set.get()), H5Sclose);
        const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
        if (rank < 0) fail("{}: cannot be read: {}", shown_set(name), last_error());
        std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
        if (rank > 0) H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
        Shape shape;
        for (const hsize_t size : sizes) {
            if (size > static_cast<hsize_t>(INT64_MAX)) fail("{}: too large", shown_set(name));
            shape.push_back(static_cast<std::int64_t>(size));
        }
        return shape;
    }

    Dataset open(const std::string& name) const {
        if (kind_of(name) != H5I_DATASET) fail("{}: there is no such data set", shown_set(name));
        const hid_t id = H5Dopen2(file->get(), name.c_str(), H5P_DEFAULT);
        Dataset dataset{{id, H5Dclose}, {id < 0 ? id : H5Dget_type(id), H5Tclose}, {}};
        if (!dataset.set.valid() || !dataset.type.valid()) {
            fail("{}: cannot be read: {}", shown_set(name), last_error());
        }
        check_storage(dataset.set, name);
        dataset.descriptor.type = type_of(dataset.type.get());
        if (dataset.descriptor.type == DataType::undefined) {
            fail("{}: expected numbers of 8 to 64 bits or bools, found another type", shown_set(name));
        }
        dataset.descriptor.shape = shape_of(dataset.set, name);
        try {
            static_cast<void>(dataset.descriptor.elements());
        } catch (const Error& error) {
            fail("{}: {}", shown_set(name), error.what());
        }
        return dataset;
    }

    // The library takes a chunk of whatever size its file gives: one that holds less than it should would be
    // read beyond its end. So each chunk of the rows from `first` on is looked at before.
    void check_chunks(const Dataset& dataset, std::uint64_t first, std::uint64_t rows,
                      const std::string& name) const {
        const Handle plist(H5Dget_create_plist(dataset.set.get()), H5Pclose);
        if (!plist.valid() || H5Pget_layout(plist.get()) != H5D_CHUNKED) return;
        const Shape& shape = dataset.descriptor.shape;
        std::vector<hsize_t> chunk(shape.size());
        if (H5Pget_chunk(plist.get(), static_cast<int>(chunk.size()), chunk.data()) !=
                static_cast<int>(chunk.size()) ||
            std::ranges::count(chunk, 0U) > 0) {
            fail("{}: damaged: its chunks have another rank", shown_set(name));
        }
        const std::vector<H5Z_filter_t> filters = filters_of(plist, name);
        std::uint64_t chunk_bytes = size_of(dataset.descriptor.type);
        for (const hsize_t side : chunk) {
            if (side > most_compression * bytes / std::max<std::uint64_t>(chunk_bytes, 1))
                fail("{}: damaged: its chunks cannot come from a file of {} bytes", shown_set(name), bytes);
            chunk_bytes *= side;
        }
        std::vector<hsize_t> at(shape.size(), 0);
        at.front() = first / chunk.front() * chunk.front();
        const auto next = [&] {
            for (std::size_t axis = at.size(); axis-- > 0;) {
                at[axis] += chunk[axis];
                const auto end = axis == 0 ? first + rows : static_cast<std::uint64_t>(shape[axis]);
                if (at[axis] < end) return true;
                at[axis] = axis == 0 ? at[axis] : 0;
            }
            return false;
        };
        do {
            check_chunk(dataset, at, filters, chunk_bytes, name);
        } while (next());
    }

    std::vector<H5Z_filter_t> filters_of(const Handle& plist, const std::string& name) const {
        std::vector<H5Z_filter_t> filters;
        const int count = H5Pget_nfilters(plist.get());
        for (int i = 0; i < count; ++i) {
            unsigned flags = 0;
            std::size_t values = 0;
            const H5Z_filter_t filter = H5Pget_filter2(plist.get(), static_cast<unsigned>(i), &flags, &values,
                                                       nullptr, 0, nullptr, nullptr);
            if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
                filter != H5Z_FILTER_FLETCHER32) {
                fail("{}: expected data that are not compressed or by gzip, found filter {}", shown_set(name),
                     filter);
            }
            filters.push_back(filter);
        }
        return filters;
    }

    void check_chunk(const Dataset& dataset, const std::vector<hsize_t>& at,
                     const std::vector<H5Z_filter_t>& filters, std::uint64_t expected,
                     const std::string& name) const {
        unsigned mask = 0;
        haddr_t address = HADDR_UNDEF;
        hsize_t stored = 0;
        if (H5Dget_chunk_info_by_coord(dataset.set.get(), at.data(), &mask, &address, &stored) < 0)
            fail("{}: cannot be read: {}", shown_set(name), last_error());
        if (address == HADDR_UNDEF) return;  // never written: zeros
        if (stored > bytes)
            fail("{}: damaged: a chunk of {} bytes in a file of {}", shown_set(name), stored, bytes);
        std::vector<std::byte> chunk(stored);
        if (H5Dread_chunk(dataset.set.get(), H5P_DEFAULT, at.data(), &mask, chunk.data()) < 0)
            fail("{}: cannot be read: {}", shown_set(name), last_error());
        std::uint64_t held = stored;
        for (std::size_t i = filters.size(); i-- > 0;) {
            if ((mask >> i & 1U) != 0) continue;
            if (filters[i] == H5Z_FILTER_FLETCHER32) held -= std::min<std::uint64_t>(held, 4);
            if (filters[i] == H5Z_FILTER_DEFLATE)
                held = inflated_size({chunk.data(), static_cast<std::size_t>(held)}, expected + 4);
        }
        if (held != expected) {
            fail("{}: damaged: a chunk holds {} bytes, expected {}", shown_set(name), held, expected);
        }
    }

    Tensor read(const Dataset& dataset, const TensorDescriptor& part, hid_t memory_space, hid_t file_space,
                const std::string& name) const {
        if (part.bytes() / most_compression > bytes) {
            fail("{}: damaged: {} {} cannot come from a file of {} bytes", shown_set(name),
                 name_of(part.type), to_string(part.shape), bytes);
        }
        Tensor tensor(part);
        const Handle memory(H5Tcopy(dataset.type.get()), H5Tclose);
        const bool number = part.type != DataType::boolean;
        const bool ready = memory.valid() && (!number || H5Tset_order(memory.get(), H5T_ORDER_LE) >= 0);
        if (!ready || H5Dread(dataset.set.get(), memory.get(), memory_space, file_space, H5P_DEFAULT,
                              tensor.mutable_view().data) < 0) {
            fail("{}: cannot be read: {}", shown_set(name), last_error());
        }
        if (!number) mend_bools(tensor.mutable_view().bytes());
        return tensor;
    }
};

Hdf5File::Hdf5File(std::filesystem::path path)
    : shown_(printable(path.string())), implementation_(std::make_unique<Implementation>()) {
    implementation_->bytes = MappedFile(path).bytes().size();  // refuses what is no regular file
    implementation_->path = std::move(path);
    implementation_->shown = shown_;
    const Entry entry;
    if (H5Fis_hdf5(implementation_->path.c_str()) <= 0) {
        fail("{}: expected an HDF5 file, found another kind of file", shown_);
    }
    implementation_->file.emplace(H5Fopen(implementation_->path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                                  H5Fclose);
    if (!implementation_->file->valid()) fail("{}: damaged: {}", shown_, last_error());
}

Hdf5File::~Hdf5File() {
    const Entry entry;
    implementation_->file.reset();
}

std::string Hdf5File::shown(const std::string& dataset) const {
    return implementation_->shown_set(dataset);
}

bool Hdf5File::is_group(const std::string& name) const {
    const Entry entry;
    return implementation_->kind_of(name) == H5I_GROUP;
}

bool Hdf5File::has_attribute(const std::string& group, const std::string& attribute) const {
    const Entry entry;
    return implementation_->exists(group) &&
           H5Aexists_by_name(implementation_->file->get(), group.c_str(), attribute.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> Hdf5File::links(const std::string& group, std::size_t most) const {
    const Entry entry;
    return implementation_->links(group, most);
}

std::uint64_t Hdf5File::link_count(const std::string& group) const {
    const Entry entry;
    return implementation_->link_count(group);
}

std::vector<std::string> Hdf5File::datasets(std::size_t most) const {
    const Entry entry;
    std::vector<std::string> found;
    implementation_->find_datasets("", 0, most, found);
    std::sort(found.begin(), found.end());
    return found;
}

TensorDescriptor Hdf5File::describe(const std::string& dataset) const {
    const Entry entry;
    return implementation_->open(dataset).descriptor;
}

Tensor Hdf5File::read(const std::string& dataset) const {
    const Entry entry;
    const Implementation::Dataset opened = implementation_->open(dataset);
    const Shape& shape = opened.descriptor.shape;
    if (!shape.empty() && opened.descriptor.elements() > 0)
        implementation_->check_chunks(opened, 0, static_cast<std::uint64_t>(shape.front()), dataset);
    return implementation_->read(opened, opened.descriptor, H5S_ALL, H5S_ALL, dataset);
}

Tensor Hdf5File::read_row(const std::string& dataset, std::uint64_t row) const {
    const Entry entry;
    const Implementation::Dataset opened = implementation_->open(dataset);
    const Shape& shape = opened.descriptor.shape;
    if (shape.empty() || row >= static_cast<std::uint64_t>(shape.front())) {
        fail("{}: expected more than {} rows, found shape {}", shown(dataset), row, to_string(shape));
    }
    TensorDescriptor part = opened.descriptor;
    part.shape.erase(part.shape.begin());
    std::vector<hsize_t> start(shape.size(), 0);
    std::vector<hsize_t> count(shape.begin(), shape.end());
    start.front() = row;
    count.front() = 1;
    const Handle from(H5Dget_space(opened.set.get()), H5Sclose);
    const Handle into(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
    if (!from.valid() || !into.valid() ||
        H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0) {
        fail("{}: cannot be read: {}", shown(dataset), last_error());
    }
    if (opened.descriptor.elements() > 0) implementation_->check_chunks(opened, row, 1, dataset);
    return implementation_->read(opened, part, into.get(), from.get(), dataset);
}

}  // namespace qcalib
