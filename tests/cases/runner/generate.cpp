#include "cases/runner/generate.h"

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tensor/shape.h"

namespace qcalib::cases {
namespace {

namespace fs = std::filesystem;

void write_new_file(const std::string& path, std::string_view content) {
    if (fs::path(path).has_parent_path()) fs::create_directories(fs::path(path).parent_path());
    write_file(path, content);
}

template <typename T>
std::string repeated(double value, std::int64_t count) {
    const T element = static_cast<T>(value);
    const std::string_view bytes(reinterpret_cast<const char*>(&element), sizeof(T));
    std::string all;
    for (std::int64_t i = 0; i < count; ++i) all += bytes;
    return all;
}

Shape shape_of(const YAML::Node& item) {
    return required(item, "shape").as<Shape>();
}

std::vector<double> levels_of(const YAML::Node& item, const Places& places) {
    if (item["levels"]) return item["levels"].as<std::vector<double>>();
    const std::string path = expand(required(item, "levels_file").as<std::string>(), places);
    std::istringstream stream(read_text_file(path));
    std::vector<double> levels;
    for (double level = 0; stream >> level;) levels.push_back(level);
    if (levels.empty()) fail("{}: expected numbers separated by blanks", path);
    return levels;
}

// Raw float32 files, file i filled with level i times `times`, and the list that names them.
void generate_samples(const YAML::Node& item, const Places& places) {
    check_keys(item, {"samples", "shape", "levels", "levels_file", "times", "list"});
    const auto pattern = item["samples"].as<std::string>();
    const std::int64_t count = element_count(shape_of(item));
    const std::vector<double> levels = levels_of(item, places);
    const double times = item["times"].as<double>(1);
    std::string list;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const std::string path = fmt::format(fmt::runtime(pattern), fmt::format("{:03}", i));
        write_new_file(path, repeated<float>(times * levels[i], count));
        list += path + "\n";
    }
    if (item["list"]) write_new_file(item["list"].as<std::string>(), list);
}

void generate_text(const YAML::Node& item, const Places& places) {
    check_keys(item, {"text", "content"});
    write_new_file(item["text"].as<std::string>(),
                   expand(required(item, "content").as<std::string>(), places));
}

void generate_copy(const YAML::Node& item, const Places& places) {
    check_keys(item, {"copy", "from", "first_bytes"});
    const std::string content = read_text_file(expand(required(item, "from").as<std::string>(), places));
    const auto size = item["first_bytes"].as<std::size_t>(content.size());
    if (size > content.size()) refuse(item, fmt::format("'from' has only {} bytes", content.size()));
    write_new_file(item["copy"].as<std::string>(), std::string_view(content).substr(0, size));
}

std::string npy_elements(const YAML::Node& item, const std::string& type, std::int64_t count) {
    const auto value = item["value"].as<double>(0);
    if (type == "<f4" || type == ">f4") return repeated<float>(value, count);
    if (type == "<f8") return repeated<double>(value, count);
    if (type == "<i4") return repeated<std::int32_t>(value, count);
    if (type == "|u1") return repeated<std::uint8_t>(value, count);
    refuse(item["npy"], fmt::format("unknown dtype '{}'", type));
}

// A .npy file (format 1.0) filled with one value, of any dtype and order that a careless script may have
// written.
void generate_npy(const YAML::Node& item) {
    check_keys(item, {"npy", "dtype", "fortran_order", "shape", "value"});
    const auto type = item["dtype"].as<std::string>("<f4");
    const Shape shape = shape_of(item);
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({},), }}", type,
                    item["fortran_order"].as<bool>(false) ? "True" : "False", fmt::join(shape, ", "));
    constexpr std::size_t before_header = 10;
    while ((before_header + header.size() + 1) % 64 != 0) header += ' ';
    header += '\n';
    const std::string length = {static_cast<char>(header.size() & 0xff),
                                static_cast<char>(header.size() >> 8)};
    write_new_file(item["npy"].as<std::string>(), std::string("\x93NUMPY\x01\x00", 8) + length + header +
                                                      npy_elements(item, type, element_count(shape)));
}

void generate_item(const YAML::Node& item, const Places& places) {
    if (item["samples"]) return generate_samples(item, places);
    if (item["text"]) return generate_text(item, places);
    if (item["copy"]) return generate_copy(item, places);
    if (item["npy"]) return generate_npy(item);
    refuse(item, "expected an item of 'generate' to have one of: samples, text, copy, npy");
}

}  // namespace

void generate(const YAML::Node& items, const Places& places) {
    if (!items) return;
    for (const auto& item : items) generate_item(item, places);
}

}  // namespace qcalib::cases
