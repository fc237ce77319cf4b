#include "runtime/movement_cases.h"

namespace qcalib::test {

namespace {

OperatorCase pad(Shape shape, std::vector<std::int64_t> pads, const std::string& mode) {
    OperatorCase test{.op_type = "Pad"};
    test.attributes["mode"] = mode;
    test.inputs = {counting(std::move(shape)), integers(std::move(pads))};
    return test;
}

}  // namespace

TEST_CASE("Pad fills its border by mode") {
    check_values(pad({3}, {2, 1}, "constant"), {6}, {0, 0, 0, 1, 2, 0});
    check_values(pad({3}, {2, 1}, "edge"), {6}, {0, 0, 0, 1, 2, 2});
    check_values(pad({3}, {2, 2}, "reflect"), {7}, {2, 1, 0, 1, 2, 1, 0});
    check_values(pad({3}, {4, 3}, "wrap"), {10}, {2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
    check_values(pad({1}, {1, 1}, "reflect"), {3}, {0, 0, 0});
    check_values(pad({2, 2}, {1, 0, 0, 1}, "edge"), {3, 3}, {0, 1, 1, 0, 1, 1, 2, 3, 3});
}

TEST_CASE("Pad takes elements away where a pad is negative") {
    check_values(pad({5}, {-1, -2}, "constant"), {2}, {1, 2});
    check_values(pad({5}, {-2, 1}, "constant"), {4}, {2, 3, 4, 0});
    check_values(pad({5}, {-2, 2}, "reflect"), {5}, {2, 3, 4, 3, 2});
    check_refused(pad({3}, {-2, -2}, "constant"), "cannot pad a dimension of 3 by -2 and -2");
}

TEST_CASE("Pad takes its value from an input, or an attribute before opset 11") {
    OperatorCase test = pad({2}, {1, 1}, "constant");
    const float seven = 7;
    test.inputs.emplace_back(Tensor::of<float>({}, std::span(&seven, 1)));
    check_values(test, {4}, {7, 0, 1, 7});
    OperatorCase whole{.op_type = "Pad"};
    whole.inputs = {counting<std::int64_t>({2}), integers({0, 2}), integers({-4})};
    check_values(whole, {4}, {0, 1, -4, -4});
    whole.inputs[2] = reals({1});
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
        CHECK_THROWS_WITH_AS(run_operator(whole, kernels),
                             doctest::Contains("expected a padding value of one int64"), Error);
    }
    OperatorCase old{.op_type = "Pad", .opset = 10};
    old.inputs = {counting({1, 2})};
    old.attributes["pads"] = std::vector<std::int64_t>{0, 1, 1, 0};
    old.attributes["value"] = 3.0F;
    check_values(old, {2, 3}, {3, 0, 1, 3, 3, 3});
}

TEST_CASE("Pad of opset 18 may name its axes") {
    OperatorCase test{.op_type = "Pad", .opset = 18};
    test.inputs = {counting({2, 2}), integers({1, 0}), std::nullopt, integers({-1})};
    check_values(test, {2, 3}, {0, 0, 1, 0, 2, 3});
}

TEST_CASE("Pad agrees with the reference in all modes and memory orders") {
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
        CAPTURE(mode);
        check_all_kernels_agree(pad({2, 3, 4}, {0, 1, 2, 1, 0, 3}, mode));
        check_all_kernels_agree(pad({2, 3, 8, 9}, {0, 0, 3, 1, 0, 0, 2, 4}, mode));
        check_all_kernels_agree(pad({2, 3, 4, 5}, {1, 2, -1, 3, 0, 1, 2, -2}, mode));
        check_all_kernels_agree(pad({2, 3, 4, 3, 2}, {0, 0, 1, 1, 1, 0, 2, 1, 1, 1}, mode));
    }
}

TEST_CASE("Pad refuses unknown modes and wrong numbers of pads") {
    check_refused(pad({3}, {1, 1}, "reflct"), "did you mean 'reflect'?");
    check_refused(pad({3}, {1}, "edge"), "expected 2 pads for 1 axes, found 1");
    check_refused(pad({0}, {1, 1}, "edge"), "cannot pad an empty dimension");
}

}  // namespace qcalib::test
