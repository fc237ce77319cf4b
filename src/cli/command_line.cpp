#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "engine/calibration.h"

namespace qcalib {

namespace {

constexpr std::string_view version = QCALIB_VERSION;

std::string overview(std::span<const std::unique_ptr<Command>> commands) {
    std::string text =
        "qcalib: quantization ranges for edge compilers\n\n"
        "  qcalib --model m.onnx --data list.txt --emit snpe      calibrate and write what the compiler "
        "reads\n\n"
        "Commands (qcalib COMMAND --help):\n";
    for (const auto& command : commands)
        text += fmt::format("  {:<10} {}\n", command->name(), command->summary());
    return text + "\n'calibrate' is what runs where no command is named; its options:\n\n";
}

// The unknown flag's message with the nearest flag there is.
std::string unexpected_argument(const CLI::App& app, const std::string& argument) {
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
    const std::string flag = argument.substr(0, argument.find('='));
    return fmt::format("{}: unknown {}{}", printable(flag), flag.starts_with("-") ? "option" : "argument",
                       did_you_mean(flag, flags));
}

ExitCode parse_and_run(Command& command, CLI::App& app, int count, const char* const* arguments,
                       Console& console) {
    bool quiet = false;
    app.add_flag("--quiet", quiet, "Print results and errors only");
    app.allow_extras();
    command.add_options(app);
    try {
        app.parse(count, arguments);
    } catch (const CLI::CallForHelp&) {
        console.print(app.help());
        return ExitCode::fine;
    } catch (const CLI::ParseError& error) {
        console.error(error.what());
        return ExitCode::bad_input;
    }
    if (!app.remaining().empty()) {
        console.error(unexpected_argument(app, app.remaining().front()));
        return ExitCode::bad_input;
    }
    console.set_quiet(quiet);
    return command.run(console);
}

ExitCode dispatch(int count, const char* const* arguments, Console& console) {
    const std::vector<std::unique_ptr<Command>> commands = make_commands();
    const std::string_view first = count > 1 ? arguments[1] : "--help";
    if (first == "--version") {
        console.print(fmt::format("qcalib {}\n", version));
        return ExitCode::fine;
    }
    const bool named = !first.starts_with("-");
    Command* chosen = commands.front().get();
    if (named) {
        std::vector<std::string> names;
        chosen = nullptr;
        for (const auto& command : commands) {
            names.push_back(command->name());
            if (command->name() == first) chosen = command.get();
        }
        if (chosen == nullptr) {
            fail("{}: unknown command{}; commands are {}", printable(first), did_you_mean(first, names),
                 join(names, ", "));
        }
    }
    CLI::App app(named ? chosen->summary() : overview(commands),
                 named ? "qcalib " + chosen->name() : "qcalib");
    if (count < 2) {
        chosen->add_options(app);
        console.print(app.help());
        return ExitCode::bad_input;
    }
    return parse_and_run(*chosen, app, named ? count - 1 : count, named ? arguments + 1 : arguments, console);
}

}  // namespace

ExitCode run_command_line(int argument_count, const char* const* arguments) {
    Console console;
    const InterruptHandler interrupts;
    try {
        return dispatch(argument_count, arguments, console);
    } catch (const Error& error) {
        console.error(error.what());
        return ExitCode::bad_input;
    } catch (const Interrupted&) {
        console.error("interrupted: no statistics were written");
        return ExitCode::interrupted;
    } catch (const std::bad_alloc&) {
        console.error("out of memory: try fewer --jobs");
        return ExitCode::bad_input;
    } catch (const std::exception& error) {
        console.error(fmt::format("internal error: {}", error.what()));
        return ExitCode::internal;
    }
}

}  // namespace qcalib
