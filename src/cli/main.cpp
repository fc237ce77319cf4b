#include "cli/command.h"

int main(int argument_count, char** arguments) {
    return static_cast<int>(qcalib::run_command_line(argument_count, arguments));
}
