// The scales that TIDL comes to, beside those of the ranges given.
#include "target/tidl_scales.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "assignment_fixture.h"

using namespace qcalib;
using test::AssignmentFixture;

namespace {

// x -> Conv(w, b) -> c -> Conv(v) -> y.
AssignmentFixture scaled_net(const std::string& target, float weight, float bias) {
    AssignmentFixture net;
    net.target = load_target(target);
    net.input("x");
    net.constant("w", {1, 1, 1, 1}, {weight});
    net.constant("b", {1}, {bias});
    net.constant("v", {1, 1, 1, 1}, {1});
    net.constant("big", {1}, {100});
    net.node("Conv", {"x", "w", "b"}, {"c"});
    net.node("Conv", {"c", "v"}, {"y"});
    net.graph.outputs = {net.value("y")};
    net.count("x", {-1, 1});
    net.count("c", {-1, 3});
    net.count("y", {-1, 3});
    return net;
}

const TidlScale& scale_of(const std::vector<TidlScale>& scales, std::size_t layer) {
    for (const TidlScale& scale : scales) {
        if (scale.layer == layer) return scale;
    }
    FAIL("no such layer");
    return scales.front();
}

std::vector<TidlScale> scales_of(AssignmentFixture& net) {
    const EncodingSet set = net.assign();
    const ConstantLookup constant = [&](ValueId value) -> const Tensor* {
        const auto found = net.constants.find(value);
        return found == net.constants.end() ? nullptr : &found->second;
    };
    const TidlTensors tensors(net.graph, constant, net.target);
    return tidl_scales(net.graph, constant, tensors, set, net.target);
}

}  // namespace

TEST_CASE("the example of TI's documentation: the output's scale is that of the sums divided by 256") {
    // Weights 14435.275390625, output 0 to 4.09663105 unsigned: 56.387794494628906, 231 codes of 255.
    CHECK(tidl_shift(4.09663105, 14435.275390625, 8, false) == 8);
    CHECK(14435.275390625 / 256 == 56.387794494628906);
}

TEST_CASE("a shift holds the greatest value; a symmetric power of two costs no bit") {
    CHECK(tidl_shift(4, 64, 8, false) == 0);
    CHECK(tidl_shift(4, 128, 8, false) == 1);
    CHECK(tidl_shift(4, 64, 8, true) == 1);
    CHECK(tidl_shift(4.001, 64, 8, true) == 2);
    CHECK(tidl_shift(1, 32768, 16, true) == 0);
    CHECK(tidl_shift(0.001, 1, 8, true) == 0);
}

TEST_CASE("powers of two lose nothing in a convolution") {
    AssignmentFixture net = scaled_net("tidl", 0.5F, 0);
    for (const TidlScale& scale : scales_of(net)) {
        CHECK(scale.used == scale.given);
        CHECK(scale.bits_lost() == 0);
        CHECK(scale.why.empty());
        CHECK(scale.guard_bits == 0);
    }
}

TEST_CASE("an inner product that ends in no Clip loses the bit that TIDL's margin of 1.25 costs") {
    AssignmentFixture net = scaled_net("tidl", 0.5F, 0);
    net.constant("m", {2, 2}, {1, 0, 0, 1});
    net.node("MatMul", {"y", "m"}, {"z"});
    net.graph.outputs = {net.value("z")};
    net.count("z", {-1, 3});
    const std::vector<TidlScale> scales = scales_of(net);
    CHECK(scale_of(scales, 3).given == 32);
    CHECK(scale_of(scales, 3).used == 16);
    CHECK(scale_of(scales, 3).bits_lost() == 1);
    CHECK(scale_of(scales, 3).why.find("1.25") != std::string::npos);
}

TEST_CASE("a bias too large for its layer caps the scale of the weights") {
    AssignmentFixture net = scaled_net("tidl-np2", 0.01F, 100);
    const std::vector<TidlScale> scales = scales_of(net);
    const TidlScale& scale = scale_of(scales, 1);
    REQUIRE(scale.weights);
    CHECK(*scale.weights == doctest::Approx(12800));
    REQUIRE(scale.weight_cap);
    CHECK(*scale.weight_cap == doctest::Approx(16384.0 / 100 / 128));  // 2^(2 * 8 - 1 - 1), signed input
    CHECK(std::any_of(net.remarks.begin(), net.remarks.end(), [](const std::string& remark) {
        return remark.starts_with("TIDL caps the scale of weights so that the layer's biases fit");
    }));
}

TEST_CASE("a range is halved as often as the biases of its readers ask for") {
    AssignmentFixture net = scaled_net("tidl", 0.5F, 0);
    net.graph.nodes[1].inputs.push_back(net.value("big"));
    const std::vector<TidlScale> scales = scales_of(net);
    // 32 * 128 (weights) * 100 / 128 = 3200, and 128 is the most for signed codes: 2^5 of it.
    CHECK(scale_of(scales, 1).guard_bits == 5);
    CHECK(scale_of(scales, 1).guarded == "TIDL_ConvolutionLayer of Conv 'n1'");
    CHECK(scale_of(scales, 1).used == scale_of(scales, 1).given);  // as accuracy_level 0 keeps it
}

TEST_CASE("weight clipping leaves weights alone unless the greatest is above 15 and 16 medians") {
    CHECK(!tidl_clipped_weights({1, 1, 1, 15}, 8));
    CHECK(!tidl_clipped_weights({2, 2, 2, 30}, 8));
    CHECK(tidl_clipped_weights({1, 1, 1, 17}, 8) == 15);  // 16 medians
    CHECK(tidl_clipped_weights({1.5, 1.5, 1.5, 100}, 8) == 31);
    CHECK(!tidl_clipped_weights({0, 0, 0, 100}, 8));
    CHECK(!tidl_clipped_weights({}, 8));
}
