#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.h"
#include "integer_chain_scene.h"
#include "simulate/chain_layers.h"
#include "simulate/chain_scales.h"
#include "simulate/chain_weights.h"
#include "simulate/exact_sums.h"
#include "target/tidl_scales.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// The public case: Clip(0, 1), a 1x1 convolution of weight 1, Clip(0, 4).
OnnxModel two_clips(std::int64_t elements = 1) {
    OnnxModel file;
    file.graph.input("x", {1, 1, 1, elements}).output("y");
    file.graph.initializer("zero", Tensor::of<float>({}, std::vector<float>{0}));
    file.graph.initializer("one", Tensor::of<float>({}, std::vector<float>{1}));
    file.graph.initializer("four", Tensor::of<float>({}, std::vector<float>{4}));
    file.graph.initializer("w", Tensor::of<float>({1, 1, 1, 1}, std::vector<float>{1}));
    file.graph.node("Clip", {"x", "zero", "one"}, {"a"});
    file.graph.node("Conv", {"a", "w"}, {"c"});
    file.graph.node("Clip", {"c", "zero", "four"}, {"y"});
    return file;
}

void encode_two_clips(ChainScene& scene, int bits = 8) {
    scene.encode("a", chain_grid(1, false, bits));
    scene.encode("y", chain_grid(4, false, bits));
    scene.encode("w", chain_grid(1, true, bits));
    if (bits != 8) scene.encode("x", chain_grid(1, true, bits));
}

// What the table of the public analysis has for input 0.8.
struct TableRow {
    NetworkInput input;
    bool batch_norm;
    TopWeight batch_norm_weight;
    TopWeight weight;
    double half_up;
    double floor;
    double half_even;
};

}  // namespace

TEST_CASE("0.8 through two Clips is 0.78125 by the chain, 0.796875 by fake quantization") {
    ChainScene scene(two_clips());
    encode_two_clips(scene);
    CHECK(scene.switches.arithmetic == Arithmetic::integer);
    const auto values = scene.run({Tensor::of<float>({1, 1, 1, 1}, std::vector<float>{0.8F})});
    CHECK(values.at("x")[0] == 102.0F / 128);
    CHECK(values.at("a")[0] == 202.0F / 256);
    CHECK(values.at("y")[0] == 50.0F / 64);
    scene.switches.arithmetic = Arithmetic::fake;
    CHECK(scene.output({1, 1, 1, 1}, {0.8F})[0] == 0.796875F);
}

TEST_CASE("every combination of input, weights and rounding gives what the analysis of the case lists") {
    constexpr double low = 0.78125;
    constexpr double high = 0.796875;
    constexpr auto u8 = NetworkInput::given;
    constexpr auto s8 = NetworkInput::signed_power_of_two;
    constexpr auto top127 = TopWeight::saturated;
    constexpr auto top128 = TopWeight::kept;
    const std::vector<TableRow> table{
        {u8, true, top127, top127, low, low, low},    {u8, true, top127, top128, high, low, high},
        {u8, true, top128, top127, high, low, high},  {u8, true, top128, top128, high, high, high},
        {s8, true, top127, top127, low, low, low},    {s8, true, top127, top128, high, low, low},
        {s8, true, top128, top127, high, low, high},  {s8, true, top128, top128, high, high, high},
        {s8, false, top127, top127, high, low, high}, {s8, false, top127, top128, high, high, high},
        {u8, false, top127, top127, high, low, high}, {u8, false, top127, top128, high, high, high},
    };
    ChainScene scene(two_clips());
    encode_two_clips(scene);
    for (const TableRow& row : table) {
        CAPTURE(&row - table.data());
        ChainSwitches& chain = scene.switches.chain;
        chain.network_input = row.input;
        chain.leading_clip = row.batch_norm ? LeadingClip::batch_norm : LeadingClip::dropped;
        chain.batch_norm_weights = row.batch_norm_weight;
        chain.layer_weights = row.weight;
        chain.shift_rounding = ShiftRounding::half_up;
        CHECK(scene.output({1, 1, 1, 1}, {0.8F})[0] == row.half_up);
        chain.shift_rounding = ShiftRounding::floor;
        CHECK(scene.output({1, 1, 1, 1}, {0.8F})[0] == row.floor);
        chain.shift_rounding = ShiftRounding::half_even;
        CHECK(scene.output({1, 1, 1, 1}, {0.8F})[0] == row.half_even);
    }
}

TEST_CASE("of 4096 inputs from 0 to 1 the chain puts 1000 a step lower than fake quantization") {
    constexpr std::int64_t count = 4096;
    ChainScene scene(two_clips(count));
    encode_two_clips(scene);
    std::vector<float> inputs;
    for (std::int64_t i = 0; i < count; ++i) inputs.push_back(static_cast<float>(i) / count);
    const std::vector<float> chain = scene.output({1, 1, 1, count}, inputs);
    scene.switches.arithmetic = Arithmetic::fake;
    const std::vector<float> fake = scene.output({1, 1, 1, count}, inputs);
    std::size_t lower = 0;
    for (std::size_t i = 0; i < chain.size(); ++i) {
        if (chain[i] == fake[i]) continue;
        CHECK(chain[i] - fake[i] == -1.0F / 64);
        ++lower;
    }
    CHECK(lower == 1000);  // 24.4 %
}

TEST_CASE("on 16 bits the same chain gives 0.79993") {
    ChainScene scene(two_clips());
    encode_two_clips(scene, 16);
    CHECK(scene.output({1, 1, 1, 1}, {0.8F})[0] == doctest::Approx(13106.0 / 16384));
    CHECK(std::abs(static_cast<double>(scene.output({1, 1, 1, 1}, {0.8F})[0]) - 0.79993) < 5e-6);
    CHECK(scene.codes("x").scale == 32768);
    CHECK(scene.codes("a").scale == 65536);
}

TEST_CASE("activations are rounded half up, weights half away from zero") {
    OnnxModel file;
    file.graph.input("x", {1, 1, 1, 6}).output("y").node("Abs", {"x"}, {"y"});
    ChainScene scene(file);
    scene.encode("x", chain_grid(128, true));
    scene.encode("y", chain_grid(128, true));
    const auto values = scene.run(
        {Tensor::of<float>({1, 1, 1, 6}, std::vector<float>{-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F})});
    CHECK(values.at("x") == std::vector<float>{-2, -1, 0, 1, 2, 3});
    CHECK(values.at("y") == std::vector<float>{2, 1, 0, 1, 2, 3});
    CHECK(weight_codes({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}, 1, 8, TopWeight::saturated) ==
          std::vector<std::int64_t>{-3, -2, -1, 1, 2, 3});
    CHECK(weight_codes({-1, 1, 2}, 128, 8, TopWeight::saturated) ==
          std::vector<std::int64_t>{-128, 127, 127});
    CHECK(weight_codes({-1, 1, 2}, 128, 8, TopWeight::kept) == std::vector<std::int64_t>{-128, 128, 128});
}

TEST_CASE("scales are multipliers of powers of two of the range") {
    CHECK(chain_scale(8, false, 4) == 64);
    CHECK(chain_scale(8, true, 8) == 16);
    CHECK(chain_scale(16, true, 64) == 512);
    CHECK(chain_scale(8, true, 1e-16) == 1);
    CHECK(network_input_scale(8, 1) == 128);
    CHECK(network_input_scale(8, 0.9) == 128);
    CHECK(network_input_scale(8, 2.64) == 32);
    CHECK(network_input_scale(16, 255) == 128);
    // The document's example: 56.387794494628906 is the accumulator's scale divided by 2^8.
    const double sums = 14435.275390625;
    CHECK(std::ldexp(sums, -tidl_shift(4.09663105, sums, 8, false)) == 56.387794494628906);
    CHECK(tidl_shift(4, 32768, 8, false) == 9);
    CHECK(tidl_shift(4, 32768, 8, true) == 10);  // 2^17 - 1 fits 7 bits after 10
    CHECK(tidl_shift(4.001, 32768, 8, true) == 11);
    CHECK(tidl_shift(4, 1, 8, false) == 0);
    CHECK(aligned_weight_scale(100, 64, 256) == 64);  // 6400 = 25 * 256, lowered to 16 * 256
    CHECK(aligned_weight_scale(128, 128, 256) == 128);
}

TEST_CASE("a bias is a 16-bit integer times a unit of at most 255") {
    CHECK(split_bias(2, 16384, 8, false).unit == 255);  // 16384 / 64 > 255
    CHECK(split_bias(2, 64 * 255, 8, false).unit == 1);
    CHECK(split_bias(2, 64 * 255, 8, true).unit == 127);
    CHECK(split_bias(2, 16384, 8, false).value(1, 16384) == 64 * 255);  // of 16384: 64.25 units
    CHECK(split_bias(2, 16384, 8, false).value(-1, 16384) == -64 * 255);
    CHECK(split_bias(2, 100, 8, false).value(1.999, 100) == 199);
    CHECK(bias_codes({1.999, -2}, 100, 8, false, BiasForm::int32) == std::vector<double>{200, -200});
    // The factor has 16 bits.
    CHECK(split_bias(1e6, 16384, 8, false).value(1e6, 16384) == 32767.0 * 255);
}

TEST_CASE("weights and codes are split into digits where float32 sums would not be exact") {
    for (const std::int64_t weight : {-32768, -129, -128, -1, 0, 1, 127, 128, 32767}) {
        for (const int digits : {1, 2, 4}) {
            const std::int64_t base = digits == 2 ? 256 : 16;
            const std::vector<std::int64_t> parts = digits_of(weight, digits, base);
            std::int64_t sum = 0;
            for (std::size_t i = parts.size(); i-- > 0;) sum = sum * base + parts[i];
            CHECK(sum == weight);
        }
    }
    const std::vector<std::vector<std::int64_t>> short_row{std::vector<std::int64_t>(100, 127)};
    CHECK(split_for_exact_sums(short_row, 8, false).weight_digits == 1);
    const std::vector<std::vector<std::int64_t>> long_row{std::vector<std::int64_t>(4608, 127)};
    const DigitSplit split = split_for_exact_sums(long_row, 8, false);
    CHECK(split.weight_digits * split.code_digits == 2);
    CHECK_THROWS_AS(split_for_exact_sums({std::vector<std::int64_t>(40000000, 1)}, 8, false), Error);
}

TEST_CASE("sums far beyond 2^24 are exact, on 8 and on 16 bits") {
    constexpr std::int64_t channels = 3000;
    for (const int bits : {8, 16}) {
        CAPTURE(bits);
        const double half = std::ldexp(1.0, bits - 1);
        const double scale = half * half;  // of the sums
        std::vector<float> weights;
        std::vector<float> inputs;
        double sum = 0;
        for (std::int64_t i = 0; i < channels; ++i) {
            weights.push_back(static_cast<float>((half - 1 - static_cast<double>(i % 97)) / half));
            inputs.push_back(static_cast<float>((half - 1 - static_cast<double>(i % 89)) / half));
            sum += (half - 1 - static_cast<double>(i % 97)) * (half - 1 - static_cast<double>(i % 89));
        }
        REQUIRE(sum > (bits == 8 ? 16777216 : 1e12));
        // The bias leaves little of the sum, so that single units of it show in the output.
        const auto bias = static_cast<float>(-sum / scale);
        const double rest = sum + std::round(static_cast<double>(bias) * scale);
        OnnxModel file;
        file.graph.input("x", {1, channels, 1, 1}).output("y");
        file.graph.initializer("w", Tensor::of<float>({1, channels, 1, 1}, std::span<const float>(weights)));
        file.graph.initializer("b", Tensor::of<float>({1}, std::vector<float>{bias}));
        file.graph.node("Conv", {"x", "w", "b"}, {"y"});
        ChainScene scene(file);
        scene.switches.bias = BiasForm::floating;
        scene.encode("x", chain_grid(1, true, bits));
        scene.encode("w", chain_grid(1, true, bits));
        const double limit = std::max(32768.0, 2 * std::abs(rest)) / scale;
        scene.encode("y", chain_grid(limit, true, 16));
        const double unit = scale / scene.codes("y").scale;  // of an output's step, in units of the sum
        CHECK(unit <= (bits == 8 ? 2 : 32));
        const double expected = std::floor(rest / unit + 0.5) * unit / scale;
        CHECK(scene.output({1, channels, 1, 1}, inputs)[0] == static_cast<float>(expected));
    }
}

TEST_CASE("weights and biases meet at one scale: kernels of zeros and ones give 1 and 29") {
    // A public report: their scales differed, and the outputs were as 1 to 2.4.
    OnnxModel file;
    file.graph.input("x", {1, 3, 3, 3}).output("y");
    std::vector<float> weights(54, 0);
    std::fill(weights.begin() + 27, weights.end(), 1.0F);
    file.graph.initializer("w", Tensor::of<float>({2, 3, 3, 3}, std::span<const float>(weights)));
    file.graph.initializer("b", Tensor::of<float>({2}, std::vector<float>{1, 2}));
    file.graph.node("Conv", {"x", "w", "b"}, {"y"});
    for (const BiasForm form : {BiasForm::split, BiasForm::int32, BiasForm::int8, BiasForm::floating}) {
        CAPTURE(static_cast<int>(form));
        ChainScene scene(file);
        scene.encode("x", chain_grid(1, true, 8));
        scene.encode("y", chain_grid(32, true, 8));
        scene.switches.bias = form;
        const std::vector<float> outputs = scene.output({1, 3, 3, 3}, std::vector<float>(27, 1.0F));
        const double step = 1 / scene.codes("y").scale;
        CHECK(std::abs(static_cast<double>(outputs[0]) - 1) <= step);
        // Input and weight saturate at 127 of 128: 27 * 127 * 127 / 128 / 128 + 2 = 28.58.
        CHECK(std::abs(static_cast<double>(outputs[1]) - 28.58) <= step);
        CHECK(std::abs(static_cast<double>(outputs[1]) - 29) <= 2 * step);
    }
}

TEST_CASE("a Clip-only model rounds nothing by itself, and the simulation says so") {
    OnnxModel file = two_clips();
    ChainScene scene(file);
    CHECK(range_clips(scene.simulated()) == 2);
    encode_two_clips(scene);
    scene.switches.arithmetic = Arithmetic::fake;
    // Float runtimes have 0.803; training rounds to 51 / 64.
    CHECK(scene.output({1, 1, 1, 1}, {0.803F})[0] == 0.796875F);
    OnnxModel relu6;
    relu6.graph.input("x", {1, 1, 1, 1}).output("y").node("Relu", {"x"}, {"y"});
    CHECK(range_clips(ChainScene(relu6).simulated()) == 0);
}

TEST_CASE("a network of many kinds of layers stays near the float one, in integers throughout") {
    OnnxModel file;
    file.graph.input("x", {1, 3, 16, 16}).output("y");
    const OnnxInts pads{1, 1, 1, 1};
    const OnnxInts two{2, 2};
    file.graph.initializer("w1", random_tensor({8, 3, 3, 3}, 1))
        .initializer("w2", random_tensor({8, 1, 3, 3}, 2));
    file.graph.initializer("w3", random_tensor({16, 10}, 3)).initializer("b3", random_tensor({10}, 4));
    for (const char* name : {"gamma", "variance"})
        file.graph.initializer(name, random_tensor({8}, 5, 0.5, 1.5));
    for (const char* name : {"beta", "mean"}) file.graph.initializer(name, random_tensor({8}, 6));
    file.graph.node("Conv", {"x", "w1"}, {"c1"}, {{"pads", pads}});
    file.graph.node("BatchNormalization", {"c1", "gamma", "beta", "mean", "variance"}, {"n1"});
    file.graph.node("Relu", {"n1"}, {"r1"});
    file.graph.node("Conv", {"r1", "w2"}, {"c2"}, {{"pads", pads}, {"group", 8}});
    file.graph.node("Add", {"c2", "r1"}, {"a"}).node("Relu", {"a"}, {"r2"});
    file.graph.node("MaxPool", {"r2"}, {"m"}, {{"kernel_shape", two}, {"strides", two}});
    file.graph.node("AveragePool", {"r1"}, {"v"}, {{"kernel_shape", two}, {"strides", two}});
    file.graph.node("Concat", {"m", "v"}, {"k"}, {{"axis", 1}});
    file.graph.node("GlobalAveragePool", {"k"}, {"p"}).node("Flatten", {"p"}, {"f"});
    file.graph.node("Gemm", {"f", "w3", "b3"}, {"y"});
    ChainScene scene(file);
    const std::vector<Tensor> inputs{random_tensor({1, 3, 16, 16}, 7, -1, 1)};
    scene.switches.arithmetic = Arithmetic::fake;
    const auto floats = scene.run(inputs);  // no activation has an encoding yet
    const auto limit = [&](const std::string& name) {
        double greatest = 0;
        for (const float one : floats.at(name))
            greatest = std::max(greatest, std::abs(static_cast<double>(one)));
        return std::exp2(std::ceil(std::log2(greatest)));
    };
    for (const char* name : {"r1", "r2", "v", "k", "p"}) scene.encode(name, chain_grid(limit(name)));
    for (const char* name : {"x", "c2", "y"}) scene.encode(name, chain_grid(limit(name), true));
    scene.switches.arithmetic = Arithmetic::integer;
    const auto chain = scene.run(inputs);
    for (const char* name : {"r1", "r2", "m", "v", "k", "p", "y"}) {
        CAPTURE(name);
        double error = 0;
        double signal = 0;
        for (std::size_t i = 0; i < chain.at(name).size(); ++i) {
            const double difference =
                static_cast<double>(chain.at(name)[i]) - static_cast<double>(floats.at(name)[i]);
            error += difference * difference;
            signal += static_cast<double>(floats.at(name)[i]) * static_cast<double>(floats.at(name)[i]);
        }
        CHECK(10 * std::log10(signal / error) > 25);
        // All values are whole multiples of the step.
        const double scale = scene.codes(name).scale;
        for (const float one : chain.at(name)) {
            const double code = static_cast<double>(one) * scale;
            CHECK(std::abs(code - std::round(code)) < 1e-3);
        }
    }
    CHECK(scene.codes("m").scale == scene.codes("r2").scale);
    CHECK(!scene.codes("m").is_signed);
    CHECK(scene.codes("k").is_signed);  // no Relu ends it
    CHECK(scene.codes("y").is_signed);
    const std::vector<std::string> notes = scene.chain().notes;
    CHECK(std::ranges::none_of(notes,
                               [](const auto& note) { return note.find("in float") != std::string::npos; }));
    CHECK(chain.contains("c1") == false);  // inside a layer
}
