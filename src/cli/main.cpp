#include "base/memory.h"
#include "cli/command.h"

int main(int argument_count, char** arguments) {
    qcalib::give_freed_memory_back();
    return static_cast<int>(qcalib::run_command_line(argument_count, arguments));
}
