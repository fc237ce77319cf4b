#include "engine/calibration.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "base/error.h"
#include "base/text.h"
#include "dataset/sequence.h"
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

// The input's name as part of a file name.
std::string file_name_of(const std::string& input) {
    std::string name = printable(input);
    std::replace(name.begin(), name.end(), '/', '_');
    return name;
}

// Bytes the system can still give without swapping, or 0 where it does not say.
std::uint64_t available_memory() {
    std::ifstream file("/proc/meminfo");
    std::string key;
    std::uint64_t kibibytes = 0;
    std::string unit;
    while (file >> key >> kibibytes) {
        std::getline(file, unit);
        if (key == "MemAvailable:") return kibibytes * 1024;
    }
    return 0;
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
                const CalibrationOptions& options, Progress& progress, Remarks& remarks)
        : reader_(reader),
          samples_(samples),
          options_(options),
          progress_(progress),
          remarks_(remarks),
          tap_(options.counter, options.tensors),
          carry_tap_(options.carries),
          program_(model.graph, builtin_kernels(), taps(), options.program),
          header_{model.hash,       options.settings, isa_in_force(), options.counter,
                  samples.selected, options.shard,    options.shards, {},
                  has_sequences()} {}

    CalibrationResult run(const std::filesystem::path& output);

  private:
    struct FirstSample {
        const SelectedSample* sample = nullptr;
        std::vector<Tensor> inputs;
        std::shared_ptr<const Plan> plan;
    };

    bool has_sequences() const { return !options_.carries.empty(); }
    std::vector<Tap*> taps();
    FirstSample find_first_sample();
    void look_at_layout(const Token& token);
    void count_constants(StatisticsSet& set);
    unsigned decide_jobs(const Plan& plan);
    void run_pipeline(unsigned jobs, StatisticsWriter& writer);
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

CalibrationResult Calibration::run(const std::filesystem::path& output) {
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

    StatisticsWriter writer(output, header_);
    run_pipeline(result_.jobs, writer);
    layout_.finish(remarks_);
    remark_on_left_over();
    std::vector<std::uint64_t> skipped;
    for (const SkippedSample& sample : result_.skipped) {
        skipped.push_back(has_sequences() ? step_number(sample.number, 0) : sample.number);
    }
    writer.finish(set, skipped);
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
            std::vector<Tensor> inputs =
                has_sequences() ? reader_.open(sample).step(0) : reader_.read(sample);
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
void Calibration::look_at_layout(const Token& token) {
    if (token.inputs.empty()) return;
    const std::span<const InputSpec> specs = reader_.inputs();
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const std::filesystem::path& file = token.sample->entries.front().files[i];
        if (file.empty() || is_picture(file)) continue;
        layout_.look(specs[i], token.inputs[i].view(), reader_.preprocessing(), remarks_);
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

void Calibration::run_pipeline(unsigned jobs, StatisticsWriter& writer) {
    // TBB gives an arena no more threads than the machine has cores unless it is allowed to.
    const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, std::max(2U, jobs));
    tbb::task_arena arena(static_cast<int>(jobs));
    const std::size_t ahead = std::size_t{has_sequences() ? 2U : 4U} * jobs;
    std::size_t next = 0;
    const auto source = tbb::make_filter<void, std::size_t>(
        tbb::filter_mode::serial_in_order, [&](tbb::flow_control& control) -> std::size_t {
            if (options_.interrupted != nullptr && *options_.interrupted) throw Interrupted();
            if (next == samples_.samples.size()) control.stop();
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

// What the model sees of a sample, as <number>.<input>.npy.
void Calibration::dump(const std::string& number, std::span<const Tensor> inputs) const {
    if (options_.dump_inputs.empty()) return;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::string name = file_name_of(reader_.inputs()[i].name);
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
    dump(fmt::format("{:06}", sample.number), inputs);
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
        if (options_.interrupted != nullptr && *options_.interrupted) throw Interrupted();
        try {
            if (step > 0) {
                start = Clock::now();
                inputs = sequence->step(step);
                carry_tap_.feed_back(program_, reader_.inputs(), inputs);
                plan = program_.plan(inputs);
            }
            dump(fmt::format("{:06}.{:06}", sample.number, step), inputs);
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
        look_at_layout(token);
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
    return Calibration(model, reader, samples, options, progress, remarks).run(output);
}

}  // namespace qcalib
