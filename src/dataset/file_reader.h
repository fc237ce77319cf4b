#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dataset/picture_axes.h"
#include "dataset/sample_reader.h"

namespace qcalib {

// Makes the row-major tensor of one input from one file; throws Error "<file>: ...".
using ReadFile = Tensor (*)(const std::filesystem::path& path, const InputSpec& input,
                            const Preprocessing& preprocessing);

// A file that holds the steps of a sequence one after the other, cut along its first axis.
struct FileSteps {
    Tensor elements;                 // of all whole steps
    TensorDescriptor stored;         // one step as it lies there, row-major
    DataMove move = DataMove::none;  // what brings a step into the input's layout
    std::size_t count = 0;
    std::string left_over;  // what of the file fills no step: "88 of 512 values", or ""

    // Step `index` as a row-major tensor.
    Tensor step(std::size_t index) const;
};

// Cuts a file that is longer than the input. Nothing for one that is not, or whose input leaves open how long
// a step is: a reader takes it whole, or says what is wrong with it. Throws Error "<file>: ...".
using CutFile = std::optional<FileSteps> (*)(const std::filesystem::path& path, const InputSpec& input,
                                             const Preprocessing& preprocessing);

// The reader for a file, chosen by the ending of its name in lower case; raw data where no other reader
// claims it.
ReadFile reader_for(const std::filesystem::path& path);
// How the file is cut, or nullptr where it is always one step.
CutFile cutter_for(const std::filesystem::path& path);

// The ending of a file's name in lower case: ".npy".
std::string ending_of(const std::filesystem::path& path);
// True for a file that no other reader claims: raw elements.
bool is_raw(const std::filesystem::path& path);
// True for a .npz file, which has an array for each of several inputs.
bool is_npz(const std::filesystem::path& path);

// The readers and what cuts their files. A new one is a file of its own, its declaration here and its line in
// the table of file_reader.cpp.
Tensor read_raw_file(const std::filesystem::path& path, const InputSpec& input,
                     const Preprocessing& preprocessing);
Tensor read_npy_file(const std::filesystem::path& path, const InputSpec& input,
                     const Preprocessing& preprocessing);
Tensor read_picture(const std::filesystem::path& path, const InputSpec& input,
                    const Preprocessing& preprocessing);
std::optional<FileSteps> cut_raw_file(const std::filesystem::path& path, const InputSpec& input,
                                      const Preprocessing& preprocessing);
std::optional<FileSteps> cut_npy_file(const std::filesystem::path& path, const InputSpec& input,
                                      const Preprocessing& preprocessing);

// An array as an input's tensor: type and shape checked, a batch of 1 put in front, permuted where the layout
// says so; and cut into steps. `shown` stands at the start of errors.
Tensor fit_array(Tensor source, const std::string& shown, const InputSpec& input,
                 const Preprocessing& preprocessing);
std::optional<FileSteps> cut_array(const Tensor& source, const std::string& shown, const InputSpec& input,
                                   const Preprocessing& preprocessing);
// The same with elements of the input's type without a shape. cut_bytes leaves FileSteps::elements to its
// caller: the first count * stored.bytes() of `bytes`.
Tensor fit_bytes(std::span<const std::byte> bytes, const std::string& shown, const InputSpec& input,
                 const Preprocessing& preprocessing);
std::optional<FileSteps> cut_bytes(std::span<const std::byte> bytes, const std::string& shown,
                                   const InputSpec& input, const Preprocessing& preprocessing);

}  // namespace qcalib
