#include "dataset/sample_source.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "dataset/entry_reader.h"
#include "dataset/input_names.h"
#include "dataset/sample_reader.h"
#include "dataset/sample_store.h"

namespace qcalib {

namespace {

namespace fs = std::filesystem;

using OpenStore = std::shared_ptr<const SampleStore> (*)(const fs::path& path,
                                                         std::span<const InputSpec> inputs, Remarks& remarks);

OpenStore store_of(const fs::path& path) {
    const std::string ending = ending_of(path);
    if (ending == ".npy") return open_npy_store;
    if (ending == ".npz") return open_npz_store;
    if (ending == ".h5" || ending == ".hdf5") return open_hdf5_store;
    return nullptr;
}

std::vector<ListEntry> entries_of(const fs::path& path, std::shared_ptr<const SampleStore> store,
                                  std::size_t inputs) {
    std::vector<fs::path> files(inputs);
    for (std::size_t i = 0; i < inputs; ++i) {
        if (store->has(i)) files[i] = path;
    }
    std::vector<ListEntry> entries;
    entries.reserve(store->samples());
    for (std::uint64_t sample = 0; sample < store->samples(); ++sample) {
        entries.push_back({sample + 1, files, store});
    }
    return entries;
}

bool is_hidden(const fs::path& path) {
    return path.filename().string().starts_with('.');
}

// What lies in a folder, in no order.
std::vector<fs::path> children_of(const fs::path& folder, const std::string& shown) {
    std::error_code code;
    std::vector<fs::path> children;
    fs::directory_iterator at(folder.empty() ? "." : folder, code);
    for (; !code && at != fs::directory_iterator(); at.increment(code)) {
        children.push_back(folder / at->path().filename());
    }
    if (code) fail("{}: folder {} cannot be read: {}", shown, printable(folder.string()), code.message());
    return children;
}

bool has_wildcard(std::string_view text) {
    return text.find_first_of("*?") != std::string_view::npos;
}

// The paths that match the parts of a pattern from `part` on, below `folder`. A wildcard does not match what
// is hidden.
void match_parts(const fs::path& folder, std::span<const std::string> parts, const std::string& shown,
                 std::vector<fs::path>& found) {
    std::error_code ignored;
    if (parts.empty()) {
        if (fs::is_regular_file(folder, ignored)) found.push_back(folder);
        return;
    }
    if (!has_wildcard(parts.front()))
        return match_parts(folder / parts.front(), parts.subspan(1), shown, found);
    if (!folder.empty() && !fs::is_directory(folder, ignored)) return;
    for (const fs::path& child : children_of(folder, shown)) {
        const std::string name = child.filename().string();
        if (is_hidden(child) && !parts.front().starts_with('.')) continue;
        if (glob_match(parts.front(), name)) match_parts(child, parts.subspan(1), shown, found);
    }
}

std::vector<fs::path> matches_of(const std::string& pattern) {
    std::vector<std::string> parts;
    for (const std::string& part : split(pattern, '/')) {
        if (!part.empty()) parts.push_back(part);
    }
    std::vector<fs::path> found;
    match_parts(pattern.starts_with('/') ? "/" : "", parts, printable(pattern), found);
    if (found.empty()) fail("{}: no file matches this pattern", printable(pattern));
    return found;
}

std::vector<fs::path> files_of(const fs::path& folder) {
    const std::string shown = printable(folder.string());
    std::vector<fs::path> found;
    for (const fs::path& child : children_of(folder, shown)) {
        std::error_code ignored;
        if (!is_hidden(child) && fs::is_regular_file(child, ignored)) found.push_back(child);
    }
    if (found.empty()) fail("{}: expected files in this folder, a sample each, found none", shown);
    return found;
}

// One file a sample, sorted by bytes.
std::vector<ListEntry> entries_of(std::vector<fs::path> files, std::span<const InputSpec> inputs,
                                  const std::string& shown) {
    if (inputs.empty()) fail("{}: the model has no inputs that samples could fill", shown);
    std::sort(files.begin(), files.end(),
              [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
    std::vector<std::size_t> required;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].otherwise) required.push_back(i);
    }
    std::vector<ListEntry> entries;
    for (fs::path& file : files) {
        ListEntry& entry = entries.emplace_back();
        entry.line = entries.size();
        entry.files.resize(inputs.size());
        if (is_npz(file)) {
            std::fill(entry.files.begin(), entry.files.end(), file);
            continue;
        }
        if (required.size() > 1 && is_raw(file)) {
            for (const std::size_t input : required) entry.files[input] = file;
            entry.joined = true;
            continue;
        }
        if (required.size() != 1) {
            fail(
                "{}: a file fills one input, the model asks for {}, found {}; use .npz files with an array "
                "for "
                "each of {}, raw files with the data of all one after the other, or a list",
                shown, required.size(), printable(file.string()), list_of_inputs(inputs));
        }
        entry.files[required.front()] = std::move(file);
    }
    return entries;
}

}  // namespace

std::vector<ListEntry> read_sample_source(const std::string& source, std::span<const InputSpec> inputs,
                                          Remarks& remarks) {
    const fs::path path(source);
    const std::string shown = printable(source);
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return entries_of(files_of(path), inputs, shown);
    if (has_wildcard(source) && !fs::exists(path, ignored))
        return entries_of(matches_of(source), inputs, shown);
    if (const OpenStore open = store_of(path))
        return entries_of(path, open(path, inputs, remarks), inputs.size());
    if (is_picture(path)) return entries_of({path}, inputs, shown);
    return read_sample_list(path, inputs, remarks);
}

std::span<const SampleSourceInfo> sample_sources() {
    static const std::array<SampleSourceInfo, 6> all = {
        SampleSourceInfo{"list",
                         "A text file: a path a line, or name:=path for each input (SNPE's input_list), or a "
                         "path for each in their order or one raw file with the data of all (ONE's "
                         "record-minmax)"},
        SampleSourceInfo{"folder",
                         "Its files, sorted by bytes, one a sample; a raw file has the data of all "
                         "inputs, one after the other"},
        SampleSourceInfo{"pattern",
                         "photos/*.jpg: the files that * and ? match, sorted by bytes, one a sample"},
        SampleSourceInfo{".npz", "An array for each input by name, samples along the first axis"},
        SampleSourceInfo{".npy", "The array of the one input, samples along the first axis"},
        SampleSourceInfo{".h5 .hdf5",
                         "A data set for each input by name, samples along the first axis; or "
                         "/value/<sample>/<input>, as ONE's record-minmax reads it"}};
    return all;
}

}  // namespace qcalib
