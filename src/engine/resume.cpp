#include "engine/resume.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "statistics/header_difference.h"

namespace qcalib {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& output, const HeaderDifference& difference) {
    fail("{}: is of another run: {} is {}, expected {}{}", printable(checkpoint_path(output).string()),
         difference.what, difference.found, difference.expected, start_anew(output));
}

void check_same_run(const std::filesystem::path& output, const StatisticsHeader& header,
                    const SelectedSamples& samples, const Checkpoint& found) {
    if (const auto difference = difference_of_runs(header, found.header)) refuse(output, *difference);
    if (header.shard != found.header.shard) {
        refuse(output, {"the shard", fmt::format("{}", header.shard), fmt::format("{}", found.header.shard)});
    }
    const std::string selection = selection_digest(samples);
    if (selection != found.selection) {
        refuse(output,
               {"the SHA-256 of the samples' numbers and files", selection, printable(found.selection)});
    }
    if (found.done > samples.samples.size()) {
        fail("{}: damaged: {} samples are done of {}{}", printable(checkpoint_path(output).string()),
             found.done, samples.samples.size(), start_anew(output));
    }
}

}  // namespace

std::string selection_digest(const SelectedSamples& samples) {
    Sha256 digest;
    const auto add = [&](std::string_view text) {
        const std::string length = fmt::format("{} ", text.size());
        digest.update(std::as_bytes(std::span(length)));
        digest.update(std::as_bytes(std::span(text)));
    };
    for (const SelectedSample& sample : samples.samples) {
        add(fmt::format("{}", sample.number));
        for (const ListEntry& entry : sample.entries) {
            add(fmt::format("{}", entry.files.size()));
            if (entry.store) add(fmt::format("number {}", entry.line));
            for (const std::filesystem::path& file : entry.files) {
                add(file.empty() ? "" : std::filesystem::absolute(file).lexically_normal().string());
            }
        }
    }
    return to_hex(digest.finish());
}

std::unique_ptr<CheckpointFile> find_checkpoint(const std::filesystem::path& output,
                                                const StatisticsHeader& header,
                                                const SelectedSamples& samples) {
    const std::filesystem::path path = checkpoint_path(output);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return nullptr;
    std::unique_ptr<CheckpointFile> file;
    try {
        file = std::make_unique<CheckpointFile>(path);
    } catch (const Error& error) {
        fail("{}{}", error.what(), start_anew(output));
    }
    check_same_run(output, header, samples, file->checkpoint());
    return file;
}

}  // namespace qcalib
