#include "simulate/dumps.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "audit/tensor_names.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "engine/input_export.h"
#include "simulate/comparison.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_file_name = 200;

std::vector<std::string> names_of(const Graph& graph) {
    std::vector<std::string> names;
    for (const Value& value : graph.values) names.push_back(value.name);
    return names;
}

// The number of a folder called Result_12, or 12.
std::optional<std::uint64_t> sample_of(std::string name) {
    constexpr std::string_view prefix = "Result_";
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    return number;
}

bool is_dump(const fs::path& file) {
    return file.extension() == ".npy" || file.extension() == ".raw";
}

Tensor as_floats(const Tensor& tensor, const std::string& shown) {
    Tensor floats = to_float32(tensor, shown);
    if (floats.type() == DataType::float32) return floats;
    const std::vector<double> numbers = numbers_of(floats.view());
    std::vector<float> values(numbers.begin(), numbers.end());
    return Tensor::of<float>(floats.shape(), values);
}

Tensor read_raw(const fs::path& file, const Shape& shape) {
    const std::string text = read_text_file(file);
    const auto elements = static_cast<std::size_t>(element_count(shape));
    if (text.size() != elements * sizeof(float)) {
        fail("{}: expected {} bytes ({} float32), found {}", printable(file.string()),
             elements * sizeof(float), to_string(shape), text.size());
    }
    Tensor tensor({DataType::float32, shape, MemoryOrder::row_major});
    std::ranges::copy(std::as_bytes(std::span(text)), tensor.mutable_view().bytes().begin());
    return tensor;
}

// The same elements as a tensor of this shape and order.
Tensor taken_as(const Tensor& tensor, const Shape& shape, MemoryOrder order) {
    Tensor taken({DataType::float32, shape, order});
    std::ranges::copy(tensor.view().bytes(), taken.mutable_view().bytes().begin());
    return taken;
}

// The file that DumpWriter gives each value, without its ending.
std::vector<std::string> file_names(const Graph& graph) {
    std::set<std::string> taken;
    std::vector<std::string> files;
    for (const Value& value : graph.values) {
        std::string name = file_part(value.name);
        if (name.size() > longest_file_name) name.resize(longest_file_name);
        std::string file = name;
        for (int i = 2; !taken.insert(file).second; ++i) file = fmt::format("{}~{}", name, i);
        files.push_back(std::move(file));
    }
    return files;
}

Shape channels_last_shape(Shape shape) {
    std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    return shape;
}

}  // namespace

DumpWriter::DumpWriter(fs::path folder, const Graph& graph)
    : folder_(std::move(folder)), files_(file_names(graph)) {}

void DumpWriter::write(const SampleStep& step, ValueId value, TensorView view) const {
    const std::string name = step.sequence ? fmt::format("Result_{}_{}", step.number, step.step)
                                           : fmt::format("Result_{}", step.number);
    const fs::path folder = folder_ / name;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail("{}: {}", printable(folder.string()), error.message());
    write_npy(folder / (files_[value] + ".npy"), view);
}

DumpFolder::DumpFolder(const fs::path& folder, const Graph& graph, std::size_t samples, Remarks& remarks)
    : graph_(graph), values_(graph.values.size()) {
    const std::string shown = printable(folder.string());
    std::error_code error;
    if (!fs::is_directory(folder, error)) fail("{}: expected a folder of dumped tensors", shown);
    std::vector<fs::path> entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        entries.push_back(entry.path());
    }
    if (error) fail("{}: {}", shown, error.message());
    std::ranges::sort(entries);
    bool by_sample = false;
    for (const fs::path& entry : entries) {
        const auto sample = sample_of(entry.filename().string());
        if (!sample || !fs::is_directory(entry, error)) continue;
        by_sample = true;
        list(entry, *sample);
    }
    if (!by_sample) {
        if (samples > 1) {
            fail("{}: expected a folder Result_<N> for each of the {} samples, found none", shown, samples);
        }
        list(folder, 0);
    }
    if (files_.empty()) {
        fail("{}: no .raw or .npy file is of a tensor of the model{}", shown,
             foreign_.empty() ? ""
                              : fmt::format(" (found '{}'{})", printable(foreign_.front()),
                                            did_you_mean(foreign_.front(), names_of(graph))));
    }
    if (!foreign_.empty()) {
        remarks.add(fmt::format("{}: {} file{} of no tensor of the model: '{}'{}", shown, foreign_.size(),
                                foreign_.size() == 1 ? " is" : "s are", printable(foreign_.front()),
                                foreign_.size() == 1 ? "" : ", ..."));
    }
}

void DumpFolder::list(const fs::path& folder, std::uint64_t sample) {
    const std::vector<std::string> names = names_of(graph_);
    const NameMatcher matcher(names);
    const NameMatcher own_files(file_names(graph_));
    std::vector<fs::path> found;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
        if (entry.is_regular_file(error) && is_dump(entry.path())) found.push_back(entry.path());
    }
    if (error) fail("{}: {}", printable(folder.string()), error.message());
    std::ranges::sort(found);
    for (const fs::path& file : found) {
        const std::string name = (file.parent_path() / file.stem()).lexically_relative(folder).string();
        std::optional<std::size_t> place = matcher.exactly(name);
        if (!place) place = own_files.exactly(name);
        if (!place) place = matcher.match(name);
        if (!place) place = matcher.match("/" + name);
        if (!place) {
            foreign_.push_back(name);
            continue;
        }
        values_[*place] = true;
        files_.emplace(std::pair(sample, static_cast<ValueId>(*place)), file);
    }
}

std::optional<Tensor> DumpFolder::read(std::uint64_t sample, ValueId value, TensorView expected) const {
    const auto place = files_.find({sample, value});
    if (place == files_.end()) return std::nullopt;
    const fs::path& file = place->second;
    const std::string shown = printable(file.string());
    const Shape& shape = expected.descriptor->shape;
    Tensor tensor = file.extension() == ".npy" ? as_floats(read_npy(file), shown) : read_raw(file, shape);
    if (tensor.view().elements() != expected.elements()) {
        fail("{}: expected the shape {}, found {}", shown, to_string(shape), to_string(tensor.shape()));
    }
    Tensor rows = taken_as(tensor, shape, MemoryOrder::row_major);
    const bool two_orders = shape.size() >= 3 && shape.size() <= 5 && !same_in_both_orders(shape);
    if (!two_orders) return rows;
    if (file.extension() == ".npy" && tensor.shape() == shape && channels_last_shape(shape) != shape)
        return rows;
    Tensor last = taken_as(tensor, shape, MemoryOrder::channels_last);
    const bool last_is_nearer =
        compare(expected, last.view()).squared_error < compare(expected, rows.view()).squared_error;
    return last_is_nearer ? last : rows;
}

}  // namespace qcalib
