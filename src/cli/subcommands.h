#pragma once

#include <memory>

#include "cli/command.h"

namespace qcalib {

// One a file: <name>_command.cpp.
std::unique_ptr<Command> make_calibrate_command();
std::unique_ptr<Command> make_run_command();
std::unique_ptr<Command> make_init_command();
std::unique_ptr<Command> make_emit_command();
std::unique_ptr<Command> make_merge_command();
std::unique_ptr<Command> make_audit_command();
std::unique_ptr<Command> make_simulate_command();
std::unique_ptr<Command> make_convert_command();
std::unique_ptr<Command> make_map_command();
std::unique_ptr<Command> make_inspect_command();
std::unique_ptr<Command> make_list_command();

}  // namespace qcalib
