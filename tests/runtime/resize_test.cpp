#include "runtime/movement_cases.h"

namespace qcalib::test {

namespace {

struct ResizeForm {
    std::string mode = "nearest";
    std::string coordinates = "half_pixel";
    std::string nearest = "round_prefer_floor";
};

OperatorCase resize(Tensor input, std::vector<float> scales, std::vector<std::int64_t> sizes,
                    const ResizeForm& form) {
    OperatorCase test{.op_type = "Resize", .opset = 13, .constant = {false, true, true, true}};
    test.attributes["mode"] = form.mode;
    test.attributes["coordinate_transformation_mode"] = form.coordinates;
    test.attributes["nearest_mode"] = form.nearest;
    test.inputs = {std::move(input), reals({}), reals(std::move(scales))};
    if (!sizes.empty()) test.inputs.emplace_back(integers(std::move(sizes)));
    return test;
}

const std::vector<std::string> coordinate_modes{"half_pixel", "pytorch_half_pixel",   "align_corners",
                                                "asymmetric", "tf_half_pixel_for_nn", "half_pixel_symmetric"};

}  // namespace

TEST_CASE("Resize repeats and drops nearest elements") {
    check_values(resize(counting({1, 1, 2, 2}), {1, 1, 2, 3}, {}, {}), {1, 1, 4, 6},
                 {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 2, 2, 2, 3, 3, 3});
    const ResizeForm asymmetric{"nearest", "asymmetric", "floor"};
    check_values(resize(counting({5}), {0.6F}, {}, asymmetric), {3}, {0, 1, 3});
    check_values(resize(counting<std::int64_t>({5}), {}, {3}, asymmetric), {3}, {0, 1, 3});
    check_values(resize(counting<std::uint8_t>({1, 2, 1, 2}), {}, {1, 2, 1, 4}, asymmetric), {1, 2, 1, 4},
                 {0, 0, 1, 1, 2, 2, 3, 3});
    check_values(resize(counting({2, 0}), {}, {4, 0}, asymmetric), {4, 0}, {});
    // 4 / (8 / 6) is 3 in float32 arithmetic, just below 3 otherwise: the place where float32's 8/6 decides.
    check_values(resize(counting({6}), {}, {8}, asymmetric), {8}, {0, 0, 1, 2, 3, 3, 4, 5});
}

TEST_CASE("Resize chooses nearest elements by its nearest mode where a place lies in the middle") {
    const auto rounded = [](const std::string& mode, const std::vector<double>& expected) {
        check_values(resize(counting({3}), {}, {6}, {"nearest", "asymmetric", mode}), {6}, expected);
    };
    rounded("round_prefer_floor", {0, 0, 1, 1, 2, 2});
    rounded("round_prefer_ceil", {0, 1, 1, 2, 2, 2});
    rounded("floor", {0, 0, 1, 1, 2, 2});
    rounded("ceil", {0, 1, 1, 2, 2, 2});
}

TEST_CASE("Resize blends linearly between neighbours and holds to the edges") {
    check_values(resize(reals({0, 4}), {2}, {}, {"linear", "half_pixel"}), {4}, {0, 1, 3, 4});
    check_values(resize(reals({0, 8}), {}, {5}, {"linear", "align_corners"}), {5}, {0, 2, 4, 6, 8});
    check_values(resize(reals({0, 4}), {2}, {}, {"linear", "asymmetric"}), {4}, {0, 2, 4, 4});
    check_values(resize(counting({1, 1, 2, 2}), {1, 1, 2, 1}, {}, {"linear", "asymmetric"}), {1, 1, 4, 2},
                 {0, 1, 1, 2, 2, 3, 2, 3});
    check_values(resize(counting<std::uint8_t>({2}), {2}, {}, {"linear", "half_pixel"}), {4}, {0, 0, 0, 1});
}

TEST_CASE("Resize crops to its roi and puts the extrapolation value outside the source") {
    OperatorCase test = resize(counting({1, 1, 4, 4}), {}, {1, 1, 3, 3}, {"linear", "tf_crop_and_resize"});
    test.inputs[1] = reals({0, 0, 0.5F, 0.5F, 1, 1, 1.5F, 1});
    test.attributes["extrapolation_value"] = 10.0F;
    const std::vector<double> expected{7.5, 8.25, 9, 13.5, 14.25, 15, 10, 10, 10};
    check_values(test, {1, 1, 3, 3}, expected);
    test.attributes["mode"] = std::string("nearest");
    check_values(test, {1, 1, 3, 3}, {5, 6, 7, 13, 14, 15, 10, 10, 10});
    test.inputs[1] = reals({});
    check_refused(test, "expected a roi for tf_crop_and_resize");
}

TEST_CASE("Resize agrees with the reference in all modes, ranks and memory orders") {
    for (const std::string& coordinates : coordinate_modes) {
        for (const char* mode : {"nearest", "linear", "cubic"}) {
            CAPTURE(coordinates);
            CAPTURE(mode);
            const ResizeForm form{mode, coordinates, "round_prefer_ceil"};
            check_all_kernels_agree(resize(random_tensor({7}, 1), {1.7F}, {}, form));
            check_all_kernels_agree(resize(random_tensor({2, 3, 7}, 1), {1, 1, 2.5F}, {}, form));
            check_all_kernels_agree(resize(random_tensor({2, 3, 5, 7}, 2), {1, 1, 2, 2}, {}, form));
            check_all_kernels_agree(resize(random_tensor({2, 3, 5, 7}, 3), {}, {2, 3, 4, 9}, form));
            check_all_kernels_agree(resize(random_tensor({2, 3, 5, 7}, 3), {}, {2, 3, 11, 7}, form));
            check_all_kernels_agree(resize(random_tensor({1, 4, 3, 5}, 4), {2, 0.5F, 1, 1.5F}, {}, form));
            check_all_kernels_agree(resize(random_tensor({1, 2, 3, 4, 5}, 5), {}, {1, 2, 5, 3, 7}, form));
        }
    }
}

TEST_CASE("Resize blends cubically with its coefficient, outside taps left out or held to the edge") {
    for (const std::int64_t exclude : {0, 1}) {
        for (const float coefficient : {-0.75F, -0.5F}) {
            OperatorCase test = resize(random_tensor({1, 3, 6, 5}, 6), {1, 1, 1.5F, 0.7F}, {}, {"cubic"});
            test.attributes["exclude_outside"] = exclude;
            test.attributes["cubic_coeff_a"] = coefficient;
            check_all_kernels_agree(test);
            // The weights add up to 1: what is constant stays so.
            test.inputs[0] = random_tensor({1, 3, 6, 5}, 6, 2, 2);
            for (const Kernels kernels : all_kernels) {
                for (const double value : numbers_of(run_operator(test, kernels)[0].view())) {
                    CHECK(value == doctest::Approx(2).epsilon(1e-6));
                }
            }
        }
    }
}

TEST_CASE("Resize of opset 18 takes some axes and keeps an aspect ratio") {
    OperatorCase test = resize(counting({1, 1, 2, 4}), {}, {7, 8}, {"nearest", "asymmetric", "floor"});
    test.opset = 18;
    test.attributes["axes"] = std::vector<std::int64_t>{2, 3};
    test.attributes["keep_aspect_ratio_policy"] = std::string("not_larger");
    CHECK(run_operator(test, Kernels::fast)[0].shape() == Shape{1, 1, 4, 8});
    test.attributes["keep_aspect_ratio_policy"] = std::string("not_smaller");
    CHECK(run_operator(test, Kernels::fast)[0].shape() == Shape{1, 1, 7, 14});
    check_all_kernels_agree(test);
}

TEST_CASE("Resize of opset 10 and Upsample scale without centring") {
    OperatorCase test{.op_type = "Resize", .opset = 10, .constant = {false, true}};
    test.inputs = {counting({5}), reals({0.6F})};
    check_values(test, {3}, {0, 2, 4});  // what shrinks takes the element above
    test.inputs = {counting({2}), reals({2})};
    check_values(test, {4}, {0, 0, 1, 1});
    OperatorCase upsample{.op_type = "Upsample", .opset = 7};
    upsample.inputs = {counting({1, 1, 1, 2})};
    upsample.attributes["scales"] = std::vector<float>{1, 1, 2, 2};
    check_values(upsample, {1, 1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1});
    upsample.opset = 9;
    upsample.attributes = {{"mode", std::string("linear")}};
    upsample.inputs = {random_tensor({1, 3, 4, 5}, 1), reals({1, 1, 2, 3})};
    upsample.constant = {false, true};
    check_all_kernels_agree(upsample);
}

TEST_CASE("Resize refuses what it cannot do") {
    check_refused(resize(counting({2}), {}, {}, {}), "expected scales or sizes, found neither");
    check_refused(resize(counting({2}), {2}, {4}, {}), "expected scales or sizes, found both");
    check_refused(resize(counting({2}), {-1}, {}, {}), "expected scales above 0");
    check_refused(resize(counting({2, 2}), {2}, {}, {}), "expected 2 scales for 2 axes, found 1");
    check_refused(resize(counting({2}), {2}, {}, {"linaer"}), "did you mean 'linear'?");
    OperatorCase test = resize(counting({4}), {0.5F}, {}, {"linear"});
    test.opset = 18;
    test.attributes["antialias"] = std::int64_t{1};
    check_refused(test, "antialias is not supported");
}

}  // namespace qcalib::test
