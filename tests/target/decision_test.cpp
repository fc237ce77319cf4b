#include "target/decision.h"

#include <limits>

#include <doctest/doctest.h>

#include "assignment_fixture.h"

using namespace qcalib;
using test::AssignmentFixture;

namespace {

const Decision& decision_of(const AssignmentFixture& fixture, const std::string& tensor) {
    const auto found = std::find_if(fixture.decisions.begin(), fixture.decisions.end(),
                                    [&](const Decision& decision) { return decision.tensor == tensor; });
    REQUIRE(found != fixture.decisions.end());
    return *found;
}

// x -> Conv(w, b) -> c -> Mul(s) -> y, and a tensor without data.
AssignmentFixture network() {
    AssignmentFixture fixture;
    fixture.input("x");
    fixture.constant("w", {2, 1, 1, 1}, {-0.5F, 1.0F});
    fixture.constant("b", {2}, {0.1F, 0.2F});
    fixture.constant("s", {}, {4.0F});
    fixture.node("Conv", {"x", "w", "b"}, {"c"});
    fixture.node("Mul", {"c", "s"}, {"y"});
    fixture.node("Neg", {"x"}, {"empty"});
    fixture.count("x", {-1, 2});
    fixture.count("c", {-1.25F, 1.5F});
    fixture.count("y", {-5, 6});
    fixture.count("empty", {std::numeric_limits<float>::quiet_NaN()});
    return fixture;
}

}  // namespace

TEST_CASE("each encoding has a decision with method, range before the rules, and rules") {
    AssignmentFixture fixture = network();
    AssignmentOptions options;
    options.methods = {parse_method_rule("ema:momentum=0.5")};
    options.activation_bits = 16;
    const EncodingSet set = fixture.assign(options);
    const Decision& decision = decision_of(fixture, "c");
    CHECK(decision.kind == Decision::Kind::activation);
    CHECK(decision.method == "ema:group=1,momentum=0.5");
    CHECK(decision.ranges == std::vector<Range>{{-1.25, 1.5}});
    CHECK(decision.rules.bits == 16);
    CHECK(decision.no_encoding.empty());
    const Decision& operand = decision_of(fixture, "s");
    CHECK(operand.kind == Decision::Kind::constant);
    CHECK(operand.ranges == std::vector<Range>{{4, 4}});
    CHECK(decision_of(fixture, "w").kind == Decision::Kind::weight);
    const auto encoded =
        static_cast<std::size_t>(std::count_if(fixture.decisions.begin(), fixture.decisions.end(),
                                               [](const Decision& one) { return one.no_encoding.empty(); }));
    CHECK(encoded == set.activations.size() + set.parameters.size());
}

TEST_CASE("encoding the decision's ranges by its rules gives the encodings") {
    AssignmentFixture fixture = network();
    AssignmentOptions options;
    options.per_channel_weights = true;
    const EncodingSet set = fixture.assign(options);
    for (const auto* entries : {&set.activations, &set.parameters}) {
        for (const TensorEncoding& entry : *entries) {
            const Decision& decision = decision_of(fixture, entry.tensor);
            REQUIRE(decision.ranges.size() == entry.encodings.size());
            for (std::size_t i = 0; i < entry.encodings.size(); ++i) {
                CHECK(encode(decision.ranges[i], decision.rules) == entry.encodings[i]);
            }
        }
    }
    CHECK(decision_of(fixture, "w").ranges.size() == 2);
}

TEST_CASE("a tensor that gets no encoding has a decision that says why") {
    AssignmentFixture fixture = network();
    fixture.assign();
    CHECK(decision_of(fixture, "b").no_encoding.find("encodes no input 2 of Conv") != std::string::npos);
    CHECK(decision_of(fixture, "empty").no_encoding == "no sample gave it a finite value that is no mask");
}
