// Runs a calibration with checkpoints, kills it (SIGKILL) at random moments, runs the same command again
// until it ends by itself, and compares the file with that of an undisturbed run, byte by byte. Moments are a
// random delay, or a random while behind the appearance of one of the run's files. A run that ends before its
// kill counts as a run. A failure prints the seed, which chooses the same moments again as far as the machine
// goes.
//
//     kill_and_resume QCALIB CASES WORK samples|sequences KILLS [SEED]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"

namespace {

using namespace qcalib;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

// Writes `count` files of `floats` random numbers and a list of them.
void write_samples(const fs::path& folder, std::size_t count, std::size_t floats, Random& random) {
    fs::create_directories(folder / "samples");
    std::ofstream list(folder / "list.txt");
    std::vector<float> values(floats);
    for (std::size_t i = 0; i < count; ++i) {
        const double width = 0.1 + random.unit();
        for (float& value : values) value = static_cast<float>((random.unit() - 0.5) * width);
        const fs::path file = folder / "samples" / fmt::format("{}.raw", i);
        // Some samples cannot be read, and are skipped.
        const auto bytes = static_cast<std::streamsize>(i % 97 == 5 ? 2 : floats * sizeof(float));
        std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), bytes);
        list << file.string() << '\n';
    }
}

// A command in work.
class Child {
  public:
    Child(const std::vector<std::string>& command, const fs::path& log) {
        process_ = ::fork();
        if (process_ < 0) fail("fork: failed");
        if (process_ > 0) return;
        const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        ::dup2(output, STDOUT_FILENO);
        ::dup2(output, STDERR_FILENO);
        std::vector<char*> arguments;
        for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
        arguments.push_back(nullptr);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }

    // Whether it has ended by itself; then its exit code is in `code`.
    bool ended(int& code) {
        int status = 0;
        if (::waitpid(process_, &status, WNOHANG) != process_) return false;
        code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return true;
    }
    int wait() {
        int status = 0;
        ::waitpid(process_, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    // Whether the kill came before the end; else `code` is set.
    bool kill(int& code) {
        ::kill(process_, SIGKILL);
        int status = 0;
        ::waitpid(process_, &status, 0);
        if (WIFEXITED(status)) code = WEXITSTATUS(status);
        return WIFSIGNALED(status);
    }

  private:
    pid_t process_ = -1;
};

class Scene {
  public:
    Scene(const std::string& qcalib, const fs::path& cases, const fs::path& work, bool sequences,
          std::uint64_t seed)
        : work_(work), random_(seed), sequences_(sequences) {
        fs::remove_all(work);
        fs::create_directories(work);
        const std::size_t count = sequences ? 60 : 600;
        write_samples(work, count, sequences ? 4 * 40 : 3 * 20 * 20, random_);
        command_ = {qcalib,
                    "--model",
                    (cases / (sequences ? "carried_state" : "two_conv") / "net.onnx").string(),
                    "--data",
                    (work / "list.txt").string(),
                    "--quiet"};
        if (sequences) command_.insert(command_.end(), {"--carry", "stateN=state", "--input", "sr=16000"});
    }

    void run_undisturbed() {
        const Clock::time_point start = Clock::now();
        std::vector<std::string> command = command_;
        command.insert(command.end(), {"-o", (work_ / "undisturbed").string()});
        if (Child(command, work_ / "log.txt").wait() != 0) fail("the undisturbed run failed");
        span_ = Clock::now() - start;
        expected_ = read_text_file(work_ / "undisturbed" / "net.qstats");
        expected_report_ = read_text_file(work_ / "undisturbed" / "net.report.json");
    }

    // Kills the run a few times and lets it end; answers how often it was killed.
    std::size_t kill_and_resume() {
        constexpr std::uint64_t most_kills = 6;
        const std::size_t kills = 1 + random_.below(most_kills);
        fs::remove_all(output_);
        std::size_t killed = 0;
        bool ended = false;
        while (!ended && killed < kills) {
            ended = !run_and_kill();
            if (!ended) ++killed;
        }
        int code = 0;
        if (!ended) code = Child(command(), work_ / "log.txt").wait();
        if (code != 0) fail("a run ended with exit code {}, see {}", code, (work_ / "log.txt").string());
        if (read_text_file(statistics_) != expected_) fail("the file is not that of an undisturbed run");
        if (read_text_file(report_) != expected_report_) fail("the report is not that of an undisturbed run");
        for (const auto& entry : fs::directory_iterator(output_)) {
            if (entry.path() == statistics_ || entry.path() == report_) continue;
            fail("{} is left behind", entry.path().string());
        }
        return killed;
    }

  private:
    std::vector<std::string> command() {
        std::vector<std::string> command = command_;
        const std::uint64_t every = sequences_ ? 1 + random_.below(9) : 1 + random_.below(90);
        command.insert(command.end(), {"-o", output_.string(), "--checkpoint", std::to_string(every),
                                       "--jobs", std::to_string(1 + random_.below(3))});
        return command;
    }

    // False where it ended first.
    bool run_and_kill() {
        const std::vector<std::string> names = {"", "net.qstats.checkpoint.tmp", "net.qstats.checkpoint",
                                                "net.qstats"};
        const std::string& name = names[random_.below(names.size())];
        const double share = name.empty() ? random_.unit() : 0.02 * random_.unit();
        const auto delay = std::chrono::duration_cast<Clock::duration>(span_ * share);
        Child child(command(), work_ / "log.txt");
        int code = 0;
        while (!name.empty() && !fs::exists(output_ / name)) {
            if (child.ended(code)) return finished(code);
        }
        std::this_thread::sleep_for(delay);
        return child.kill(code) || finished(code);
    }

    static bool finished(int code) {
        if (code != 0) fail("a run ended with exit code {}", code);
        return false;
    }

    fs::path work_;
    fs::path output_ = work_ / "out";
    fs::path statistics_ = output_ / "net.qstats";
    fs::path report_ = output_ / "net.report.json";
    Random random_;
    bool sequences_;
    std::vector<std::string> command_;
    Clock::duration span_ = {};
    std::string expected_;
    std::string expected_report_;
};

int run(const std::vector<std::string>& arguments) {
    const std::uint64_t seed = arguments.size() > 6 ? std::stoull(arguments[6]) : std::random_device()();
    fmt::print("seed {}\n", seed);
    std::fflush(stdout);
    Scene scene(arguments[1], arguments[2], arguments[3], arguments[4] == "sequences", seed);
    scene.run_undisturbed();
    const std::size_t wanted = std::stoull(arguments[5]);
    constexpr std::size_t most_rounds = 100;  // on a machine on which all runs end before their kills
    std::size_t killed = 0;
    std::size_t rounds = 0;
    for (; killed < wanted && rounds < most_rounds; ++rounds) killed += scene.kill_and_resume();
    fmt::print("{} kills in {} rounds, each with the bytes of an undisturbed run\n", killed, rounds);
    return killed > 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
    const std::vector<std::string> arguments(values, values + count);
    if (arguments.size() < 6) {
        fmt::print(stderr, "usage: kill_and_resume QCALIB CASES WORK samples|sequences KILLS [SEED]\n");
        return 2;
    }
    try {
        return run(arguments);
    } catch (const std::exception& error) {
        fmt::print(stderr, "kill_and_resume: {}\n", error.what());
        return 1;
    }
}
