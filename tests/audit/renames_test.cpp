// Two files of encodings against each other, and lists of accepted findings.
#include "audit/renames.h"

#include <doctest/doctest.h>

#include "audit/allow_list.h"
#include "audit_fixture.h"
#include "base/error.h"
#include "graph/onnx_file.h"
#include "support/onnx_builder.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

AuditResult against(GivenFile& given, ConverterReport other) {
    const Target target = load_target("snpe");
    AuditInput input;
    input.given = &given.file();
    input.found = &other;
    input.target = &target;
    input.files_only = true;
    return audit(input);
}

// x -> Conv -> Relu -> y, with these names.
Model named(const TemporaryFolder& folder, const std::string& weight, const std::string& conv, float value) {
    OnnxModel model;
    model.graph.input("x", {1, 1, 4, 4});
    model.graph.initializer(weight, {1, 1, 1, 1}, std::vector<float>{value});
    model.graph.node("Conv", {"x", weight}, {conv});
    model.graph.node("Relu", {conv}, {conv + "_relu"});
    model.graph.node("MaxPool", {conv + "_relu"}, {"y"}, {{"kernel_shape", OnnxInts{2, 2}}});
    model.graph.output("y");
    model.save(folder / (conv + ".onnx"));
    return read_onnx_file(folder / (conv + ".onnx"));
}

}  // namespace

TEST_CASE("two files are compared like a file and a result") {
    GivenFile given;
    given.add("same", -1.0, 1.55).add("moved", -1.004, 1.546).add("other", 0, 1).add("mine", 0, 1);
    GivenFile other;
    other.add("same", -1.0, 1.55).add("moved", -1.0, 1.55).add("other", 0, 2).add("theirs", 0, 1);
    const AuditResult result = against(given, report_of(other.file()));
    CHECK(status_of(result, "same") == "applied");
    CHECK(status_of(result, "moved") == "nudged");
    CHECK(status_of(result, "other") == "recomputed");
    CHECK(status_of(result, "mine") == "unused");
    CHECK(status_of(result, "theirs") == "missing");
    CHECK(result.findings.size() == 5);
    CHECK(result.causes.empty());
}

TEST_CASE("weights of equal encodings under other names are renames, where they are the only ones") {
    const std::vector<Range> channels = {{-1.004, 0.996}, {-0.502, 0.498}};
    const std::vector<Range> twins = {{-2.008, 1.992}, {-1, 1}};
    GivenFile given;
    given.add_channels("conv.weight", channels, 8, Section::parameter)
        .add_channels("a", twins, 8, Section::parameter)
        .add_channels("b", twins, 8, Section::parameter);
    GivenFile other;
    other.add_channels("onnx::Conv_17", channels, 8, Section::parameter)
        .add_channels("c", twins, 8, Section::parameter)
        .add_channels("d", twins, 8, Section::parameter);
    ConverterReport report = report_of(other.file());
    rename(report, given.file(), renamed_weights(given.file(), other.file()));
    const AuditResult result = against(given, report);
    CHECK(status_of(result, "conv.weight") == "applied");
    CHECK(cause_of(result, "conv.weight") == "called 'onnx::Conv_17' in the other file");
    CHECK(result.count(Status::unused) == 2);
    CHECK(result.count(Status::missing) == 2);
}

TEST_CASE("with both models, what the same operators make of equal weights are renames") {
    const TemporaryFolder folder;
    const Model mine = named(folder, "conv.weight", "conv_out", 0.5F);
    const Model same = named(folder, "onnx::Conv_3", "17", 0.5F);
    const Model trained = named(folder, "onnx::Conv_4", "18", 0.25F);
    const Renames renames = renamed_tensors(*mine.graph, *same.graph);
    CHECK(renames ==
          Renames{{"onnx::Conv_3", "conv.weight"}, {"17", "conv_out"}, {"17_relu", "conv_out_relu"}});
    CHECK(renamed_tensors(*mine.graph, *trained.graph).empty());

    GivenFile given;
    given.add("conv_out", -1, 1.55).add("conv_out_relu", 0, 1.55);
    GivenFile other;
    other.add("17", -1, 1.55).add("17_relu", 0, 3);
    ConverterReport report = report_of(other.file());
    rename(report, given.file(), renames);
    const AuditResult result = against(given, report);
    CHECK(result.findings.size() == 2);
    CHECK(status_of(result, "conv_out") == "applied");
    CHECK(status_of(result, "conv_out_relu") == "recomputed");
    CHECK(cause_of(result, "conv_out_relu").find("called '17_relu' in the other file") != std::string::npos);
}

TEST_CASE("accepted findings are no objections; an entry that is for none is noted with why") {
    const TemporaryFolder folder;
    write_unsynced(folder / "allow.yaml",
                   "allow:\n"
                   "  - {tensor: 'a*', status: recomputed, reason: known}\n"
                   "  - tensor: b\n"
                   "    status: recomputed\n"
                   "    reason: was so once\n"
                   "  - {tensor: zz, status: missing, reason: gone}\n");
    GivenFile given;
    given.add("a1", 0, 1).add("b", 0, 1);
    AuditResult result = audit_of(given, log_row("Conv", "a1", 8, 0, 3) + log_row("Conv", "b", 8, 0, 1));
    CHECK(result.objections());
    accept(read_allow_list(folder / "allow.yaml"), result);
    CHECK_FALSE(result.objections());
    CHECK(find(result, "a1")->accepted == "known");
    const std::string file = (folder / "allow.yaml").string();
    CHECK(std::find(result.notes.begin(), result.notes.end(),
                    file + ":3: 'b' recomputed is for no finding: 'b' is applied") != result.notes.end());
    CHECK(std::any_of(result.notes.begin(), result.notes.end(), [&](const std::string& note) {
        return note.starts_with(file + ":6: 'zz' missing is for no finding: no finding is of that tensor");
    }));
}

TEST_CASE("faults of a list of accepted findings are told together, with their lines") {
    const TemporaryFolder folder;
    write_unsynced(folder / "allow.yaml",
                   "allow:\n"
                   "  - {tensor: a, status: mising, reason: x}\n"
                   "  - {tensor: a, status: missing, reasn: x}\n"
                   "  - {tensor: a, status: missing, reason: ' '}\n");
    const std::string message = message_of<Error>([&] { (void)read_allow_list(folder / "allow.yaml"); });
    const std::string file = (folder / "allow.yaml").string();
    CHECK(message.find(file + ":2:") != std::string::npos);
    CHECK(message.find("did you mean 'missing'") != std::string::npos);
    CHECK(message.find(file + ":3:") != std::string::npos);
    CHECK(message.find("did you mean 'reason'") != std::string::npos);
    CHECK(message.find(file + ":4:") != std::string::npos);
}
