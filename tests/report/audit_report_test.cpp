#include "report/audit_report.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/text.h"

using namespace qcalib;

namespace {

Finding finding(const std::string& tensor, Status status, const std::string& cause) {
    Finding one;
    one.tensor = tensor;
    one.status = status;
    one.given = ShownEncoding{8, -123456.789, 98765.4321, 0, 0, {}};
    one.found = ShownEncoding{8, -17.5300671, 12.2710471, 0, 0, {}};
    one.steps = 1234.5678;
    one.cause = cause;
    one.advice = "do something about it, or something else, whatever it takes to mend what is wrong here";
    return one;
}

AuditResult example() {
    AuditResult result;
    result.findings.push_back(finding("fine", Status::applied, ""));
    for (int i = 0; i < 6; ++i) {
        result.findings.push_back(finding(fmt::format("/a/rather/long/name/of/a/tensor/{}/Conv_output_0", i),
                                          Status::recomputed, "one cause of several words"));
    }
    result.findings.back().accepted = "known";
    result.causes = {"the quantizer ran without a flag that is needed to make it use what it was given"};
    return result;
}

}  // namespace

TEST_CASE("no line of an audit is wider than the terminal") {
    for (const std::size_t width : {72U, 80U, 100U, 120U, 200U}) {
        CAPTURE(width);
        for (const std::string& line : split(audit_text(example(), true, width), '\n')) {
            CAPTURE(line);
            CHECK(line.size() <= width);
        }
    }
}

TEST_CASE("an audit says what explains all first, then the sum, the table and each text once") {
    const std::string text = audit_text(example(), false, 200);
    CHECK(text.starts_with("Likely cause: the quantizer ran without a flag"));
    CHECK(text.find("7 tensors: 1 applied, 6 recomputed") != std::string::npos);
    CHECK(text.find("-123456.8 .. 98765.43") != std::string::npos);
    CHECK(text.find("fine") == std::string::npos);
    CHECK(text.find("and 1 more:") != std::string::npos);
    CHECK(text.find("accepted: known") != std::string::npos);
    CHECK(audit_text(example(), true, 200).find("fine ") != std::string::npos);
}
