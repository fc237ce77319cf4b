#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/remarks.h"
#include "dataset/sample_list.h"
#include "dataset/sample_reader.h"
#include "tensor/tensor.h"

namespace qcalib {

// One sample, or one step of a sequence, on its way through a task.
struct SampleStep {
    std::uint64_t number = 0;  // of the sample in the selection
    std::size_t step = 0;
    bool sequence = false;
    std::vector<Tensor> inputs;  // one per model input, row-major
};

// "000012", of a step of a sequence "000003.000017".
std::string text_of(const SampleStep& step);

// What came of one step.
struct StepResult {
    virtual ~StepResult() = default;
};

// What is done with each sample.
class SampleTask {
  public:
    virtual ~SampleTask() = default;
    // Before a sample's first step; an Error skips the sample.
    virtual void prepare(const SampleStep& step) = 0;
    // Bytes that a worker holds while it runs such a sample.
    virtual std::uint64_t worker_bytes(const SampleStep& step) = 0;
    // Several at once, those of one sequence in order on one thread. An Error ends the run.
    virtual std::unique_ptr<StepResult> run(SampleStep& step) = 0;
    // In the order of samples and steps, one at a time.
    virtual void take(std::unique_ptr<StepResult> result) = 0;
};

struct SampleRunOptions {
    unsigned jobs = 0;         // workers; 0: one a core
    std::uint64_t memory = 0;  // bytes the run may take; 0: what the system has free
    bool strict = false;       // the first sample that cannot be read ends the run
    bool sequences = false;    // each sample is one
    std::string list;          // what messages call the list
    const std::atomic<bool>* interrupted = nullptr;
};

struct SampleRunSummary {
    std::size_t samples = 0;  // of sequences, their steps
    std::vector<std::string> skipped;
    unsigned jobs = 0;
};

// Does the task with all samples on all cores. What take() is given does not depend on the number of
// workers. A sample that cannot be read or does not fit the model is skipped and named; where none is left,
// an Error. Throws Interrupted where the user stops the run.
SampleRunSummary run_samples(const SampleReader& reader, const SelectedSamples& samples,
                             const SampleRunOptions& options, SampleTask& task, Progress& progress,
                             Remarks& remarks);

}  // namespace qcalib
