#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "simulate/grid_walk.h"
#include "simulate/isolated.h"
#include "simulation_scene.h"

using namespace qcalib;
using namespace qcalib::test;

TEST_CASE("a run that quantizes nothing is the float run, bit by bit") {
    SimulationScene scene;
    DumpSettings dumps;
    dumps.float_only = true;
    dumps.all = true;
    const SimulationResult result = simulate(scene.run(), dumps);
    CHECK(result.run.samples == 6);
    CHECK(result.tensors.size() == 9);  // x, c1, r1, c2, a, r2, p, f, y
    for (const SimulatedTensor& tensor : result.tensors) {
        CHECK(tensor.error.squared_error == 0);
        CHECK(tensor.error.elements > 0);
    }
}

TEST_CASE("every encoded tensor is compared, its own error apart from what comes before it") {
    SimulationScene scene;
    const SimulationResult result = simulate(scene.run(), {});
    const SimulatedTensor& input = tensor_of(result, "x");
    CHECK(input.error.squared_error == doctest::Approx(input.quantized.error));
    CHECK(input.error.greatest_error <= input.step * 0.5001 + input.clipped_share() * 10);
    const SimulatedTensor& sum = tensor_of(result, "a");
    CHECK(sum.error.squared_error > sum.quantized.error);
    CHECK(sum.error.sqnr() > 15);
    CHECK(sum.error.cosine() > 0.98);
    const SimulatedTensor& weight = tensor_of(result, "w2");
    CHECK(weight.kind == "weight");
    CHECK(weight.error.greatest_error <= weight.step * 0.5001);
    CHECK(tensor_of(result, "y").top.value().rows == 6);
    CHECK(tensor_of(result, "y").output);
    // Graph order, a constant before the node that reads it.
    const auto place = [&](const std::string& name) {
        return std::find_if(result.tensors.begin(), result.tensors.end(),
                            [&](const auto& tensor) { return tensor.name == name; }) -
               result.tensors.begin();
    };
    CHECK(place("w2") < place("c2"));
    CHECK(place("c2") < place("a"));
}

TEST_CASE("the number of workers changes nothing") {
    SimulationScene scene(9);
    const SimulationResult one = simulate(scene.run(1), {});
    const SimulationResult four = simulate(scene.run(4), {});
    REQUIRE(one.tensors.size() == four.tensors.size());
    for (std::size_t i = 0; i < one.tensors.size(); ++i) {
        CHECK(one.tensors[i].error.squared_error == four.tensors[i].error.squared_error);
        CHECK(one.tensors[i].error.product == four.tensors[i].error.product);
        CHECK(one.tensors[i].quantized.error == four.tensors[i].quantized.error);
    }
    CHECK(one.cost == four.cost);
}

TEST_CASE("biases are floats, 32-bit integers at the scale of the product, or 8-bit integers") {
    SimulationScene scene;
    scene.switches.bias = BiasForm::floating;
    const SimulationResult floats = simulate(scene.run(), {});
    CHECK_THROWS_AS(tensor_of(floats, "b2"), Error);
    scene.switches.bias = BiasForm::int32;
    const SimulationResult wide = simulate(scene.run(), {});
    const double product = tensor_of(wide, "r1").step * tensor_of(wide, "w2").step;
    CHECK(tensor_of(wide, "b2").step == doctest::Approx(product));
    CHECK(tensor_of(wide, "b2").kind == "bias");
    CHECK(tensor_of(wide, "b2").error.greatest_error <= product * 0.5001);
    scene.switches.bias = BiasForm::int8;
    CHECK(tensor_of(simulate(scene.run(), {}), "b2").step > 10 * product);
}

TEST_CASE("weights are encoded as given, anew, or anew after clipping") {
    SimulationScene scene;
    const ValueId weight = scene.value("w2");
    TensorEncoding narrow = scene.given.by_value.at(weight);
    narrow.encodings = {encode_asymmetric({-1, 0.5}, 8, 0.01)};
    scene.given.by_value.insert_or_assign(weight, narrow);
    const auto encoding = [&](WeightSource source) {
        SimulationSwitches switches;
        switches.weights = source;
        for (const SimulatedEncoding& one : resolve_encodings(*scene.simulated, scene.given, switches, {})) {
            if (one.value == weight) return one.encoding.encodings.front();
        }
        throw Error("no encoding");
    };
    CHECK(encoding(WeightSource::given) == narrow.encodings.front());
    CHECK(encoding(WeightSource::file).min == doctest::Approx(-2).epsilon(0.01));
    // The clipped weights reach the nudged ends of the given grid.
    const Range ends{narrow.encodings.front().min, narrow.encodings.front().max};
    CHECK(encoding(WeightSource::clipped).scale == doctest::Approx(encode_asymmetric(ends, 8, 0.01).scale));
}

TEST_CASE(
    "tensors without an entry are measured on the converter's list, and shared where the target says so") {
    SimulationScene scene;
    for (const char* name : {"x", "c1", "f"}) scene.given.by_value.erase(scene.value(name));
    scene.given.by_value.at(scene.value("p")).encodings = {encode_asymmetric({0, 77}, 8, 0.01)};
    scene.measured.emplace(scene.value("x"), Range{-3, 5});
    scene.measured.emplace(scene.value("f"), Range{-3, 5});
    const SimulatedEncodings found = resolve_encodings(*scene.simulated, scene.given, {}, scene.measured);
    const auto encoding = [&](const std::string& name) -> const TensorEncoding* {
        for (const SimulatedEncoding& one : found) {
            if (one.value == scene.value(name)) return &one.encoding;
        }
        return nullptr;
    };
    CHECK(encoding("x")->encodings.front() == encode_asymmetric({-3, 5}, 8, 0.01));
    CHECK(encoding("f")->encodings == encoding("p")->encodings);  // Flatten takes that of its input
    CHECK(encoding("c1") == nullptr);
}

TEST_CASE("values before a Relu are left in float where the switch says so") {
    SimulationScene scene;
    scene.switches.pre_activations = PreActivations::skipped;
    const SimulationResult result = simulate(scene.run(), {});
    CHECK_THROWS_AS(tensor_of(result, "c1"), Error);
    CHECK_THROWS_AS(tensor_of(result, "a"), Error);
    CHECK(tensor_of(result, "c2").bits == 8);
}

TEST_CASE("one tensor alone: the graph behind it gives what the whole graph gives") {
    SimulationScene scene;
    bool whole = true;
    const std::vector<IsolatedCost> costs = isolated_costs(scene.run(), {"*"}, whole);
    CHECK_FALSE(whole);
    CHECK(costs.size() == 12);  // nine activations, three weights
    CHECK(std::is_sorted(costs.begin(), costs.end(),
                         [](const auto& a, const auto& b) { return a.cost > b.cost; }));
    for (const IsolatedCost& one : costs) {
        std::vector<Variant> variants(1);
        variants[0].quantization = make_quantization(*scene.simulated, {one.encoding}, ValueRounding::half_up,
                                                     BiasForm::floating, scene.remarks);
        VariantSettings settings;
        settings.compared.resize(scene.model.graph->values.size());
        const double expected =
            run_variants(scene.run(), variants, settings, nullptr)[0].cost(*scene.model.graph);
        CHECK_MESSAGE(one.cost == doctest::Approx(expected).epsilon(1e-3), one.name);
        CHECK(one.cost > 0);
    }
    CHECK_THROWS_WITH_AS(isolated_costs(scene.run(), {"w22"}, whole),
                         "--isolated w22: fits no encoded tensor (did you mean 'w2'?)", Error);
}

TEST_CASE("more bits for the costliest tensors lower the error, and all of them lower it most") {
    SimulationScene scene;
    BitsSearchSettings settings;
    settings.random_orders = 2;
    const BitsSearch search = search_bits(scene.run(), settings);
    REQUIRE(search.curve.size() >= 5);
    CHECK(search.curve.front().tensors == 0);
    CHECK(search.curve.back().tensors == search.ranking.size());
    CHECK(search.curve.front().cost == search.curve.front().random_cost);
    CHECK(search.curve.back().cost < search.curve.front().cost / 1000);
    CHECK(search.curve[3].cost < search.curve[3].random_cost);
}

TEST_CASE("a diagnosis names the switches that a planted run was made with") {
    SimulationScene scene;
    scene.measured.emplace(scene.value("x"), Range{-0.5, 1.1});
    scene.given.by_value.at(scene.value("w2")).encodings = {encode_asymmetric({-1.7, 0.9}, 8, 0.01)};
    const auto found = [&](const Diagnosis& diagnosis) {
        std::vector<std::string> names;
        for (const SwitchChange& change : diagnosis.findings.at(0).changes)
            names.push_back(change.name + "=" + change.value);
        return names;
    };
    SimulationSwitches planted;
    planted.weights = WeightSource::clipped;
    planted.inputs = InputRanges::list;
    Diagnosis diagnosis = diagnose(scene.run(), scene.dumps(scene.plant(planted)));
    CHECK(diagnosis.verdict == Diagnosis::Verdict::explained);
    CHECK(diagnosis.findings.size() == 1);
    CHECK(found(diagnosis) == std::vector<std::string>{"weights=clipped", "input-ranges=list"});

    planted = {};
    planted.bias = BiasForm::int8;
    planted.pre_activations = PreActivations::skipped;
    diagnosis = diagnose(scene.run(), scene.dumps(scene.plant(planted)));
    CHECK(diagnosis.verdict == Diagnosis::Verdict::explained);
    CHECK(found(diagnosis) == std::vector<std::string>{"bias=int8", "pre-activations=skipped"});

    diagnosis = diagnose(scene.run(), scene.dumps(scene.plant({})));
    CHECK(diagnosis.verdict == Diagnosis::Verdict::nothing_to_explain);
}

TEST_CASE("a diagnosis of noise names nothing") {
    SimulationScene scene;
    const auto place = scene.plant({});
    Random random(5);
    const double step = scene.given.by_value.at(scene.value("y")).encodings.front().scale;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place)) {
        if (!entry.is_regular_file()) continue;
        Tensor tensor = copy_of(read_npy(entry.path()));
        for (float& element : tensor.mutable_view().as<float>())
            element += static_cast<float>((random.unit() - 0.5) * 20 * step);
        write_npy(entry.path(), tensor.view());
    }
    const Diagnosis diagnosis = diagnose(scene.run(), scene.dumps(place));
    CHECK(diagnosis.verdict == Diagnosis::Verdict::unexplained);
    CHECK(diagnosis.findings.empty());
}

TEST_CASE("the first tensor in graph order that parts by more than a step is named") {
    SimulationScene scene;
    const auto place = scene.plant({}, true);
    const auto shift = [&](const std::string& file, float by) {
        Tensor tensor = copy_of(read_npy(place / "Result_2" / file));
        tensor.mutable_view().as<float>()[5] += by;
        write_npy(place / "Result_2" / file, tensor.view());
    };
    const double step = scene.given.by_value.at(scene.value("c2")).encodings.front().scale;
    DumpFolder dumps = scene.dumps(place);
    DumpSettings settings;
    settings.against = &dumps;
    CHECK_FALSE(simulate(scene.run(), settings).first_parting.has_value());
    shift("c2.npy", static_cast<float>(step));  // one step is none too far
    CHECK_FALSE(simulate(scene.run(), settings).first_parting.has_value());
    shift("c2.npy", static_cast<float>(step));
    shift("y.npy", 5);
    const SimulationResult result = simulate(scene.run(), settings);
    CHECK(result.first_parting == "c2");
    CHECK(tensor_of(result, "c2").dump.value().different == 1);
    CHECK(tensor_of(result, "c2").dump.value().greatest_steps == doctest::Approx(2).epsilon(0.01));
}

TEST_CASE("dumps are found by the names converters make, raw and with channels last") {
    SimulationScene scene(1);
    const auto place = scene.plant({}, true) / "Result_0";
    const Tensor made = read_npy(place / "c1.npy");
    std::filesystem::remove_all(place.parent_path() / "other");
    const auto other = place.parent_path() / "other";
    std::filesystem::create_directories(other);
    Tensor last({DataType::float32, made.shape(), MemoryOrder::channels_last});
    copy_to_order(made.view(), last.mutable_view());
    const auto bytes = last.view().bytes();
    write_unsynced(other / "c1.nhwc.raw", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    DumpFolder dumps = scene.dumps(other);
    CHECK(dumps.values()[scene.value("c1")]);
    DumpSettings settings;
    settings.against = &dumps;
    const SimulationResult result = simulate(scene.run(), settings);
    CHECK(tensor_of(result, "c1").dump.value().elements == 512);
    CHECK(tensor_of(result, "c1").dump.value().different == 0);
}

TEST_CASE("what was dumped is found again, whatever the names") {
    OnnxModel file;
    file.graph.input("x", {1, 4}).output("/a.b/y:0").output("/a/b/y:0");
    file.graph.node("Neg", {"x"}, {"/a.b/y:0"}).node("Abs", {"x"}, {"/a/b/y:0"});
    const TemporaryFolder folder;
    file.save(folder / "m.onnx");
    const Model model = read_onnx_file(folder / "m.onnx");
    const DumpWriter writer(folder / "dump", *model.graph);
    const SampleStep step{7, 0, false, {}};
    for (const ValueId value : model.graph->outputs)
        writer.write(step, value, random_tensor({1, 4}, value).view());
    Remarks remarks;
    const DumpFolder dumps(folder / "dump", *model.graph, 9, remarks);
    CHECK(remarks.empty());
    for (const ValueId value : model.graph->outputs) {
        const Tensor expected = random_tensor({1, 4}, value);
        const std::optional<Tensor> found = dumps.read(7, value, expected.view());
        REQUIRE(found);
        CHECK(compare(found->view(), expected.view()).greatest_error == 0);
        CHECK_FALSE(dumps.read(6, value, expected.view()));
    }
}

TEST_CASE("a diagnosis of other encodings names nothing") {
    SimulationScene scene;
    const GivenEncodings usual = scene.given;
    for (auto& [value, encoding] : scene.given.by_value) {
        const Encoding& one = encoding.encodings.front();
        encoding.encodings = {encode_asymmetric({one.min * 0.8, one.max * 0.85}, 8, 0.01)};
    }
    const auto place = scene.plant({});
    scene.given = usual;
    const Diagnosis diagnosis = diagnose(scene.run(), scene.dumps(place));
    CHECK(diagnosis.verdict == Diagnosis::Verdict::unexplained);
}

TEST_CASE("the encodings that differ have their shares of the outputs' difference") {
    SimulationScene scene;
    GivenEncodings other = scene.given;
    other.by_value.at(scene.value("w3")).encodings = {encode_asymmetric({-0.5, 0.5}, 8, 0.01)};
    other.by_value.at(scene.value("c1")).encodings.front().scale *= 1.01;
    const EncodingShares shares = encoding_shares(scene.run(), other);
    REQUIRE(shares.shares.size() == 2);
    CHECK(shares.same == 10);
    CHECK(shares.difference > 0);
    CHECK(shares.shares[0].name == "w3");
    CHECK(shares.shares[0].share > 0.9);
    CHECK(shares.shares[1].share < 0.1);
}

TEST_CASE("entries are found by the names converters make, and those of no tensor are named") {
    SimulationScene scene;
    const auto entry = [](const std::string& name, double top) {
        return TensorEncoding{name, {encode_asymmetric({0, top}, 8, 0.01)}, {}, "e.json:3"};
    };
    Remarks remarks;
    const EncodingSet set{{entry("r1.ncs", 5), entry("r2", 7), entry("r22", 1)}, {entry("w1_permute", 2)}};
    const GivenEncodings given = match_encodings(*scene.simulated, set, remarks);
    CHECK(given.by_value.size() == 3);
    CHECK(given.by_value.at(scene.value("r1")).encodings.front().max == doctest::Approx(5));
    CHECK(given.by_value.contains(scene.value("w1")));
    CHECK(remarks.all() ==
          std::vector<std::string>{"e.json:3: 'r22' is no tensor of the model (did you mean 'r2'?)"});
    CHECK(given.unencoded.size() == 7);  // x, c1, c2, a, p, f, y
    CHECK_THROWS_WITH_AS(
        match_encodings(*scene.simulated, {{entry("other", 1), entry("model", 1)}, {}}, remarks),
        "e.json:3: 'other' is no tensor of the model, nor is any other of the 2 entries", Error);
}

TEST_CASE("a graph with bodies is run as a whole for each tensor") {
    OnnxModel file;
    OnnxGraph then_branch;
    then_branch.node("Relu", {"h"}, {"t"}).output("t");
    OnnxGraph else_branch;
    else_branch.node("Neg", {"h"}, {"e"}).output("e");
    file.graph.input("x", {1, 4}).input("flag", {}, DataType::boolean).output("y");
    file.graph.initializer("w", random_tensor({4, 4}, 1));
    file.graph.node("MatMul", {"x", "w"}, {"h"});
    file.graph.node("If", {"flag"}, {"y"}, {{"then_branch", then_branch}, {"else_branch", else_branch}});
    SimulationScene scene;
    file.save(scene.folder / "if.onnx");
    const Model model = read_onnx_file(scene.folder / "if.onnx");
    write_npy(scene.folder / "x.npy", random_tensor({1, 4}, 8).view());
    Tensor flag({DataType::boolean, {}, MemoryOrder::row_major});
    flag.mutable_view().as<bool>()[0] = true;
    write_npy(scene.folder / "flag.npy", flag.view());
    const SelectedSamples samples =
        select_samples({{1, {scene.folder / "x.npy", scene.folder / "flag.npy"}}}, {});
    const SampleReader reader(input_specs(*model.graph), Preprocessing());
    const SimulatedModel simulated(model.graph, load_target("snpe"), {});
    const MeasuredRanges measured =
        measure_ranges(simulated, reader, samples, {}, scene.progress, scene.remarks);
    const GivenEncodings given;
    const SimulationRun run{simulated, given, measured,       {},           reader, samples,
                            {},        {},    scene.progress, scene.remarks};
    bool whole = false;
    const std::vector<IsolatedCost> costs = isolated_costs(run, {"*"}, whole);
    CHECK(whole);
    CHECK(costs.size() >= 3);
    CHECK(costs.front().cost > 0);
}
