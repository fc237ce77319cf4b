#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/remarks.h"
#include "dataset/sample_list.h"
#include "dataset/sample_reader.h"
#include "engine/carry.h"
#include "engine/input_export.h"
#include "engine/statistics_tap.h"
#include "graph/graph.h"
#include "runtime/profile.h"
#include "runtime/program.h"
#include "statistics/statistics_file.h"

namespace qcalib {

struct CalibrationOptions {
    ProgramOptions program;
    CounterSettings counter;
    std::string settings;     // canonical text of all that can change a count, for the file's header
    std::uint32_t shard = 1;  // as in Selection
    std::uint32_t shards = 1;
    unsigned jobs = 0;                  // workers; 0: one a core
    std::uint64_t memory = 0;           // bytes the run may take; 0: what the system has free
    std::string list;                   // what messages call the samples' list; may be empty
    std::filesystem::path dump_inputs;  // folder for what the model sees of each sample (.npy); empty: none
    std::optional<InputExport> export_inputs;  // the samples for a converter
    std::vector<Carry> carries;                // where there are some, each sample is a sequence
    std::uint64_t checkpoint = 0;              // samples after which the statistics so far are kept; 0: never
    TensorNames tensors;                       // whose statistics are kept; nothing: of all
    bool derive = true;    // statistics that follow from others' are not counted (the same in either case)
    bool profile = false;  // note what each operator costs
    bool strict = false;   // the first sample that cannot be read ends the run
    const std::atomic<bool>* interrupted = nullptr;  // where set to true, the run ends with Interrupted
    // Told, before and in the run, what a user may like to know; may be empty.
    std::function<void(const std::string&)> note;
};

// The user stopped the run; no statistics file was written.
class Interrupted : public std::exception {
  public:
    const char* what() const noexcept override { return "interrupted"; }
};

struct SkippedSample {
    std::uint64_t number = 0;
    std::string reason;  // starts with the file
};

// Where the time of a calibration went. `data`, `forward` and `statistics` add up over all workers.
struct StageSeconds {
    double prepare = 0;
    double data = 0;
    double forward = 0;
    double statistics = 0;
    double wall = 0;
};

struct CalibrationResult {
    std::size_t samples = 0;    // counted; of sequences, their steps
    std::size_t sequences = 0;  // counted, where samples are steps of sequences
    std::size_t resumed = 0;    // samples or sequences that a checkpoint had, among the counted and skipped
    std::vector<SkippedSample> skipped;
    unsigned jobs = 0;               // workers that ran
    std::uint64_t worker_bytes = 0;  // memory of one worker: arena and scratch
    std::uint64_t weight_bytes = 0;  // reordered weights, shared
    CountedElements elements;
    StageSeconds seconds;
    Profile profile;  // empty unless asked for
};

// Runs the samples through the model on all cores and writes the statistics of every float tensor to
// `output`. The file does not depend on the number of workers nor on their timing. A sample that cannot be
// read or does not fit the model is skipped and named; a kernel that fails ends the run with an Error that
// names file, node and tensor.
// With carries each sample is a sequence: one worker runs its steps in order, the carried inputs fed from the
// step before, and each step has a row, numbered by step_number(). Rows of a sequence are kept until those
// before it are written: memory holds at most those of 2 * jobs sequences.
// With a checkpoint, a run that is broken off leaves one: the same run goes on from there, whether or not it
// makes checkpoints itself, and leaves the same file as a run that was not. A checkpoint of another run is an
// Error. An interrupted run with checkpoints makes a last one of what is counted.
CalibrationResult calibrate(const Model& model, const SampleReader& reader, const SelectedSamples& samples,
                            const CalibrationOptions& options, const std::filesystem::path& output,
                            Progress& progress, Remarks& remarks);

}  // namespace qcalib
