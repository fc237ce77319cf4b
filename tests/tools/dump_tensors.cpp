// Runs a model on one sample of a list and writes every float tensor it makes as .npy (special characters of
// its name become `_`), with an index.json: a list of {"name", "file", "constant"} in the order made. Graph
// inputs are among them; initializers are not. Of what a body makes several times, the last is kept.

#include <cctype>
#include <cstdio>
#include <map>
#include <set>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "dataset/sample_list.h"
#include "dataset/sample_reader.h"
#include "engine/model_inputs.h"
#include "graph/model_file.h"
#include "runtime/frame.h"
#include "runtime/isa.h"
#include "runtime/kernel_registry.h"
#include "runtime/program.h"
#include "tensor/npy.h"

namespace qcalib {
namespace {

struct Options {
    std::string model;
    std::string list;
    std::size_t sample = 0;
    std::filesystem::path folder = "dump";
    std::vector<std::string> tensors;
    bool outputs_only = false;
    std::string isa = "best";
    std::vector<std::string> shapes;
    std::string resize;
    std::string crop;
    std::string color = "rgb";
    ProgramOptions program;
    PictureFlags preprocessing;
};

void add_options(CLI::App& app, Options& options) {
    app.add_option("--model", options.model)->required();
    app.add_option("--data", options.list, "list of samples")->required();
    app.add_option("--sample", options.sample, "which line of the list to run, from 0");
    app.add_option("-o", options.folder, "folder to write to");
    app.add_option("--tensor", options.tensors, "write only tensors of these names");
    app.add_flag("--outputs-only", options.outputs_only, "write only the graph's outputs");
    app.add_flag("--reference-kernels", options.program.reference_kernels);
    app.add_flag("--float64", options.program.float64, "compute in double (with --reference-kernels)");
    app.add_flag("--row-major", options.program.row_major_only);
    app.add_option("--isa", options.isa);
    app.add_option("--shape", options.shapes, "name=1,3,640,640");
    app.add_option("--resize", options.resize, "WxH");
    app.add_option("--crop", options.crop, "WxH");
    app.add_option("--color", options.color)->check(CLI::IsMember({"rgb", "bgr"}));
    app.add_option("--multiply", options.preprocessing.multiply);
    app.add_option("--mean", options.preprocessing.mean)->delimiter(',');
    app.add_option("--std", options.preprocessing.std)->delimiter(',');
}

// A tensor's name as the stem of a file's name.
std::string stem_of(const std::string& name) {
    constexpr std::size_t longest = 120;
    std::string stem = name.substr(0, longest);
    for (char& letter : stem) {
        const bool kept =
            std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' || letter == '-';
        if (!kept) letter = '_';
    }
    return stem;
}

std::vector<Tensor> read_sample(const Graph& graph, Options& options) {
    std::vector<InputSpec> inputs = input_specs(graph);
    for (const std::string& shape : options.shapes) apply_shape(inputs, shape);
    if (!options.resize.empty())
        options.preprocessing.resize = parse_picture_size(options.resize, "--resize");
    if (!options.crop.empty()) options.preprocessing.crop = parse_picture_size(options.crop, "--crop");
    options.preprocessing.color = options.color == "bgr" ? ColorOrder::bgr : ColorOrder::rgb;
    Remarks remarks;
    const std::vector<ListEntry> entries = read_sample_list(options.list, inputs, remarks);
    if (options.sample >= entries.size()) {
        fail("{}: expected more than {} samples, found {}", options.list, options.sample, entries.size());
    }
    return SampleReader(inputs, options.preprocessing).read(entries[options.sample]);
}

// Writes the tensors that are asked for as they come.
class DumpTap : public Tap {
  public:
    DumpTap(const Graph& graph, const Options& options)
        : graph_(graph), folder_(options.folder), names_(options.tensors.begin(), options.tensors.end()) {
        if (!options.outputs_only) return;
        for (const ValueId output : graph.outputs) names_.insert(graph.values[output].name);
    }

    bool wanted(ValueId value) const { return names_.empty() || names_.contains(graph_.values[value].name); }
    TapRight right(const Graph& /*graph*/, ValueId value) const override {
        return wanted(value) ? TapRight::read : TapRight::ignore;
    }
    void on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) override {
        write(value, view, false);
    }
    void write(ValueId value, TensorView view, bool constant) {
        if (!is_floating(view.descriptor->type)) return;
        if (const auto made = file_of_.find(value); made != file_of_.end()) {
            write_npy(folder_ / made->second, view);
            return;
        }
        std::string file = stem_of(graph_.values[value].name) + ".npy";
        if (!files_.insert(file).second) file = fmt::format("{}.{}", value, file);
        write_npy(folder_ / file, view);
        index_.push_back({{"name", graph_.values[value].name}, {"file", file}, {"constant", constant}});
        file_of_.emplace(value, std::move(file));
    }
    void write_index() const {
        const auto replace = nlohmann::json::error_handler_t::replace;
        write_file(folder_ / "index.json", index_.dump(1, ' ', false, replace) + "\n");
    }

  private:
    const Graph& graph_;
    std::filesystem::path folder_;
    std::set<std::string> names_;
    std::set<std::string> files_;
    std::map<ValueId, std::string> file_of_;
    nlohmann::json index_ = nlohmann::json::array();
};

void run(Options& options) {
    limit_isa(parse_isa(options.isa));
    const Model model = read_model(options.model);
    const std::vector<Tensor> inputs = read_sample(*model.graph, options);
    prepare_output_folder(options.folder);
    DumpTap tap(*model.graph, options);
    Program program(model.graph, builtin_kernels(), {&tap}, options.program);
    Frame frame;
    frame.run(program.plan(inputs), inputs, options.sample);
    for (ValueId value = 0; value < model.graph->values.size(); ++value) {
        const Tensor* constant = program.constant(value);
        if (constant == nullptr || model.graph->values[value].initializer || !tap.wanted(value)) continue;
        tap.write(value, constant->view(), true);
    }
    tap.write_index();
}

}  // namespace
}  // namespace qcalib

int main(int argument_count, char** argument_values) {
    try {
        CLI::App app("Writes the tensors of one sample as .npy files");
        qcalib::Options options;
        qcalib::add_options(app, options);
        CLI11_PARSE(app, argument_count, argument_values);
        qcalib::run(options);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dump_tensors: %s\n", error.what());
        return 2;
    }
}
