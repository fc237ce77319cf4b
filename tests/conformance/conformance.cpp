// Runs ONNX's own node tests on all kinds of kernels: every test whose model uses only the operators listed
// in operators.txt, except those that exclusions.txt names with a reason.
//
//   conformance NODE_TESTS LISTS [TEST...]     the folder of tests, the folder of the lists, only these tests
//
// Exit code 0: all passed; 1: a failure, a test without a data set, or an exclusion that is of no use; 77: no
// node tests there.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "conformance/node_test.h"
#include "graph/onnx_file.h"

namespace qcalib::test {

namespace {

constexpr int skipped = 77;
constexpr std::int64_t oldest_opset = 7;

const std::array<std::pair<const char*, ProgramOptions>, 4> kinds{{
    {"fast", {}},
    {"fast, channels-last", {.channels_last_inputs = true, .replaced = {}}},
    {"fast, row-major", {.row_major_only = true, .replaced = {}}},
    {"reference", {.reference_kernels = true, .replaced = {}}},
}};

// "key: text" lines; '#' starts a comment.
std::map<std::string, std::string> read_list(const std::filesystem::path& path) {
    std::ifstream stream(path);
    if (!stream) fail("{}: cannot be opened", path.string());
    std::map<std::string, std::string> list;
    for (std::string line; std::getline(stream, line);) {
        const std::string_view text = trim(std::string_view(line).substr(0, line.find('#')));
        if (text.empty()) continue;
        const std::size_t colon = std::min(text.find(':'), text.size());
        const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
        list.emplace(trim(text.substr(0, colon)), trim(rest));
    }
    return list;
}

// Runs one data set; answers what is wrong, or "".
std::string run_data_set(const Graph& graph, const DataSet& set, const ProgramOptions& options) {
    std::vector<Tensor> inputs = set.inputs;
    const std::shared_ptr<const Graph> runnable = with_known_floats(graph, inputs);
    const std::vector<Tensor> outputs = run_graph(runnable, inputs, options);
    if (outputs.size() != set.outputs.size()) {
        return fmt::format("expected {} outputs, found {}", set.outputs.size(), outputs.size());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::string wrong =
            difference(outputs[i], set.outputs[i], graph.values[graph.outputs[i]].declared_type);
        if (!wrong.empty()) return fmt::format("output '{}': {}", graph.values[graph.outputs[i]].name, wrong);
    }
    return "";
}

// What is wrong with a test, one line per kind of kernels; empty where it passes.
std::vector<std::string> run_test(const std::filesystem::path& model_file,
                                  const std::filesystem::path& folder) {
    std::vector<std::string> failures;
    try {
        const Model model = read_onnx_file(model_file, ModelInputs::any);
        const std::vector<DataSet> sets = read_data_sets(folder, *model.graph);
        if (sets.empty()) failures.emplace_back("no data set");
        for (const auto& [kind, options] : kinds) {
            for (const DataSet& set : sets) {
                try {
                    const std::string wrong = run_data_set(*model.graph, set, options);
                    if (!wrong.empty()) failures.push_back(fmt::format("[{}] {}", kind, wrong));
                } catch (const Error& error) {
                    failures.push_back(fmt::format("[{}] {}", kind, error.what()));
                }
            }
        }
    } catch (const Error& error) {
        failures.emplace_back(error.what());
    }
    return failures;
}

struct Summary {
    std::size_t passed = 0;
    std::size_t failed = 0;
    std::size_t excluded = 0;
    std::size_t other_operators = 0;
};

class Suite {
  public:
    explicit Suite(const std::filesystem::path& lists)
        : operators_(read_list(lists / "operators.txt")), exclusions_(read_list(lists / "exclusions.txt")) {
        for (const auto& [name, reason] : exclusions_) {
            if (reason.empty()) report(name, {"excluded without a reason"});
        }
    }

    void run(const std::filesystem::path& folder) {
        const std::string name = folder.filename().string();
        const ModelFacts facts = facts_of(folder / "model.onnx");
        const std::set<std::string>& used = facts.operators;
        const bool listed =
            std::all_of(used.begin(), used.end(), [&](const auto& op) { return operators_.contains(op); });
        if (!listed) {
            ++summary_.other_operators;
            return;
        }
        tested_.insert(used.begin(), used.end());
        const std::vector<std::string> failures = run_readable(folder, facts);
        if (exclusions_.contains(name)) {
            met_exclusions_.insert(name);
            ++summary_.excluded;
            if (failures.empty()) report(name, {"passes, but exclusions.txt excludes it"});
        } else if (failures.empty()) {
            ++summary_.passed;
        } else {
            report(name, failures);
        }
    }

    // For a run over all tests: what the lists name must have been met.
    void check_lists() {
        for (const auto& [name, reason] : exclusions_) {
            if (!met_exclusions_.contains(name))
                report(name, {"exclusions.txt names it, but it was not to be run"});
        }
        for (const auto& [name, remark] : operators_) {
            if (!tested_.contains(name)) std::cout << "no node test for operator " << name << "\n";
        }
    }

    int finish() const {
        std::cout << fmt::format("{} tests passed, {} failed, {} excluded, {} of other operators\n",
                                 summary_.passed, summary_.failed, summary_.excluded,
                                 summary_.other_operators);
        return summary_.failed == 0 ? 0 : 1;
    }

  private:
    // A test older than opset 7, the first that qcalib reads, runs as one of opset 7 where operators.txt says
    // that its operators are still the same.
    std::vector<std::string> run_readable(const std::filesystem::path& folder,
                                          const ModelFacts& facts) const {
        const bool same = std::all_of(facts.operators.begin(), facts.operators.end(), [&](const auto& name) {
            const std::string& since = operators_.at(name);
            return !since.empty() && parse_integer(since, "operators.txt") <= facts.opset;
        });
        if (facts.opset >= oldest_opset || !same) return run_test(folder / "model.onnx", folder);
        const std::filesystem::path copy = std::filesystem::current_path() / "conformance_opset_7.onnx";
        write_with_opset(folder / "model.onnx", oldest_opset, copy);
        std::vector<std::string> failures = run_test(copy, folder);
        std::filesystem::remove(copy);
        return failures;
    }

    void report(const std::string& name, const std::vector<std::string>& failures) {
        ++summary_.failed;
        for (const std::string& failure : failures) std::cout << "FAIL " << name << " " << failure << "\n";
    }

    std::map<std::string, std::string> operators_;
    std::map<std::string, std::string> exclusions_;
    std::set<std::string> met_exclusions_;
    std::set<std::string> tested_;
    Summary summary_;
};

int run(std::span<char*> arguments) {
    if (arguments.size() < 3) fail("usage: conformance NODE_TESTS LISTS [TEST...]");
    const std::filesystem::path tests = arguments[1];
    if (!std::filesystem::is_directory(tests)) {
        std::cout << "skipped: no node tests in " << tests.string() << " (Debian package libonnx-testdata)\n";
        return skipped;
    }
    Suite suite(arguments[2]);
    if (arguments.size() > 3) {
        for (const char* name : arguments.subspan(3)) suite.run(tests / name);
        return suite.finish();
    }
    std::vector<std::filesystem::path> folders;
    for (const auto& entry : std::filesystem::directory_iterator(tests)) {
        if (std::filesystem::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
    }
    std::sort(folders.begin(), folders.end());
    for (const auto& folder : folders) suite.run(folder);
    suite.check_lists();
    return suite.finish();
}

}  // namespace

}  // namespace qcalib::test

int main(int count, char** arguments) {
    try {
        return qcalib::test::run({arguments, static_cast<std::size_t>(count)});
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
