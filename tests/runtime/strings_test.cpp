#include <cmath>
#include <limits>

#include "runtime/frame.h"
#include "runtime/movement_cases.h"

namespace qcalib::test {

namespace {

constexpr std::int64_t float_code = 1;
constexpr std::int64_t int64_code = 7;
constexpr std::int64_t string_code = 8;
constexpr std::int64_t bool_code = 9;

using Strings = std::vector<std::string>;

Tensor string_tensor(const Strings& strings) {
    return Tensor::of_strings({static_cast<std::int64_t>(strings.size())}, strings);
}

OperatorCase string_cast(Tensor input, std::int64_t to) {
    OperatorCase test{.op_type = "Cast"};
    test.inputs = {std::move(input)};
    test.attributes["to"] = to;
    return test;
}

// All kinds of kernels must make exactly these strings of output 0, from graph inputs and from constants.
void check_strings(OperatorCase test, const Shape& shape, const Strings& strings) {
    for (const bool constant : {false, true}) {
        test.constant.assign(test.inputs.size(), constant);
        for (const Kernels kernels : all_kernels) {
            INFO(test.op_type << ", kernels " << static_cast<int>(kernels) << ", constant " << constant);
            const Tensor output = run_operator(test, kernels).at(0);
            CHECK(output.type() == DataType::string);
            CHECK(output.shape() == shape);
            CHECK(strings_of(output.view()) == strings);
        }
    }
}

}  // namespace

TEST_CASE("Cast to string writes the shortest text that is read as the same number") {
    const float infinite = std::numeric_limits<float>::infinity();
    const Tensor floats = reals({0.1F, -1.5F, 0, 100, 1e30F, infinite, -infinite, NAN, -1.17549435e-38F});
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        const Tensor output = run_operator(string_cast(floats, string_code), kernels).at(0);
        CHECK(strings_of(output.view()) ==
              Strings{"0.1", "-1.5", "0", "100", "1e+30", "INF", "-INF", "NaN", "-1.1754944e-38"});
    }
    check_strings(string_cast(integers({0, -9223372036854775807}), string_code), {2},
                  {"0", "-9223372036854775807"});
    check_strings(string_cast(booleans({2}, {true, false}), string_code), {2}, {"1", "0"});
    check_strings(string_cast(string_tensor({"", std::string(50, 'x')}), string_code), {2},
                  {"", std::string(50, 'x')});
    const Tensor images = counting<std::uint8_t>({1, 2, 2, 2});
    check_strings(string_cast(images, string_code), {1, 2, 2, 2}, {"0", "1", "2", "3", "4", "5", "6", "7"});
}

TEST_CASE("Cast from string reads plain and scientific numbers and the special ones in any case") {
    const Tensor texts = string_tensor({"1.5", "+2", "-1e-3", " 1E8 ", "+INF", "-inf", "Inf", "1e39", "1e-60",
                                        "0.00000000000000000000000000000000000000000000000000125e51"});
    const double infinite = std::numeric_limits<double>::infinity();
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        const Tensor output = run_operator(string_cast(texts, float_code), kernels).at(0);
        CHECK(numbers_of(output.view()) ==
              std::vector<double>{1.5, 2, -1e-3F, 1e8, infinite, -infinite, infinite, infinite, 0, 1.25});
    }
    const Tensor nan = string_tensor({"NaN", "nan"});
    for (const double number :
         numbers_of(run_operator(string_cast(nan, float_code), Kernels::fast).at(0).view())) {
        CHECK(std::isnan(number));
    }
    const Tensor whole = string_tensor({"9223372036854775807", "-12", "100.5", "1e3"});
    const Tensor numbers = run_operator(string_cast(whole, int64_code), Kernels::fast).at(0);
    CHECK(std::ranges::equal(numbers.view().as<std::int64_t>(),
                             std::vector<std::int64_t>{9223372036854775807, -12, 100, 1000}));
    check_values(string_cast(string_tensor({"0", "1", "-0.0", "7"}), bool_code), {4}, {0, 1, 0, 1});
}

TEST_CASE("Cast refuses text that is no number, with the node and the text") {
    for (const std::string text : {"Hello", "", "1,5", "0x10", "1e999", "++1", "+-1", "1 2", "tru\n"}) {
        CAPTURE(text);
        check_refused(string_cast(string_tensor({"1", text}), float_code), "expected the text of a number");
    }
    check_refused(string_cast(string_tensor({"Hello"}), int64_code),
                  "Cast 'node' (tensor 'output0'): expected the text of a number, found 'Hello'");
}

TEST_CASE("strings go through what only changes shapes, and what reads elements refuses them") {
    const Strings strings{"a", std::string(60, 'b'), "c"};
    OperatorCase identity{.op_type = "Identity"};
    identity.inputs = {string_tensor(strings)};
    check_strings(identity, {3}, strings);
    OperatorCase reshape{.op_type = "Reshape"};
    reshape.inputs = {string_tensor(strings), integers({1, 3})};
    check_strings(reshape, {1, 3}, strings);
    OperatorCase shape{.op_type = "Shape"};
    shape.inputs = {string_tensor(strings)};
    check_values(shape, {1}, {3});
    OperatorCase constant{.op_type = "Constant"};
    constant.attributes["value_strings"] = strings;
    check_strings(constant, {3}, strings);
    constant.attributes = {{"value_string", strings[1]}};
    check_strings(constant, {}, {strings[1]});
    OperatorCase concat{.op_type = "Concat"};
    concat.attributes["axis"] = std::int64_t{0};
    concat.inputs = {string_tensor(strings), string_tensor(strings)};
    check_refused(concat, "Concat 'node': expected tensors of numbers, found an input of type string");
    concat.constant = {true, true};
    check_refused(concat, "expected tensors of numbers, found an input of type string");
}

TEST_CASE("sequences and optional values go through Identity with what they hold") {
    const Tensor sequence = Tensor::of_tensors(DataType::sequence, {reals({1, 2}), integers({3})});
    for (const DataType kind : {DataType::sequence, DataType::optional}) {
        OperatorCase identity{.op_type = "Identity"};
        identity.inputs = {kind == DataType::sequence ? sequence : Tensor::of_tensors(kind, {sequence})};
        for (const Kernels kernels : all_kernels) {
            const Tensor output = run_operator(identity, kernels).at(0);
            REQUIRE(output.type() == kind);
            const Tensor& held =
                kind == DataType::sequence ? output : *output.view().as<TensorElement>().front();
            REQUIRE(held.shape() == Shape{2});
            CHECK(numbers_of(held.view().as<TensorElement>()[0]->view()) == std::vector<double>{1, 2});
            CHECK(numbers_of(held.view().as<TensorElement>()[1]->view()) == std::vector<double>{3});
        }
        identity.inputs = {Tensor::of_tensors(kind, {})};
        CHECK(run_operator(identity, Kernels::fast).at(0).shape() == Shape{0});
        OperatorCase relu{.op_type = "Relu"};
        relu.inputs = {sequence};
        check_refused(relu, "expected tensors of numbers, found an input of type sequence");
    }
}

TEST_CASE("a shape that is read from strings is that of each sample's strings") {
    auto graph = std::make_shared<Graph>();
    for (const char* name : {"data", "texts", "shape", "y"}) {
        graph->index[name] = static_cast<ValueId>(graph->values.size());
        graph->values.emplace_back().name = name;
    }
    graph->values[0].declared_type = DataType::float32;
    graph->values[1].declared_type = DataType::string;
    graph->inputs = {0, 1};
    graph->outputs = {3};
    Node cast;
    cast.op_type = "Cast";
    cast.opset = 13;
    cast.attributes["to"] = int64_code;
    cast.inputs = {1};
    cast.outputs = {2};
    Node reshape;
    reshape.op_type = "Reshape";
    reshape.opset = 13;
    reshape.inputs = {0, 2};
    reshape.outputs = {3};
    graph->nodes = {cast, reshape};
    graph->values[2].producer = 0;
    graph->values[3].producer = 1;
    for (const Strings& texts : {Strings{"2", "3"}, {"3", "2"}, {"0000000000000000000000000000001", "6"}}) {
        const Tensor y = run_graph(graph, {counting({6}), string_tensor(texts)}, Kernels::fast).at("y");
        CHECK(y.shape() == Shape{std::stoll(texts[0]), std::stoll(texts[1])});
        CHECK(numbers_of(y.view()) == std::vector<double>{0, 1, 2, 3, 4, 5});
    }
    Program program(graph, builtin_kernels(), {}, {});
    Frame frame;
    Strings texts{"0000000000000000000000000000002", "3"};
    for (const char* rows : {"2", "3", "6"}) {  // long strings at one place: what they say counts
        texts[0].back() = *rows;
        texts[1] = std::to_string(6 / std::stoi(rows));
        const std::vector<Tensor> inputs{counting({6}), string_tensor(texts)};
        CHECK_NOTHROW(frame.run(program.plan(inputs), inputs, 0));
    }
}

}  // namespace qcalib::test
