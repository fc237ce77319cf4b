#include "cases/runner/process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

namespace qcalib::cases {
namespace {

// What posix_spawn does to the streams of the new process.
class StreamActions {
  public:
    StreamActions() { posix_spawn_file_actions_init(&actions_); }
    ~StreamActions() { posix_spawn_file_actions_destroy(&actions_); }
    StreamActions(const StreamActions&) = delete;
    StreamActions& operator=(const StreamActions&) = delete;

    void open(int descriptor, const std::string& path, int flags) {
        posix_spawn_file_actions_addopen(&actions_, descriptor, path.c_str(), flags, 0644);
    }
    const posix_spawn_file_actions_t* get() const { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_{};
};

std::string wait_for(pid_t process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0) {
        if (errno != EINTR) fail("waiting for a process: {}", std::strerror(errno));
    }
    if (WIFEXITED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
    return fmt::format("signal {}", WTERMSIG(status));
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, const std::filesystem::path& logs) {
    const std::string output = logs / "stdout";
    const std::string error = logs / "stderr";
    StreamActions actions;
    actions.open(STDIN_FILENO, "/dev/null", O_RDONLY);
    actions.open(STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC);
    actions.open(STDERR_FILENO, error, O_WRONLY | O_CREAT | O_TRUNC);

    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t process = 0;
    const int failure =
        posix_spawn(&process, command.front().c_str(), actions.get(), nullptr, arguments.data(), environ);
    if (failure != 0) fail("{}: {}", command.front(), std::strerror(failure));
    std::string ending = wait_for(process);
    return {std::move(ending), read_text_file(output), read_text_file(error)};
}

}  // namespace qcalib::cases
