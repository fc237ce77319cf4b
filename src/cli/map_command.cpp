#include <algorithm>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/data_options.h"
#include "cli/subcommands.h"
#include "cli/summary_format.h"
#include "format/format.h"
#include "format/model_facts.h"
#include "graph/model_file.h"
#include "mapping/transfer.h"
#include "report/table.h"

namespace qcalib {

namespace {

constexpr std::size_t samples_of_list = 2;  // where --limit says nothing else

using Json = nlohmann::ordered_json;

class MapCommand : public Command {
  public:
    std::string name() const override { return "map"; }
    std::string summary() const override {
        return "Which tensor of an ONNX model is which of the .circle or .tflite file made from it, by "
               "values";
    }

    void add_options(CLI::App& app) override {
        app.add_option("--model", model_, "The converted model: .circle or .tflite")->required();
        app.add_option("--onnx", onnx_, "The ONNX model it was made from")->required();
        data_.add_to(app);
        app.get_option("--data")->required(false);
        app.add_option("--bind", bind_,
                       "CONVERTED=ONNX: which input is which, where names and shapes do not say")
            ->allow_extra_args(false);
        app.add_option("--random", random_, "Random samples to run, besides those of --data")
            ->capture_default_str();
        app.add_option("--encodings", encodings_, "Encodings by ONNX names, of any format");
        app.add_option("-o,--output", output_, "Where to write them by the converted model's names");
        app.add_option("--to", format_name_, "The format to write (default: that of --encodings)");
        app.add_flag("--strict", strict_, "Remarks, and tensors without a partner, make the exit code 1");
        add_summary_format(app, format_);
    }

    ExitCode run(Console& console) override {
        const bool json = is_json(format_);
        if (encodings_.empty() != output_.empty())
            fail("{}: expected {} beside it", encodings_.empty() ? "-o" : "--encodings",
                 encodings_.empty() ? "--encodings FILE" : "-o FILE");
        Remarks remarks;
        const Model model = read_model(model_);
        const Model onnx = read_model(onnx_);
        for (const Model* one : {&model, &onnx}) {
            for (const std::string& remark : one->remarks) remarks.add(remark);
        }
        const TensorMapping mapping = map_tensors(request_for(model, onnx, remarks));
        for (const std::string& remark : mapping.remarks) remarks.add(remark);
        if (!encodings_.empty()) write_encodings(mapping, onnx, remarks);
        if (json) {
            console.print(json_of(mapping, remarks).dump(2) + "\n");
        } else {
            print_tables(mapping, console);
            console.remarks(remarks);
        }
        if (mapping.first_change) return ExitCode::findings;
        const bool lacking = !remarks.empty() || !mapping.circle_alone.empty();
        return strict_ && lacking ? ExitCode::findings : ExitCode::fine;
    }

  private:
    MappingRequest request_for(const Model& model, const Model& onnx, Remarks& remarks) const {
        MappingRequest request;
        request.circle = model.graph;
        request.onnx = onnx.graph;
        request.circle_label = printable(model_);
        request.onnx_label = printable(onnx_);
        request.random_samples = random_;
        for (const std::string& text : bind_) {
            const std::size_t equals = text.rfind('=');
            if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
                fail("--bind: expected CONVERTED=ONNX, found '{}'", printable(text));
            request.bind.emplace_back(text.substr(0, equals), text.substr(equals + 1));
        }
        Checks checks;
        std::vector<InputSpec> inputs;
        data_.inputs(*model.graph, inputs, checks);
        checks.throw_if_any();
        for (const InputSpec& input : inputs) {
            if (!input.rank_known) fail("--shape: expected the shape of input '{}'", printable(input.name));
            request.circle_shapes.push_back(input.shape);
        }
        if (!data_.list().empty()) read_samples(inputs, request, remarks);
        if (request.samples.empty() && random_ == 0)
            fail("--random: expected at least one sample, or --data");
        return request;
    }

    void read_samples(const std::vector<InputSpec>& inputs, MappingRequest& request, Remarks& remarks) const {
        DataSettings settings = data_.settings();
        if (!settings.limit) settings.limit = samples_of_list;
        const DataOptions limited(settings);
        std::size_t group = 1;
        const SelectedSamples samples = limited.samples(inputs, group, remarks);
        const SampleReader reader(inputs, limited.preprocessing());
        for (const SelectedSample& sample : samples.samples) request.samples.push_back(reader.read(sample));
        for (std::size_t i = 0; i < inputs.size() && !request.samples.empty(); ++i) {
            const Shape& shape = request.samples.front()[i].shape();
            request.circle_shapes[i].assign(shape.begin(), shape.end());
        }
    }

    void write_encodings(const TensorMapping& mapping, const Model& onnx, Remarks& remarks) const {
        EncodingFile file = read_encodings(encodings_, remarks);
        add_model_facts(file, *onnx.graph, remarks);
        const EncodingFile carried = carry_encodings(mapping, file, remarks);
        const Format& format = find_format(format_name_.empty() ? carried.format : format_name_);
        write_file(output_, format.emit(carried, remarks));
    }

    static std::string verdict(const TensorMapping& mapping) {
        if (!mapping.first_change) {
            const auto largest = std::max_element(
                mapping.pairs.begin(), mapping.pairs.end(),
                [](const TensorPair& a, const TensorPair& b) { return relative(a) < relative(b); });
            if (largest == mapping.pairs.end()) return "no tensor has a partner";
            return fmt::format(
                "the conversion kept the numbers: nothing differs by more than {:.2g} of its "
                "largest value ('{}')",
                relative(*largest), printable(mapping.circle->values[largest->circle].name));
        }
        const TensorPair& first = mapping.pairs[*mapping.first_change];
        const Value& value = mapping.circle->values[first.circle];
        const std::string maker = value.producer == no_node
                                      ? "an input"
                                      : label(*mapping.circle, mapping.circle->nodes[value.producer]);
        return fmt::format(
            "the conversion changed the numbers, first at '{}' ({}): by up to {:.4g}, its largest "
            "value being {:.4g}",
            printable(value.name), maker, first.difference, first.largest);
    }

    static double relative(const TensorPair& pair) {
        return pair.largest > 0 ? pair.difference / pair.largest : pair.difference;
    }

    static void print_tables(const TensorMapping& mapping, const Console& console) {
        Table pairs;
        pairs.column(mapping.circle_label).column(mapping.onnx_label).column("axes").column("evidence");
        pairs.column("difference", Table::Align::right);
        for (const TensorPair& pair : mapping.pairs) {
            std::string onnx = printable(mapping.onnx->values[pair.onnx].name);
            for (const ValueId equal : pair.also) onnx += " = " + printable(mapping.onnx->values[equal].name);
            if (!pair.how.empty()) onnx += ", " + pair.how;
            pairs.row({printable(mapping.circle->values[pair.circle].name), onnx, to_string(pair.axes),
                       std::string(name_of(pair.evidence)), fmt::format("{:.2g}", relative(pair))});
        }
        console.print(pairs.text(console.width()));
        print_lone(mapping.circle_alone, *mapping.circle, "only in " + mapping.circle_label, console);
        print_lone(mapping.onnx_alone, *mapping.onnx, "only in " + mapping.onnx_label, console);
        console.print(fmt::format("\n{} of {} tensors have a partner, by {} samples\n{}\n",
                                  mapping.pairs.size(), mapping.pairs.size() + mapping.circle_alone.size(),
                                  mapping.samples, verdict(mapping)));
    }

    static void print_lone(const std::vector<LoneTensor>& lone, const Graph& graph, const std::string& title,
                           const Console& console) {
        if (lone.empty()) return;
        Table table;
        table.column(title).column("why");
        for (const LoneTensor& one : lone) table.row({printable(graph.values[one.value].name), one.reason});
        console.print("\n" + table.text(console.width()));
    }

    static Json json_of(const TensorMapping& mapping, const Remarks& remarks) {
        Json json;
        json["model"] = mapping.circle_label;
        json["onnx"] = mapping.onnx_label;
        json["samples"] = mapping.samples;
        for (const BoundInput& input : mapping.inputs) {
            json["inputs"].push_back(
                {{"model", printable(mapping.circle->values[mapping.circle->inputs[input.circle]].name)},
                 {"onnx", printable(mapping.onnx->values[mapping.onnx->inputs[input.onnx]].name)},
                 {"evidence", input.evidence}});
        }
        json["pairs"] = Json::array();
        for (const TensorPair& pair : mapping.pairs) {
            Json row{{"model", printable(mapping.circle->values[pair.circle].name)},
                     {"onnx", printable(mapping.onnx->values[pair.onnx].name)},
                     {"axes", to_string(pair.axes)},
                     {"evidence", name_of(pair.evidence)},
                     {"difference", relative(pair)},
                     {"agrees", pair.agrees}};
            for (const ValueId equal : pair.also)
                row["same"].push_back(printable(mapping.onnx->values[equal].name));
            if (!pair.how.empty()) row["how"] = pair.how;
            json["pairs"].push_back(std::move(row));
        }
        const auto lone = [](const std::vector<LoneTensor>& all, const Graph& graph) {
            Json list = Json::array();
            for (const LoneTensor& one : all)
                list.push_back({{"tensor", printable(graph.values[one.value].name)}, {"why", one.reason}});
            return list;
        };
        json["only_in_model"] = lone(mapping.circle_alone, *mapping.circle);
        json["only_in_onnx"] = lone(mapping.onnx_alone, *mapping.onnx);
        if (mapping.first_change)
            json["first_change"] =
                printable(mapping.circle->values[mapping.pairs[*mapping.first_change].circle].name);
        json["verdict"] = verdict(mapping);
        json["remarks"] = remarks.all();
        return json;
    }

    std::string model_;
    std::string onnx_;
    DataOptions data_;
    std::vector<std::string> bind_;
    std::size_t random_ = 3;
    std::string encodings_;
    std::string output_;
    std::string format_name_;
    bool strict_ = false;
    std::string format_ = "table";
};

}  // namespace

std::unique_ptr<Command> make_map_command() {
    return std::make_unique<MapCommand>();
}

}  // namespace qcalib
