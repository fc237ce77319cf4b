#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"

namespace CLI {
class App;
}

namespace qcalib {

// What a program run ends with.
enum class ExitCode : int {
    fine = 0,
    findings = 1,   // remarks under --strict, audit findings
    bad_input = 2,  // usage, or a file the user gave
    internal = 3,   // our own mistake
    interrupted = 130,
};

// A subcommand: its options, and what it does with them.
class Command {
  public:
    virtual ~Command() = default;
    virtual std::string name() const = 0;
    virtual std::string summary() const = 0;
    virtual void add_options(CLI::App& app) = 0;
    virtual ExitCode run(Console& console) = 0;
};

// All subcommands, the default one first; listed in cli/commands.cpp.
std::vector<std::unique_ptr<Command>> make_commands();

// Parses the arguments and runs the command they name. Never throws.
ExitCode run_command_line(int argument_count, const char* const* arguments);

}  // namespace qcalib
