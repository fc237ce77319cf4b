#include "simulate/sample_runs.h"

#include <algorithm>
#include <thread>

#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "dataset/sequence.h"
#include "engine/calibration.h"
#include "engine/input_export.h"

namespace qcalib {

namespace {

struct Token {
    const SelectedSample* sample = nullptr;
    std::vector<std::unique_ptr<StepResult>> results;
    std::string skipped_because;
};

class Runs {
  public:
    Runs(const SampleReader& reader, const SelectedSamples& samples, const SampleRunOptions& options,
         SampleTask& task, Progress& progress, Remarks& remarks)
        : reader_(reader),
          samples_(samples),
          options_(options),
          task_(task),
          progress_(progress),
          remarks_(remarks) {}

    SampleRunSummary run() {
        summary_.jobs = decide_jobs();
        run_pipeline();
        if (interrupted()) throw Interrupted();
        return std::move(summary_);
    }

  private:
    bool interrupted() const { return options_.interrupted != nullptr && *options_.interrupted; }

    SampleStep first_step(const SelectedSample& sample) const {
        SampleStep step{sample.number, 0, options_.sequences, {}};
        step.inputs = options_.sequences ? reader_.open(sample).step(0) : reader_.read(sample);
        return step;
    }

    // As many workers as asked for, but no more than fit; an Error where no sample can be used.
    unsigned decide_jobs() {
        const std::uint64_t bytes = bytes_of_first();
        const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
        const unsigned jobs = options_.jobs == 0 ? cores : options_.jobs;
        const std::uint64_t limit = options_.memory != 0 ? options_.memory : available_memory();
        if (limit == 0) return jobs;
        const std::uint64_t fit = std::max<std::uint64_t>(1, limit / std::max<std::uint64_t>(1, bytes));
        if (fit >= jobs) return jobs;
        remarks_.add(fmt::format("{} instead of {} workers: each takes {} and {} are available", fit, jobs,
                                 human_bytes(bytes), human_bytes(limit)));
        return static_cast<unsigned>(fit);
    }

    std::uint64_t bytes_of_first() {
        std::vector<std::string> reasons;
        for (const SelectedSample& sample : samples_.samples) {
            try {
                SampleStep step = first_step(sample);
                prepare(sample, step);
                return task_.worker_bytes(step);
            } catch (const Error& error) {
                if (options_.strict) throw;
                reasons.emplace_back(error.what());
            }
        }
        const std::string list = options_.list.empty() ? "" : printable(options_.list) + ": ";
        if (reasons.empty()) fail("{}no samples to run: the selection is empty", list);
        constexpr std::size_t shown = 3;
        const std::size_t count = reasons.size();
        if (count > shown) reasons.resize(shown);
        fail("{}none of the {} samples can be used:\n  {}{}", list, count, join(reasons, "\n  "),
             count > shown ? "\n  ..." : "");
    }

    void prepare(const SelectedSample& sample, const SampleStep& step) {
        try {
            task_.prepare(step);
        } catch (const Error& error) {
            fail("{}: {}", describe_source(sample), error.what());
        }
    }

    void run_pipeline() {
        const unsigned jobs = summary_.jobs;
        const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, std::max(2U, jobs));
        tbb::task_arena arena(static_cast<int>(jobs));
        std::size_t next = 0;
        const auto source = tbb::make_filter<void, std::size_t>(
            tbb::filter_mode::serial_in_order, [&](tbb::flow_control& control) -> std::size_t {
                if (next == samples_.samples.size() || interrupted()) control.stop();
                return next++;
            });
        const auto work = tbb::make_filter<std::size_t, std::shared_ptr<Token>>(
            tbb::filter_mode::parallel,
            [&](std::size_t index) { return std::make_shared<Token>(process(samples_.samples[index])); });
        const auto sink = tbb::make_filter<std::shared_ptr<Token>, void>(
            tbb::filter_mode::serial_in_order,
            [&](const std::shared_ptr<Token>& token) { finish(std::move(*token)); });
        arena.execute([&] { tbb::parallel_pipeline(std::size_t{2} * jobs, source & work & sink); });
    }

    Token process(const SelectedSample& sample) {
        Token token;
        token.sample = &sample;
        SampleStep step;
        try {
            step = first_step(sample);
            prepare(sample, step);
        } catch (const Error& error) {
            if (options_.strict) throw;
            token.skipped_because = error.what();
            return token;
        }
        try {
            token.results.push_back(task_.run(step));
            if (options_.sequences) run_steps(sample, step, token);
        } catch (const Error& error) {
            fail("{}{}: {}", describe_source(sample),
                 options_.sequences ? fmt::format(", step {}", step.step) : "", error.what());
        }
        return token;
    }

    void run_steps(const SelectedSample& sample, SampleStep& step, Token& token) {
        const Sequence sequence = reader_.open(sample);
        for (step.step = 1; step.step < sequence.steps(); ++step.step) {
            if (interrupted()) throw Interrupted();
            step.inputs = sequence.step(step.step);
            token.results.push_back(task_.run(step));
        }
    }

    void finish(Token token) {
        if (!token.skipped_because.empty()) summary_.skipped.push_back(token.skipped_because);
        for (std::unique_ptr<StepResult>& result : token.results) task_.take(std::move(result));
        summary_.samples += token.results.size();
        progress_.advance(++finished_, samples_.samples.size(), describe_source(*token.sample));
    }

    const SampleReader& reader_;
    const SelectedSamples& samples_;
    const SampleRunOptions& options_;
    SampleTask& task_;
    Progress& progress_;
    Remarks& remarks_;
    std::size_t finished_ = 0;
    SampleRunSummary summary_;
};

}  // namespace

std::string text_of(const SampleStep& step) {
    return step.sequence ? step_text(step.number, step.step) : sample_text(step.number);
}

SampleRunSummary run_samples(const SampleReader& reader, const SelectedSamples& samples,
                             const SampleRunOptions& options, SampleTask& task, Progress& progress,
                             Remarks& remarks) {
    return Runs(reader, samples, options, task, progress, remarks).run();
}

}  // namespace qcalib
