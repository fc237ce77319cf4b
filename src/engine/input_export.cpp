#include "engine/input_export.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace qcalib {

namespace {

bool is_plain(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '.' || character == '_' || character == '-';
}

bool has_blank(const std::string& text) {
    return text.find_first_of(" \t\r\n") != std::string::npos;
}

Tensor as_float32(const Tensor& tensor, const std::string& name) {
    Tensor floats = to_float32(tensor, name);
    if (floats.type() == DataType::float32) return floats;
    const std::vector<double> numbers = numbers_of(floats.view());
    std::vector<float> values(numbers.size());
    std::ranges::transform(numbers, values.begin(), [](double number) { return static_cast<float>(number); });
    return Tensor::of<float>(floats.shape(), values);
}

Tensor channels_last(const Tensor& tensor) {
    TensorDescriptor descriptor = tensor.descriptor();
    descriptor.order = MemoryOrder::channels_last;
    Tensor copy(std::move(descriptor));
    copy_to_order(tensor.view(), copy.mutable_view());
    return copy;
}

}  // namespace

std::string sample_text(std::uint64_t sample) {
    return fmt::format("{:06}", sample);
}

std::string step_text(std::uint64_t sequence, std::uint64_t step) {
    return fmt::format("{:06}.{:06}", sequence, step);
}

std::string file_part(const std::string& input) {
    std::string name = input;
    std::ranges::replace_if(
        name, [](char character) { return !is_plain(character); }, '_');
    return name;
}

InputExport::InputExport(std::filesystem::path folder, std::span<const InputSpec> inputs,
                         std::vector<std::int64_t> channels_last_ranks)
    : folder_(std::filesystem::absolute(std::move(folder)).lexically_normal()),
      channels_last_ranks_(std::move(channels_last_ranks)) {
    if (has_blank(folder_.string())) {
        fail("{}: expected a folder without blanks, at which converters split a line of input_list.txt",
             printable(folder_.string()));
    }
    for (const InputSpec& input : inputs) {
        if (inputs.size() > 1 && (has_blank(input.name) || input.name.find(":=") != std::string::npos)) {
            fail("input '{}': expected a name that can stand before := in input_list.txt, without blanks",
                 printable(input.name));
        }
        names_.push_back(input.name);
    }
}

std::filesystem::path InputExport::file_of(const std::string& number, std::size_t input) const {
    return folder_ / fmt::format("{}.{}.raw", number, file_part(names_[input]));
}

void InputExport::write(const std::string& number, std::span<const Tensor> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Tensor tensor = as_float32(inputs[i], names_[i]);
        const auto rank = static_cast<std::int64_t>(tensor.shape().size());
        const bool is_moved = rank >= 3 && rank <= 5 && std::ranges::count(channels_last_ranks_, rank) > 0;
        if (is_moved) tensor = channels_last(tensor);
        const std::span<const std::byte> bytes = tensor.view().bytes();
        write_file(file_of(number, i), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
}

std::filesystem::path InputExport::write_list(const StatisticsFile& statistics) const {
    constexpr std::uint64_t steps = step_number(1, 0);
    std::string text;
    for (std::size_t row = 0; row < statistics.rows(); ++row) {
        const std::uint64_t number = statistics.row_number(row);
        const std::string name =
            statistics.header().sequences ? step_text(number / steps, number % steps) : sample_text(number);
        for (std::size_t i = 0; i < names_.size(); ++i) {
            if (i > 0) text += ' ';
            if (names_.size() > 1) text += names_[i] + ":=";
            text += file_of(name, i).string();
        }
        text += '\n';
    }
    const std::filesystem::path list = folder_ / "input_list.txt";
    write_file(list, text);
    return list;
}

}  // namespace qcalib
