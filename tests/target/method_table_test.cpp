#include "target/method_table.h"

#include <doctest/doctest.h>

#include "assignment_fixture.h"

using namespace qcalib;
using test::AssignmentFixture;
using test::find_entry;
using test::message_of;

namespace {

MethodTable table(const std::vector<std::string>& rules) {
    std::vector<MethodRule> parsed;
    for (const std::string& rule : rules) parsed.push_back(parse_method_rule(rule));
    return {parse_method("minmax"), parsed};
}

std::string method_of(const MethodTable& methods, const std::string& tensor) {
    return methods.of(tensor).method->name();
}

// x -> Conv(w) -> c -> Relu -> r, whose values have an outlier.
AssignmentFixture network() {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.constant("w", {5, 1, 1, 2}, {0.5F, 0.1F, 0, 0, 0.3F, 0.25F, -0.3F, 8, 0.4F, -0.2F});
    fixture.node("Conv", {"x", "w"}, {"c"});
    fixture.node("Relu", {"c"}, {"r"});
    fixture.graph.outputs = {fixture.value("r")};
    std::vector<float> values(20000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 200) / 100 - 1;
    values[0] = 1000;
    fixture.count("x", values);
    fixture.count("c", values);
    for (float& value : values) value = std::max(value, 0.0F);
    fixture.count("r", values);
    return fixture;
}

const Encoding& activation(const EncodingSet& set, const std::string& name) {
    const TensorEncoding* entry = find_entry(set.activations, name);
    REQUIRE(entry != nullptr);
    return entry->encodings.at(0);
}

}  // namespace

TEST_CASE("the last rule for a tensor holds, names before patterns, patterns before the rest") {
    CHECK(method_of(table({}), "x") == "minmax");
    CHECK(method_of(table({"mse"}), "x") == "mse");
    CHECK(method_of(table({"mse", "sqnr"}), "x") == "sqnr");
    const MethodTable methods = table({"conv1=ema", "conv*=mse", "conv?_*=sqnr", "entropy"});
    CHECK(method_of(methods, "conv1") == "ema");
    CHECK(method_of(methods, "conv2") == "mse");
    CHECK(method_of(methods, "conv2_out") == "sqnr");
    CHECK(method_of(methods, "x") == "entropy");
    CHECK(methods.describe() ==
          "entropy:clipped=1; conv1: ema:group=1,momentum=0.9; conv*: mse; conv?_*: sqnr:clipped=3");
}

TEST_CASE("a table knows a method that needs histograms, whichever rule has it") {
    CHECK(table({}).needing_histogram() == nullptr);
    CHECK(table({"ema"}).needing_histogram() == nullptr);
    CHECK(table({"mse"}).needing_histogram()->method->name() == "mse");
    CHECK(table({"a=sqnr"}).needing_histogram()->method->name() == "sqnr");
    CHECK(table({"mean"}).needing_histogram() != nullptr);
    CHECK(table({"mean:tails=0"}).needing_histogram() == nullptr);
}

TEST_CASE("a pattern that no tensor matches is an error that offers the nearest name") {
    const std::vector<std::string> names = {"conv1", "conv2"};
    table({"conv*=mse", "conv1=ema", "sqnr"}).check_patterns(names, "--method");
    CHECK(message_of<Error>([&] { table({"convv1=mse"}).check_patterns(names, "--method"); }) ==
          "--method: no tensor matches 'convv1' (did you mean 'conv1'?)");
}

TEST_CASE("a run may give tensors and weights methods of their own") {
    AssignmentFixture fixture = network();
    AssignmentOptions options;
    options.methods = {parse_method_rule("percentile:p=99.9"), parse_method_rule("c=minmax")};
    const EncodingSet set = fixture.assign(options);
    CHECK(activation(set, "x").max < 2);
    CHECK(activation(set, "c").max > 990);
    CHECK(find_entry(set.activations, "x")->origin == "percentile");
    CHECK(find_entry(set.activations, "c")->origin == "minmax");
    options.methods = {parse_method_rule("C=minmax")};
    CHECK(fixture.error(options).starts_with("--method: no tensor matches 'C'"));
    options.methods.clear();
    options.weight_methods = {parse_method_rule("v=mse")};
    CHECK(fixture.error(options).starts_with("--weight-method: no tensor matches 'v'"));
}

TEST_CASE("weights may have the range with the least squared error, per tensor and per channel") {
    AssignmentFixture fixture = network();
    std::vector<float> weights(40000);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 100) / 100 - 0.5F;
    weights[0] = -3;
    weights[39999] = 3;
    fixture.constants[fixture.value("w")] = Tensor::of<float>({4, 1, 1, 10000}, weights);
    AssignmentOptions options;
    options.weight_bits = 4;
    options.weight_methods = {parse_method_rule("mse")};
    for (const bool per_channel : {false, true}) {
        options.per_channel_weights = per_channel;
        const TensorEncoding entry = *find_entry(fixture.assign(options).parameters, "w");
        REQUIRE(entry.encodings.size() == (per_channel ? 4U : 1U));
        for (const Encoding& encoding : entry.encodings) {
            CHECK(encoding.min > -1);
            CHECK(encoding.max < 1);
            CHECK(encoding.max > 0.4);
        }
    }
}

TEST_CASE("dead channels are named, and outliers where channels share an encoding") {
    AssignmentFixture fixture = network();
    fixture.assign();
    REQUIRE(fixture.remarks.size() == 2);
    CHECK(fixture.remarks[0] == "dead channels, whose weights are all zero: 'w' (1)");
    CHECK(fixture.remarks[1] ==
          "outlier channels, whose greatest weight is 8 times the median channel's or more and "
          "sets the step of all: 'w' (3: 16.0 times)");
    AssignmentOptions options;
    options.per_channel_weights = true;
    fixture.assign(options);
    CHECK(fixture.remarks == std::vector<std::string>{"dead channels, whose weights are all zero: 'w' (1)"});
}

TEST_CASE("grids follow the options: unsigned symmetric, power of two, least range, without zero") {
    AssignmentFixture fixture = network();
    AssignmentOptions options;
    options.symmetric_activations = true;
    options.unsigned_symmetric = true;
    CHECK(activation(fixture.assign(options), "r").offset == 0);
    CHECK(activation(fixture.assign(options), "x").offset == -128);
    options.power_of_two = true;
    CHECK(activation(fixture.assign(options), "r").scale == 4);
    options = {};
    options.least_range = 5000;
    CHECK(activation(fixture.assign(options), "r").max == 5000);
    options = {};
    options.include_zero = false;
    fixture.forget("r");
    fixture.count("r", {5, 6});
    CHECK(activation(fixture.assign(options), "r").min == doctest::Approx(5).epsilon(0.001));
}

TEST_CASE("NaN, infinities and masks may be refused, naming the tensor and how many") {
    AssignmentFixture fixture = network();
    fixture.forget("r");
    fixture.count("r", {1, std::nanf(""), -3.4e38F, -3.4e38F});
    AssignmentOptions options;
    CHECK(fixture.error(options).empty());
    options.nonfinite = ValuePolicy::fail;
    CHECK(fixture.error(options) ==
          "'r': expected finite values that are no masks, found 1 NaN, 2 negative masks (--nonfinite skip "
          "and --masks "
          "skip leave them out)");
    options.nonfinite = ValuePolicy::skip;
    options.masks = ValuePolicy::fail;
    CHECK(fixture.error(options).starts_with("'r': expected finite values that are no masks"));
    options.masks.reset();
    fixture.target.masks = ValuePolicy::fail;
    CHECK(fixture.error(options).starts_with("'r': expected finite values that are no masks"));
}

TEST_CASE("a target may have its own method for weights and its own grid") {
    AssignmentFixture fixture = network();
    fixture.target.weights.method = "mse";
    fixture.target.power_of_two = true;
    fixture.target.activations.symmetric = true;
    fixture.target.activations.unsigned_symmetric = true;
    const EncodingSet set = fixture.assign();
    CHECK(activation(set, "r").scale == 4);
    CHECK(activation(set, "r").offset == 0);
}
