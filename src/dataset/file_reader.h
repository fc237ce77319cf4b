#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dataset/sample_reader.h"

namespace qcalib {

// Makes the row-major tensor of one input from one file; throws Error "<file>: ...".
using ReadFile = Tensor (*)(const std::filesystem::path& path, const InputSpec& input,
                            const Preprocessing& preprocessing);

// A file that holds the steps of a sequence one after the other, cut along its first axis.
struct FileSteps {
    Tensor elements;          // of all whole steps
    TensorDescriptor stored;  // one step as it lies there
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

}  // namespace qcalib
