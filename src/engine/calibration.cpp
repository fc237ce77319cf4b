#include "engine/calibration.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "dataset/sequence.h"
#include "engine/resume.h"
#include "engine/statistics_tap.h"
#include "runtime/frame.h"
#include "runtime/isa.h"
#include "tensor/npy.h"

namespace qcalib {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t layout_samples = 8;  // that the layout check looks at

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// A sample's way through the pipeline.
struct Token {
    const SelectedSample* sample = nullptr;
    bool keeps_inputs = false;           // one of the first samples, for the layout check
    std::vector<Row> rows;               // one, or one a step; none: skipped
    std::vector<Tensor> inputs;          // of the first samples, their first step
    std::vector<std::string> left_over;  // as Sequence says
    std::string skipped_because;
    double data_seconds = 0;
    double forward_seconds = 0;
    double statistics_seconds = 0;
};

// What one thread runs samples with.
struct Worker {
    Frame frame;
    Profile profile;
};

// One calibration in progress.
class Calibration {
  public:
    Calibration(const Model& model, const SampleReader& reader, const SelectedSamples& samples,
                const CalibrationOptions& options, const std::filesystem::path& output, Progress& progress,
                Remarks& remarks)
        : reader_(reader),
          samples_(samples),
          options_(options),
          output_(output),
          progress_(progress),
          remarks_(remarks),
          tap_(options.counter, options.tensors),
          carry_tap_(options.carries),
          program_(model.graph, builtin_kernels(), taps(), options.program),
          header_{model.hash,       options.settings, isa_in_force(), options.counter,
                  samples.selected, options.shard,    options.shards, {},
                  has_sequences()} {}

    CalibrationResult run();

  private:
    struct FirstSample {
        const SelectedSample* sample = nullptr;
        std::vector<Tensor> inputs;
        std::shared_ptr<const Plan> plan;
    };

    bool has_sequences() const { return !options_.carries.empty(); }
    std::vector<Tap*> taps();
    FirstSample find_first_sample();
    std::vector<Tensor> first_inputs(const SelectedSample& sample) const {
        return has_sequences() ? reader_.open(sample).step(0) : reader_.read(sample);
    }
    void look_at_layout(const SelectedSample& sample, std::span<const Tensor> inputs);
    void look_at_layout_again();
    void count_constants(StatisticsSet& set);
    unsigned decide_jobs(const Plan& plan);
    std::unique_ptr<StatisticsWriter> start_writing(StatisticsSet& set);
    void take_up(const Checkpoint& checkpoint);
    void run_all(StatisticsWriter& writer, const StatisticsSet& set);
    void keep(StatisticsWriter& writer, const StatisticsSet& set);
    void run_pipeline(std::size_t end, StatisticsWriter& writer);
    bool interrupted() const { return options_.interrupted != nullptr && *options_.interrupted; }
    void note(const std::string& text) const {
        if (options_.note) options_.note(text);
    }
    std::string unit(std::size_t count) const;
    Token process(std::size_t index);
    void process_sample(Token& token);
    void process_sequence(Token& token);
    void run_step(Token& token, const std::shared_ptr<const Plan>& plan, std::span<const Tensor> inputs,
                  std::uint64_t number);
    std::vector<Tensor> read(const SelectedSample& sample);
    std::shared_ptr<const Plan> plan_for(const SelectedSample& sample, std::span<const Tensor> inputs);
    void dump(const std::string& number, std::span<const Tensor> inputs) const;
    void finish(Token token, StatisticsWriter& writer);
    void remark_on_left_over();

    const SampleReader& reader_;
    const SelectedSamples& samples_;
    const CalibrationOptions& options_;
    const std::filesystem::path& output_;
    Progress& progress_;
    Remarks& remarks_;
    LayoutCheck layout_{layout_samples};
    StatisticsTap tap_;
    CarryTap carry_tap_;
    Program program_;
    StatisticsHeader header_;
    CountedTensors tensors_;
    FirstSample first_;
    tbb::enumerable_thread_specific<Worker> workers_;
    std::vector<std::string> left_over_;
    std::size_t finished_ = 0;  // samples or sequences, skipped ones among them
    CalibrationResult result_;
};

std::vector<Tap*> Calibration::taps() {
    std::vector<Tap*> taps{&tap_};
    if (has_sequences()) taps.push_back(&carry_tap_);
    return taps;
}

CalibrationResult Calibration::run() {
    const Clock::time_point start = Clock::now();
    first_ = find_first_sample();
    tensors_ = counted_tensors(program_, *first_.plan, options_.tensors);
    header_.tensors = tensors_.infos;
    StatisticsSet set(tensors_.infos.size());
    tap_.start(tensors_, program_.graph(), set,
               options_.derive ? DerivationTable(program_, *first_.plan, tensors_.values, options_.counter)
                               : DerivationTable());
    count_constants(set);
    result_.jobs = decide_jobs(*first_.plan);
    result_.seconds.prepare = seconds_since(start);

    const std::unique_ptr<StatisticsWriter> writer = start_writing(set);
    run_all(*writer, set);
    layout_.finish(remarks_);
    remark_on_left_over();
    std::vector<std::uint64_t> skipped;
    for (const SkippedSample& sample : result_.skipped) {
        skipped.push_back(has_sequences() ? step_number(sample.number, 0) : sample.number);
    }
    writer->finish(set, skipped);
    remove_checkpoint(checkpoint_path(output_));
    result_.weight_bytes = program_.weight_bytes();
    result_.elements = tap_.elements();
    for (const Worker& worker : workers_) result_.profile.merge(worker.profile);
    result_.seconds.wall = seconds_since(start);
    return std::move(result_);
}

// The first sample that can be read and that the model takes; its plan tells which tensors there are.
Calibration::FirstSample Calibration::find_first_sample() {
    std::vector<std::string> reasons;
    for (const SelectedSample& sample : samples_.samples) {
        try {
            std::vector<Tensor> inputs = first_inputs(sample);
            std::shared_ptr<const Plan> plan = plan_for(sample, inputs);
            return {&sample, std::move(inputs), std::move(plan)};
        } catch (const Error& error) {
            if (options_.strict) throw;
            reasons.emplace_back(error.what());
        }
    }
    constexpr std::size_t shown = 3;
    const std::size_t count = reasons.size();
    if (count > shown) reasons.resize(shown);
    fail("{}none of the {} samples can be used:\n  {}{}",
         options_.list.empty() ? "" : printable(options_.list) + ": ", count, join(reasons, "\n  "),
         count > shown ? "\n  ..." : "");
}

// Looks at the first samples in order, whatever order they finish in.
void Calibration::look_at_layout(const SelectedSample& sample, std::span<const Tensor> inputs) {
    if (inputs.empty()) return;
    const std::span<const InputSpec> specs = reader_.inputs();
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const std::filesystem::path& file = sample.entries.front().files[i];
        if (file.empty() || is_picture(file)) continue;
        layout_.look(specs[i], inputs[i].view(), reader_.preprocessing(), remarks_);
    }
}

// The first samples that a checkpoint had are read once more, so that the run's remarks are those of an
// undisturbed one.
void Calibration::look_at_layout_again() {
    for (std::size_t index = 0; index < std::min(finished_, layout_samples); ++index) {
        const SelectedSample& sample = samples_.samples[index];
        const bool skipped = std::any_of(result_.skipped.begin(), result_.skipped.end(),
                                         [&](const auto& other) { return other.number == sample.number; });
        if (skipped) continue;
        try {
            look_at_layout(sample, first_inputs(sample));
        } catch (const Error& error) {
            remarks_.add(
                fmt::format("read before the run was broken off, and now no more: {}", error.what()));
        }
    }
}

void Calibration::count_constants(StatisticsSet& set) {
    Counter counter(options_.counter);
    for (std::size_t i = 0; i < tensors_.infos.size(); ++i) {
        if (!tensors_.infos[i].constant) continue;
        const Tensor* constant = program_.constant(tensors_.values[i]);
        set.merge(i, counter.count(constant->view().as<float>()));
        constant->release_pages();
    }
}

// As many workers as asked for, but no more than fit beside the weights.
unsigned Calibration::decide_jobs(const Plan& plan) {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    unsigned jobs = options_.jobs == 0 ? cores : options_.jobs;
    result_.worker_bytes = plan.arena_bytes() + plan.scratch_bytes();
    for (const Tensor& input : first_.inputs) result_.worker_bytes += input.descriptor().bytes();
    const std::uint64_t limit = options_.memory != 0 ? options_.memory : available_memory();
    if (limit == 0) return jobs;
    const std::uint64_t left = limit - std::min<std::uint64_t>(limit, program_.weight_bytes());
    const std::uint64_t fit =
        std::max<std::uint64_t>(1, left / std::max<std::uint64_t>(1, result_.worker_bytes));
    if (fit < jobs) {
        remarks_.add(fmt::format("{} instead of {} workers: each takes {} and {} are available", fit, jobs,
                                 human_bytes(result_.worker_bytes), human_bytes(limit)));
        jobs = static_cast<unsigned>(fit);
    }
    return jobs;
}

std::string Calibration::unit(std::size_t count) const {
    return fmt::format("{} {}{}", count, has_sequences() ? "sequence" : "sample", count == 1 ? "" : "s");
}

// A writer behind the rows of a checkpoint, whose statistics go into the set; else one for a new file.
std::unique_ptr<StatisticsWriter> Calibration::start_writing(StatisticsSet& set) {
    const std::unique_ptr<CheckpointFile> file = find_checkpoint(output_, header_, samples_);
    if (file == nullptr) return std::make_unique<StatisticsWriter>(output_, header_);
    const Checkpoint& checkpoint = file->checkpoint();
    if (options_.strict && !checkpoint.skipped.empty()) fail("{}", checkpoint.skipped.front().reason);
    auto writer = std::make_unique<StatisticsWriter>(output_, header_, checkpoint.part);
    try {
        file->merge_into(set);
    } catch (const Error& error) {
        fail("{}{}", error.what(), start_anew(output_));
    }
    take_up(checkpoint);
    note(fmt::format("{}: going on behind {} of {}", printable(checkpoint_path(output_).string()),
                     unit(finished_), samples_.samples.size()));
    return writer;
}

void Calibration::take_up(const Checkpoint& checkpoint) {
    finished_ = checkpoint.done;
    result_.resumed = checkpoint.done;
    result_.samples = checkpoint.rows;
    result_.sequences = checkpoint.sequences;
    for (const CheckpointSkip& skip : checkpoint.skipped) {
        result_.skipped.push_back({skip.number, skip.reason});
    }
    left_over_ = checkpoint.left_over;
    look_at_layout_again();
}

// Keeps what is counted so far. To be called when no sample is in work.
void Calibration::keep(StatisticsWriter& writer, const StatisticsSet& set) {
    Checkpoint checkpoint{header_,
                          selection_digest(samples_),
                          finished_,
                          result_.samples,
                          result_.sequences,
                          writer.sync(),
                          {},
                          left_over_};
    for (const SkippedSample& sample : result_.skipped) {
        checkpoint.skipped.push_back({sample.number, sample.reason});
    }
    write_checkpoint(checkpoint_path(output_), checkpoint, set);
}

void Calibration::run_all(StatisticsWriter& writer, const StatisticsSet& set) {
    const std::size_t count = samples_.samples.size();
    while (finished_ < count) {
        const std::uint64_t left = count - finished_;
        const bool keeps = options_.checkpoint > 0;
        run_pipeline(finished_ + (keeps ? std::min(options_.checkpoint, left) : left), writer);
        if (keeps && finished_ > 0 && finished_ < count) keep(writer, set);
        if (!interrupted() || finished_ == count) continue;
        if (keeps && finished_ > 0) {
            note(fmt::format("{}: has {}; the same command goes on from there",
                             printable(checkpoint_path(output_).string()), unit(finished_)));
        }
        throw Interrupted();
    }
}

// Runs the samples up to `end` (an index), and answers when none is in work. Where the run is interrupted,
// the last of them are left.
void Calibration::run_pipeline(std::size_t end, StatisticsWriter& writer) {
    // TBB gives an arena no more threads than the machine has cores unless it is allowed to.
    const unsigned jobs = result_.jobs;
    const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, std::max(2U, jobs));
    tbb::task_arena arena(static_cast<int>(jobs));
    const std::size_t ahead = std::size_t{has_sequences() ? 2U : 4U} * jobs;
    std::size_t next = finished_;
    const auto source = tbb::make_filter<void, std::size_t>(tbb::filter_mode::serial_in_order,
                                                            [&](tbb::flow_control& control) -> std::size_t {
                                                                if (next == end || interrupted())
                                                                    control.stop();
                                                                return next++;
                                                            });
    const auto work = tbb::make_filter<std::size_t, Token>(tbb::filter_mode::parallel,
                                                           [&](std::size_t index) { return process(index); });
    const auto sink = tbb::make_filter<Token, void>(tbb::filter_mode::serial_in_order,
                                                    [&](Token token) { finish(std::move(token), writer); });
    arena.execute([&] { tbb::parallel_pipeline(ahead, source & work & sink); });
}

std::vector<Tensor> Calibration::read(const SelectedSample& sample) {
    return &sample == first_.sample ? std::move(first_.inputs) : reader_.read(sample);
}

// What the model sees of a sample, as <number>.<input>.npy, and for a converter.
void Calibration::dump(const std::string& number, std::span<const Tensor> inputs) const {
    if (options_.export_inputs) options_.export_inputs->write(number, inputs);
    if (options_.dump_inputs.empty()) return;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::string name = file_part(reader_.inputs()[i].name);
        write_npy(options_.dump_inputs / fmt::format("{}.{}.npy", number, name), inputs[i].view());
    }
}

// The plan for a sample; an Error names the sample before what does not fit.
std::shared_ptr<const Plan> Calibration::plan_for(const SelectedSample& sample,
                                                  std::span<const Tensor> inputs) {
    try {
        return program_.plan(inputs);
    } catch (const Error& error) {
        fail("{}: {}", describe_source(sample), error.what());
    }
}

Token Calibration::process(std::size_t index) {
    Token token;
    token.sample = &samples_.samples[index];
    token.keeps_inputs = index < layout_samples;
    if (has_sequences())
        process_sequence(token);
    else
        process_sample(token);
    return token;
}

void Calibration::process_sample(Token& token) {
    const SelectedSample& sample = *token.sample;
    const Clock::time_point start = Clock::now();
    std::vector<Tensor> inputs;
    std::shared_ptr<const Plan> plan;
    try {
        inputs = read(sample);
        plan = plan_for(sample, inputs);
    } catch (const Error& error) {
        if (options_.strict) throw;
        token.skipped_because = error.what();
        return;
    }
    if (token.keeps_inputs) token.inputs = inputs;
    dump(sample_text(sample.number), inputs);
    token.data_seconds = seconds_since(start);
    try {
        run_step(token, plan, inputs, sample.number);
    } catch (const Error& error) {
        fail("{}: {}", describe_source(sample), error.what());
    }
}

// What is wrong with a sequence before its first step has run skips it; what goes wrong later ends the run.
void Calibration::process_sequence(Token& token) {
    const SelectedSample& sample = *token.sample;
    Clock::time_point start = Clock::now();
    std::optional<Sequence> sequence;
    std::vector<Tensor> inputs;
    std::shared_ptr<const Plan> plan;
    try {
        sequence = reader_.open(sample);
        if (sequence->steps() > step_number(1, 0)) {
            fail("{}: {} steps are more than can be numbered", describe_source(sample), sequence->steps());
        }
        inputs = sequence->step(0);
        plan = plan_for(sample, inputs);
    } catch (const Error& error) {
        if (options_.strict) throw;
        token.skipped_because = error.what();
        return;
    }
    if (token.keeps_inputs) token.inputs = inputs;
    token.left_over = sequence->left_over();
    for (std::size_t step = 0; step < sequence->steps(); ++step) {
        if (interrupted()) throw Interrupted();
        try {
            if (step > 0) {
                start = Clock::now();
                inputs = sequence->step(step);
                carry_tap_.feed_back(program_, reader_.inputs(), inputs);
                plan = program_.plan(inputs);
            }
            dump(step_text(sample.number, step), inputs);
            token.data_seconds += seconds_since(start);
            run_step(token, plan, inputs, step_number(sample.number, step));
        } catch (const Error& error) {
            fail("{}, step {}: {}", describe_source(sample), step, error.what());
        }
    }
}

void Calibration::run_step(Token& token, const std::shared_ptr<const Plan>& plan,
                           std::span<const Tensor> inputs, std::uint64_t number) {
    const Clock::time_point start = Clock::now();
    double statistics_seconds = 0;
    tap_.begin_sample();
    Worker& worker = workers_.local();
    worker.frame.record(options_.profile ? &worker.profile : nullptr);
    worker.frame.run(plan, inputs, number);
    token.rows.push_back(tap_.end_sample(number, statistics_seconds));
    token.statistics_seconds += statistics_seconds;
    token.forward_seconds += seconds_since(start) - statistics_seconds;
}

void Calibration::finish(Token token, StatisticsWriter& writer) {
    if (!token.rows.empty()) {
        look_at_layout(*token.sample, token.inputs);
        for (const Row& row : token.rows) writer.add_row(row);
        result_.samples += token.rows.size();
        if (has_sequences()) ++result_.sequences;
        left_over_.insert(left_over_.end(), token.left_over.begin(), token.left_over.end());
    } else {
        result_.skipped.push_back({token.sample->number, token.skipped_because});
    }
    result_.seconds.data += token.data_seconds;
    result_.seconds.forward += token.forward_seconds;
    result_.seconds.statistics += token.statistics_seconds;
    progress_.advance(++finished_, samples_.samples.size(), describe_source(*token.sample));
}

void Calibration::remark_on_left_over() {
    if (left_over_.empty()) return;
    const std::size_t count = left_over_.size();
    remarks_.add(fmt::format("{} with an incomplete step, which is left out: {}{}",
                             count == 1 ? "a file ends" : fmt::format("{} files end", count),
                             left_over_.front(), count == 1 ? "" : ", ..."));
}

}  // namespace

CalibrationResult calibrate(const Model& model, const SampleReader& reader, const SelectedSamples& samples,
                            const CalibrationOptions& options, const std::filesystem::path& output,
                            Progress& progress, Remarks& remarks) {
    if (!options.carries.empty() && samples.selected > step_number(1, 0)) {
        fail("{}{} sequences are more than can be numbered",
             options.list.empty() ? "" : printable(options.list) + ": ", samples.selected);
    }
    if (samples.samples.empty())
        fail("{}no samples to run: the selection is empty",
             options.list.empty() ? "" : printable(options.list) + ": ");
    return Calibration(model, reader, samples, options, output, progress, remarks).run();
}

}  // namespace qcalib
