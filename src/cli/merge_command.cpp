#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/output_folder.h"
#include "cli/subcommands.h"
#include "statistics/statistics_file.h"

namespace qcalib {

namespace {

class MergeCommand : public Command {
  public:
    std::string name() const override { return "merge"; }
    std::string summary() const override {
        return "Merge the statistics of all shards of a run into one file";
    }

    void add_options(CLI::App& app) override {
        app.add_option("shards", shards_, "The .qstats files of all shards, in any order")->required();
        app.add_option("-o,--output", output_, "The merged .qstats file")->required();
    }

    ExitCode run(Console& console) override {
        const std::vector<std::filesystem::path> shards(shards_.begin(), shards_.end());
        const std::filesystem::path parent = std::filesystem::path(output_).parent_path();
        OutputFolder folder(parent.empty() ? "." : parent);
        merge_statistics(shards, output_);
        folder.keep();
        console.print(printable(output_) + "\n");
        return ExitCode::fine;
    }

  private:
    std::vector<std::string> shards_;
    std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_merge_command() {
    return std::make_unique<MergeCommand>();
}

}  // namespace qcalib
