#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/allocation_counter.h"
#include "runtime/frame.h"
#include "runtime/kernels/recurrent_rows.h"
#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

struct Sizes {
    std::int64_t steps = 5;
    std::int64_t batch = 3;
    std::int64_t inputs = 7;
    std::int64_t hidden = 21;
};

std::int64_t gates_of(const std::string& op_type) {
    return op_type == "LSTM" ? 4 : op_type == "GRU" ? 3 : 1;
}

// A node with X, W, R and B, its weights constants, and all its outputs.
OperatorCase layer(const std::string& op_type, const Sizes& sizes, const std::string& direction = "forward",
                   bool batch_first = false) {
    const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
    const std::int64_t rows = gates_of(op_type) * sizes.hidden;
    OperatorCase test{.op_type = op_type, .opset = batch_first ? 14 : 7};
    test.attributes["direction"] = direction;
    test.attributes["hidden_size"] = sizes.hidden;
    if (batch_first) test.attributes["layout"] = std::int64_t{1};
    const Shape x = batch_first ? Shape{sizes.batch, sizes.steps, sizes.inputs}
                                : Shape{sizes.steps, sizes.batch, sizes.inputs};
    test.inputs = {random_tensor(x, 1, -2, 2), random_tensor({directions, rows, sizes.inputs}, 2),
                   random_tensor({directions, rows, sizes.hidden}, 3, -0.5, 0.5),
                   random_tensor({directions, 2 * rows}, 4)};
    test.constant = {false, true, true, true};
    test.outputs = op_type == "LSTM" ? 3 : 2;
    return test;
}

void add_states(OperatorCase& test, const Sizes& sizes, std::int64_t directions, bool batch_first = false) {
    const Shape shape = batch_first ? Shape{sizes.batch, directions, sizes.hidden}
                                    : Shape{directions, sizes.batch, sizes.hidden};
    test.inputs.resize(5);
    test.inputs.emplace_back(random_tensor(shape, 5));
    if (test.op_type == "LSTM") test.inputs.emplace_back(random_tensor(shape, 6));
}

void add_lengths(OperatorCase& test, const std::vector<std::int32_t>& lengths) {
    test.inputs.resize(std::max<std::size_t>(5, test.inputs.size()));
    const auto count = static_cast<std::int64_t>(lengths.size());
    test.inputs[4] = Tensor::of<std::int32_t>({count}, std::span(lengths));
}

const std::vector<std::string> cells{"RNN", "GRU", "LSTM"};

std::vector<float> floats(const Tensor& tensor) {
    const auto values = tensor.view().as<float>();
    return {values.begin(), values.end()};
}

// How often the second and third run of a node allocate.
std::size_t allocations_in_steady_state(const OperatorCase& test) {
    auto graph = std::make_shared<Graph>();
    Node node;
    node.op_type = test.op_type;
    node.opset = test.opset;
    node.attributes = test.attributes;
    std::vector<Tensor> inputs;
    const auto add_value = [&](const std::string& name) {
        graph->values.emplace_back().name = name;
        return static_cast<ValueId>(graph->values.size() - 1);
    };
    for (std::size_t i = 0; i < test.inputs.size(); ++i) {
        const ValueId value = add_value("input" + std::to_string(i));
        graph->values[value].declared_type = DataType::float32;
        node.inputs.push_back(value);
        if (i < test.constant.size() && test.constant[i]) {
            graph->values[value].initializer = *test.inputs[i];
        } else {
            graph->inputs.push_back(value);
            inputs.push_back(*test.inputs[i]);
        }
    }
    const ValueId output = add_value("output");
    graph->values[output].producer = 0;
    node.outputs.push_back(output);
    graph->outputs.push_back(output);
    graph->nodes.push_back(node);
    Program program(graph, builtin_kernels(), {});
    const auto plan = program.plan(inputs);
    Frame frame;
    frame.run(plan, inputs, 0);
    return allocations_during([&] {
        for (std::uint64_t sample = 1; sample < 3; ++sample) frame.run(plan, inputs, sample);
    });
}

}  // namespace

TEST_CASE("recurrent layers of any size agree, with constant weights and with others") {
    for (const std::string& cell : cells) {
        for (const Sizes& sizes : {Sizes{1, 1, 1, 1}, Sizes{6, 1, 33, 96}, Sizes{2, 2, 5, 64},
                                   Sizes{3, 7, 4, 17}, Sizes{2, 13, 65, 70}}) {
            OperatorCase test = layer(cell, sizes);
            check_all_kernels_agree(test);
            test.constant.clear();
            check_all_kernels_agree(test);
        }
    }
}

TEST_CASE("recurrent layers run forward, in reverse and in both directions, in both layouts, with states") {
    const Sizes sizes;
    for (const std::string& cell : cells) {
        for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
            for (const bool batch_first : {false, true}) {
                OperatorCase test = layer(cell, sizes, direction, batch_first);
                check_all_kernels_agree(test);
                add_states(test, sizes, direction == "bidirectional" ? 2 : 1, batch_first);
                check_all_kernels_agree(test);
                add_lengths(test, {3, 5, 1});
                check_all_kernels_agree(test);
            }
        }
    }
}

TEST_CASE("a GRU can multiply by the reset gate after the product") {
    const Sizes sizes;
    for (const std::string direction : {"forward", "bidirectional"}) {
        OperatorCase test = layer("GRU", sizes, direction);
        test.attributes["linear_before_reset"] = std::int64_t{1};
        add_states(test, sizes, direction == "forward" ? 1 : 2);
        check_all_kernels_agree(test);
        const std::vector<Tensor> after = run_operator(test, Kernels::fast);
        test.attributes["linear_before_reset"] = std::int64_t{0};
        CHECK(floats(after[0]) != floats(run_operator(test, Kernels::fast)[0]));
        test.attributes["linear_before_reset"] = std::int64_t{1};
        test.inputs[3] = std::nullopt;
        check_all_kernels_agree(test);
    }
}

TEST_CASE("an LSTM takes peepholes, couples its gates and clips") {
    const Sizes sizes;
    for (const std::string direction : {"reverse", "bidirectional"}) {
        const std::int64_t directions = direction == "reverse" ? 1 : 2;
        for (const bool coupled : {false, true}) {
            for (const bool clipped : {false, true}) {
                OperatorCase test = layer("LSTM", sizes, direction);
                if (coupled) test.attributes["input_forget"] = std::int64_t{1};
                if (clipped) test.attributes["clip"] = 0.4F;
                check_all_kernels_agree(test);
                add_states(test, sizes, directions);
                test.inputs.emplace_back(random_tensor({directions, 3 * sizes.hidden}, 8));
                check_all_kernels_agree(test);
            }
        }
    }
}

TEST_CASE("the inputs of the default activations are clipped") {
    const Sizes sizes;
    for (const std::string& cell : cells) {
        OperatorCase test = layer(cell, sizes);
        const std::vector<float> free = floats(run_operator(test, Kernels::fast)[0]);
        test.attributes["clip"] = 0.3F;
        check_all_kernels_agree(test);
        CHECK(free != floats(run_operator(test, Kernels::fast)[0]));
    }
}

TEST_CASE("every activation of the operators' list can be named") {
    for (const std::string name : {"Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu",
                                   "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus", "tanh"}) {
        for (const std::string& cell : cells) {
            INFO(cell << " with " << name);
            OperatorCase test = layer(cell, {3, 2, 4, 19});
            std::vector<std::string> activations{name};
            if (cell != "RNN") activations = {"Sigmoid", name};
            if (cell == "LSTM") activations.push_back(name);
            test.attributes["activations"] = activations;
            const bool takes_both = name == "ScaledTanh" || name == "Affine";
            if (takes_both) {
                const std::size_t count = cell == "LSTM" ? 2 : 1;
                test.attributes["activation_alpha"] = std::vector<float>(count, 0.7F);
                test.attributes["activation_beta"] = std::vector<float>(count, 0.2F);
            }
            check_all_kernels_agree(test);
        }
    }
}

TEST_CASE("activation_alpha and activation_beta are used up by the functions that take them, in order") {
    OperatorCase test = layer("GRU", {1, 1, 1, 1}, "bidirectional");
    test.attributes["activations"] = std::vector<std::string>{"Affine", "LeakyRelu", "Sigmoid", "Affine"};
    test.attributes["activation_alpha"] = std::vector<float>{0.0F, 0.5F, 0.0F};
    test.attributes["activation_beta"] = std::vector<float>{0.25F, -3.0F};
    test.inputs[0] = Tensor::of<float>({1, 1, 1}, std::vector<float>{-1});
    test.inputs[1] = Tensor::of<float>({2, 3, 1}, std::vector<float>{0, 0, 4, 0, 0, 0});
    test.inputs[3] = std::nullopt;
    check_all_kernels_agree(test);
    // forward: z = 0.25, candidate LeakyRelu(-4) = -2; reverse: z = 0.5, candidate 0 x - 3
    const std::vector<Tensor> outputs = run_operator(test, Kernels::fast);
    CHECK(floats(outputs[1])[0] == doctest::Approx(0.75 * -2));
    CHECK(floats(outputs[1])[1] == doctest::Approx(0.5 * -3));
}

TEST_CASE("a sequence that ends early leaves zeros behind and its last state, one of no steps its first") {
    for (const std::string& cell : cells) {
        const Sizes sizes{4, 2, 3, 5};
        OperatorCase test = layer(cell, sizes, "reverse");
        add_states(test, sizes, 1);
        add_lengths(test, {2, 0});
        check_all_kernels_agree(test);
        for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
            const std::vector<Tensor> outputs = run_operator(test, kernels);
            const std::vector<float> y = floats(outputs[0]);
            const std::vector<float> last = floats(outputs[1]);
            for (std::int64_t j = 0; j < sizes.hidden; ++j) {
                CHECK(y[j] == last[j]);  // in reverse the first step is the last
                CHECK(y[(3 * 2 + 0) * sizes.hidden + j] == 0);
                CHECK(y[1 * sizes.hidden + j] == 0);
                CHECK(last[sizes.hidden + j] == floats(*test.inputs[5])[sizes.hidden + j]);
            }
        }
    }
}

TEST_CASE("outputs of recurrent layers may be left out, and there may be nothing to do") {
    for (const std::string& cell : cells) {
        OperatorCase test = layer(cell, {});
        const std::vector<float> all = floats(run_operator(test, Kernels::fast)[0]);
        test.outputs = 1;
        CHECK(floats(run_operator(test, Kernels::fast)[0]) == all);
        for (const Sizes& sizes : {Sizes{0, 2, 3, 4}, Sizes{2, 0, 3, 4}, Sizes{2, 2, 0, 4}}) {
            OperatorCase empty = layer(cell, sizes);
            add_states(empty, sizes, 1);
            check_all_kernels_agree(empty);
        }
    }
}

TEST_CASE("weights of two directions and layers are packed apart in one model") {
    // Two nodes that share R but not its directions' order would show in the values if one took the other's.
    for (const std::string& cell : cells) {
        OperatorCase both = layer(cell, {}, "bidirectional");
        const std::vector<float> y = floats(run_operator(both, Kernels::fast)[1]);
        OperatorCase reverse = layer(cell, {}, "reverse");
        const Sizes sizes;
        const auto half = [](const Tensor& tensor, Shape shape) {
            const std::vector<float> values = floats(tensor);
            return Tensor::of<float>(std::move(shape), std::span(values).subspan(values.size() / 2));
        };
        const std::int64_t rows = gates_of(cell) * sizes.hidden;
        reverse.inputs[1] = half(*both.inputs[1], {1, rows, sizes.inputs});
        reverse.inputs[2] = half(*both.inputs[2], {1, rows, sizes.hidden});
        reverse.inputs[3] = half(*both.inputs[3], {1, 2 * rows});
        const std::vector<float> alone = floats(run_operator(reverse, Kernels::fast)[1]);
        for (std::size_t i = 0; i < alone.size(); ++i) {
            CHECK(y[alone.size() + i] == doctest::Approx(alone[i]).epsilon(1e-5));
        }
    }
}

TEST_CASE("a product with panels gives the sums of each row for any number of rows and columns") {
    const RecurrentFunctions functions = fast_recurrent();
    for (const std::size_t rows : {1U, 2U, 3U, 5U, 6U, 7U, 13U}) {
        for (const auto& [inner, columns] : {std::pair{1U, 1U}, std::pair{5U, 15U}, std::pair{9U, 64U},
                                             std::pair{4U, 67U}, std::pair{33U, 130U}}) {
            const auto signed_rows = static_cast<std::int64_t>(rows);
            const std::vector<float> a = floats(random_tensor({signed_rows, inner}, 1));
            const std::vector<float> b = floats(random_tensor({columns, inner}, 2));
            const std::vector<float> start = floats(random_tensor({signed_rows, columns}, 3));
            std::vector<float> panels(panel_floats(inner, columns, functions.panel_columns));
            pack_panels(reinterpret_cast<const std::byte*>(b.data()), inner, columns, functions.panel_columns,
                        panels.data());
            std::vector<float> y(rows * columns + 1, 77.0F);
            functions.multiply_add({a.data(), inner}, {panels.data(), inner, columns},
                                   {start.data(), columns}, rows, y.data(), columns);
            CHECK(y.back() == 77.0F);
            for (std::size_t i = 0; i < rows; ++i) {
                for (std::size_t j = 0; j < columns; ++j) {
                    double sum = start[i * columns + j];
                    for (std::size_t k = 0; k < inner; ++k)
                        sum += double{a[i * inner + k]} * b[j * inner + k];
                    CHECK(y[i * columns + j] == doctest::Approx(sum).epsilon(1e-5));
                }
            }
        }
    }
}

TEST_CASE("recurrent layers allocate nothing while they run") {
    const Sizes sizes;
    for (const std::string& cell : cells) {
        for (const bool plain : {true, false}) {
            INFO(cell << ", defaults and constant weights: " << plain);
            OperatorCase test = layer(cell, sizes, "bidirectional");
            if (!plain) {
                const std::vector<std::string> one{"HardSigmoid", "ScaledTanh", "Softsign"};
                const std::size_t each = cell == "LSTM" ? 3 : cell == "GRU" ? 2 : 1;
                std::vector<std::string> names;
                for (std::size_t i = 0; i < 2 * each; ++i) names.push_back(one[i % each]);
                test.attributes["activations"] = names;
                if (cell != "RNN") {
                    test.attributes["activation_alpha"] = std::vector<float>{0.2F, 0.9F, 0.2F, 0.9F};
                    test.attributes["activation_beta"] = std::vector<float>{0.5F, 0.9F, 0.5F, 0.9F};
                }
                test.constant.clear();
            }
            CHECK(allocations_in_steady_state(test) == 0);
        }
    }
}

TEST_CASE("recurrent layers refuse what does not fit, naming it") {
    const auto refused = [](const std::string& cell, const auto& change, const std::string& part) {
        OperatorCase test = layer(cell, {});
        change(test);
        check_refused(test, part);
    };
    refused(
        "LSTM",
        [](OperatorCase& t) {
            t.inputs[1] = random_tensor({1, 80, 7}, 1);
        },
        "expected float32 [1,84,7] as input W, found float32 [1,80,7]");
    refused(
        "GRU",
        [](OperatorCase& t) {
            t.inputs[3] = random_tensor({1, 63}, 1);
        },
        "expected float32 [1,126] as input B, found float32 [1,63]");
    refused(
        "RNN",
        [](OperatorCase& t) {
            t.inputs[2] = random_tensor({21, 21}, 1);
        },
        "3 dimensions");
    refused(
        "RNN", [](OperatorCase& t) { t.inputs[0].reset(); }, "inputs X, W and R should be there");
    refused(
        "RNN", [](OperatorCase& t) { t.attributes["hidden_size"] = std::int64_t{20}; },
        "attribute 'hidden_size' is 20");
    refused(
        "RNN", [](OperatorCase& t) { t.attributes["direction"] = std::string("revers"); },
        "did you mean 'reverse'");
    refused(
        "GRU", [](OperatorCase& t) { t.attributes["layout"] = std::int64_t{2}; },
        "should be 0 or 1, found 2");
    refused(
        "GRU", [](OperatorCase& t) { t.attributes["clip"] = 0.0F; }, "'clip' should be above 0");
    refused(
        "LSTM", [](OperatorCase& t) { t.attributes["activations"] = std::vector<std::string>{"Tanh"}; },
        "should name 3 functions, 3 for each direction, found 1");
    refused(
        "RNN", [](OperatorCase& t) { t.attributes["activations"] = std::vector<std::string>{"Sigmoit"}; },
        "did you mean 'Sigmoid'");
    refused(
        "RNN", [](OperatorCase& t) { t.attributes["activations"] = std::vector<std::string>{"ScaledTanh"}; },
        "activation ScaledTanh needs a number in attribute 'activation_alpha'");
    refused(
        "RNN", [](OperatorCase& t) { t.attributes["activation_alpha"] = std::vector<float>{1}; },
        "attribute 'activation_alpha' has 1 numbers, but the activations take 0");
    refused(
        "LSTM",
        [](OperatorCase& t) {
            add_lengths(t, {1, 2});
        },
        "expected int32 [3] as input sequence_lens");
    refused(
        "LSTM",
        [](OperatorCase& t) {
            add_lengths(t, {1, 2, 6});
        },
        "sequence_lens should be from 0 to the 5 steps of X, found 6 for sequence 2");
    refused(
        "GRU",
        [](OperatorCase& t) {
            add_lengths(t, {1, -1, 5});
        },
        "found -1 for sequence 1");
    refused(
        "LSTM",
        [](OperatorCase& t) {
            t.inputs.resize(6), t.inputs[5] = random_tensor({1, 3, 20}, 1);
        },
        "expected float32 [1,3,21] as input initial_h");
    refused(
        "GRU",
        [](OperatorCase& t) {
            t.inputs.resize(7), t.inputs[6] = random_tensor({1, 3, 21}, 1);
        },
        "expected at most 6 inputs and 2 outputs, found 7 and 2");
}
