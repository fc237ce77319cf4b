// Runs a model again and again on the inputs of .npy files and says how long it takes; tests/bench/*.py drive
// it, so that it and a peer take turns. Each line "MODE RUNS" of the standard input runs the model RUNS times
// and answers one line: microseconds of the thread's CPU time of each run. The modes: forward, extremes, full
// (statistics), and perf, which answers the table of what operators cost instead.

#include <ctime>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "engine/statistics_tap.h"
#include "graph/onnx_file.h"
#include "report/operator_costs.h"
#include "runtime/frame.h"
#include "runtime/isa.h"
#include "target/needed_tensors.h"
#include "target/target.h"
#include "tensor/npy.h"

namespace qcalib {
namespace {

double thread_microseconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

// Inputs given as "name=file", in the graph's order.
std::vector<Tensor> read_inputs(const Graph& graph, const std::vector<std::string>& given) {
    std::vector<Tensor> inputs;
    for (const ValueId input : graph.inputs) {
        const std::string prefix = graph.values[input].name + "=";
        const auto found = std::find_if(given.begin(), given.end(),
                                        [&](const std::string& text) { return text.starts_with(prefix); });
        if (found == given.end()) fail("expected --input {}FILE, found none", printable(prefix));
        inputs.push_back(read_npy(found->substr(prefix.size())));
    }
    return inputs;
}

class Mode {
  public:
    virtual ~Mode() = default;
    virtual void run(std::uint64_t sample) = 0;
};

class Forward : public Mode {
  public:
    Forward(const Model& model, std::span<const Tensor> inputs, ProgramOptions options = {})
        : inputs_(inputs),
          program_(model.graph, builtin_kernels(), {}, std::move(options)),
          plan_(program_.plan(inputs)) {}
    void run(std::uint64_t sample) override { frame_.run(plan_, inputs_, sample); }

    Frame& frame() { return frame_; }

  private:
    std::span<const Tensor> inputs_;
    Program program_;
    std::shared_ptr<const Plan> plan_;
    Frame frame_;
};

class Counted : public Mode {
  public:
    Counted(const Model& model, std::span<const Tensor> inputs, CounterSettings settings,
            const TensorNames& names)
        : inputs_(inputs),
          tap_(settings, names),
          program_(model.graph, builtin_kernels(), {&tap_}),
          plan_(program_.plan(inputs)),
          tensors_(counted_tensors(program_, *plan_, names)),
          set_(tensors_.infos.size()) {
        tap_.start(tensors_, *model.graph, set_,
                   DerivationTable(program_, *plan_, tensors_.values, settings));
    }
    void run(std::uint64_t sample) override {
        tap_.begin_sample();
        frame_.run(plan_, inputs_, sample);
        double seconds = 0;
        tap_.end_sample(sample, seconds);
    }

  private:
    std::span<const Tensor> inputs_;
    StatisticsTap tap_;
    Program program_;
    std::shared_ptr<const Plan> plan_;
    CountedTensors tensors_;
    StatisticsSet set_;
    Frame frame_;
};

// What the SNPE target needs statistics of.
TensorNames target_tensors(const Graph& graph) {
    const std::vector<std::string> needed = needed_tensors(graph, load_target("snpe"));
    return TensorNames::value_type(needed.begin(), needed.end());
}

std::unique_ptr<Mode> make_mode(const std::string& name, const Model& model, std::span<const Tensor> inputs) {
    if (name == "forward") return std::make_unique<Forward>(model, inputs);
    if (name == "unfused") {
        ProgramOptions options;
        options.fuse = false;
        return std::make_unique<Forward>(model, inputs, options);
    }
    CounterSettings settings;
    settings.extremes_only = name == "extremes";
    TensorNames names;
    if (name == "target") names = target_tensors(*model.graph);
    if (name != "full" && name != "extremes" && name != "target") {
        fail("mode: expected forward, unfused, extremes, full or target, found {}", name);
    }
    return std::make_unique<Counted>(model, inputs, settings, names);
}

void print_costs(const Model& model, std::span<const Tensor> inputs, std::uint64_t runs) {
    Forward forward(model, inputs);
    forward.run(0);
    Profile profile;
    forward.frame().record(&profile);
    for (std::uint64_t i = 0; i < runs; ++i) forward.run(i);
    std::vector<CostRow> rows;
    for (const auto& [name, cost] : profile.by_operator()) {
        rows.push_back({name, static_cast<double>(cost.calls), cost.seconds, cost.bytes, cost.operations});
    }
    const Peak peak = measure_peak();
    std::cout << cost_table("operator", rows, static_cast<double>(runs),
                            {peak.operations_per_second, peak.bytes_per_second})
                     .text(120)
              << std::flush;
}

void serve(const Model& model, std::span<const Tensor> inputs) {
    std::map<std::string, std::unique_ptr<Mode>> modes;
    std::string name;
    std::uint64_t runs = 0;
    std::uint64_t sample = 0;
    while (std::cin >> name >> runs) {
        if (name == "perf") {
            print_costs(model, inputs, runs);
            continue;
        }
        std::unique_ptr<Mode>& mode = modes[name];
        if (mode == nullptr) mode = make_mode(name, model, inputs);
        std::string answer;
        for (std::uint64_t i = 0; i < runs; ++i) {
            const double start = thread_microseconds();
            mode->run(sample++);
            answer += fmt::format("{:.2f} ", thread_microseconds() - start);
        }
        std::cout << answer << std::endl;
    }
}

}  // namespace
}  // namespace qcalib

int main(int argument_count, char** argument_values) {
    try {
        CLI::App app("Runs a model and says how long it takes");
        std::string model;
        std::string isa = "best";
        std::vector<std::string> inputs;
        app.add_option("--model", model)->required();
        app.add_option("--input", inputs, "name=file.npy, for each input");
        app.add_option("--isa", isa);
        CLI11_PARSE(app, argument_count, argument_values);
        qcalib::limit_isa(qcalib::parse_isa(isa));
        const qcalib::Model read = qcalib::read_onnx_file(model);
        const std::vector<qcalib::Tensor> tensors = qcalib::read_inputs(*read.graph, inputs);
        qcalib::serve(read, tensors);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "run_model: " << error.what() << '\n';
        return 2;
    }
}
