#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "target/builtin_targets.h"
#include "target/target.h"

using namespace qcalib;

namespace {

std::string text_of(const std::string& target) {
    const auto targets = builtin_targets();
    const auto found =
        std::find_if(targets.begin(), targets.end(), [&](const auto& one) { return one.name == target; });
    REQUIRE(found != targets.end());
    return std::string(found->text);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t place = text.find(from);
    REQUIRE(place != std::string::npos);
    return text.replace(place, from.size(), to);
}

}  // namespace

TEST_CASE("a target says how it is simulated, and where that is known from") {
    const Target target = load_target("snpe");
    CHECK(target.simulation.switches.rounding == ValueRounding::half_up);
    CHECK(target.simulation.switches.bias == BiasForm::int32);
    CHECK(target.simulation.switches.weights == WeightSource::given);
    CHECK(target.simulation.evidence.confidence == Confidence::reported);
    CHECK_FALSE(target.simulation.evidence.source.empty());
    const Target other =
        parse_target(replaced(text_of("snpe"), "weights: given ", "weights: clipped "), "t.yaml");
    CHECK(other.simulation.switches.weights == WeightSource::clipped);
}

TEST_CASE("a switch of a simulation that has no such value is refused") {
    const std::string text = replaced(text_of("snpe"), "bias: int32 ", "bias: int16 ");
    try {
        parse_target(text, "t.yaml");
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(std::string(error.what()).find("int16") != std::string::npos);
        CHECK(std::string(error.what()).find("int32") != std::string::npos);
        CHECK(std::string(error.what()).starts_with("t.yaml:"));
    }
}
