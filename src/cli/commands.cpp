#include "cli/command.h"
#include "cli/subcommands.h"

namespace qcalib {

std::vector<std::unique_ptr<Command>> make_commands() {
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(make_calibrate_command());
    commands.push_back(make_run_command());
    commands.push_back(make_init_command());
    commands.push_back(make_emit_command());
    commands.push_back(make_merge_command());
    commands.push_back(make_audit_command());
    commands.push_back(make_simulate_command());
    commands.push_back(make_convert_command());
    commands.push_back(make_map_command());
    commands.push_back(make_inspect_command());
    commands.push_back(make_list_command());
    return commands;
}

}  // namespace qcalib
