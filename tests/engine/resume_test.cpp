#include "engine/resume.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "engine/scene.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

class BrokenOff : public std::exception {};

// Breaks a run off right after so many samples.
class BreakOff : public Progress {
  public:
    explicit BreakOff(std::size_t after) : after_(after) {}
    void advance(std::size_t done, std::size_t /*total*/, std::string_view /*current*/) override {
        if (done == after_) throw BrokenOff();
    }

  private:
    std::size_t after_;
};

// Sets the flag that Ctrl-C sets right after so many samples.
class Interrupt : public Progress {
  public:
    Interrupt(std::size_t after, std::atomic<bool>& flag) : after_(after), flag_(flag) {}
    void advance(std::size_t done, std::size_t /*total*/, std::string_view /*current*/) override {
        if (done == after_) flag_ = true;
    }

  private:
    std::size_t after_;
    std::atomic<bool>& flag_;
};

class ResumeScene : public Scene {
  public:
    explicit ResumeScene(std::size_t samples) : Scene(samples) {
        options.note = [this](const std::string& text) { notes.push_back(text); };
    }

    void break_off(std::size_t after) {
        BreakOff watcher(after);
        CHECK_THROWS_AS(run(output, 2, {}, &watcher), BrokenOff);
    }
    std::string undisturbed() {
        CalibrationOptions with_checkpoints = options;
        std::swap(options.checkpoint, with_checkpoints.checkpoint);
        run(folder / "undisturbed.qstats", 2);
        std::swap(options.checkpoint, with_checkpoints.checkpoint);
        return bytes("undisturbed.qstats");
    }
    std::string refusal() {
        return message_of<Error>([&] { run(output, 2); });
    }

    std::filesystem::path output = folder / "out.qstats";
    std::filesystem::path checkpoint = folder / "out.qstats.checkpoint";
    std::filesystem::path part = folder / "out.qstats.part";
    std::vector<std::string> notes;
};

}  // namespace

TEST_CASE("a run that is broken off goes on from its last checkpoint to the very same file") {
    for (const std::size_t after : {5, 11, 29}) {
        ResumeScene scene(30);
        const std::string expected = scene.undisturbed();
        scene.options.checkpoint = 4;
        scene.break_off(after);
        REQUIRE(std::filesystem::exists(scene.checkpoint));
        const CalibrationResult result = scene.run(scene.output, 3);
        CHECK(scene.bytes("out.qstats") == expected);
        CHECK(result.samples == 30);
        CHECK(result.resumed == after / 4 * 4);
        REQUIRE(scene.notes.size() == 1);
        CHECK(scene.notes[0] ==
              fmt::format("{}: going on behind {} samples of 30", scene.checkpoint.string(), after / 4 * 4));
        CHECK_FALSE(std::filesystem::exists(scene.checkpoint));
        CHECK_FALSE(std::filesystem::exists(scene.part));
    }
}

TEST_CASE("a checkpoint is used, too, by a run that makes none") {
    ResumeScene scene(12);
    const std::string expected = scene.undisturbed();
    scene.options.checkpoint = 4;
    scene.break_off(9);
    scene.options.checkpoint = 0;
    CHECK(scene.run(scene.output, 1).resumed == 8);
    CHECK(scene.bytes("out.qstats") == expected);
    CHECK_FALSE(std::filesystem::exists(scene.checkpoint));
}

TEST_CASE("a run with checkpoints that nothing breaks off leaves its file alone, and the same one") {
    ResumeScene scene(12);
    const std::string expected = scene.undisturbed();
    for (const std::uint64_t every : {1, 5, 12, 100}) {
        scene.options.checkpoint = every;
        scene.run(scene.output, 2);
        CHECK(scene.bytes("out.qstats") == expected);
        CHECK_FALSE(std::filesystem::exists(scene.checkpoint));
        CHECK_FALSE(std::filesystem::exists(scene.part));
    }
    CHECK(scene.notes.empty());
}

TEST_CASE("a run that is broken off before its first checkpoint leaves nothing") {
    ResumeScene scene(12);
    scene.options.checkpoint = 6;
    scene.break_off(3);
    CHECK_FALSE(std::filesystem::exists(scene.checkpoint));
    CHECK_FALSE(std::filesystem::exists(scene.part));
}

TEST_CASE("an interrupted run keeps what it has counted") {
    ResumeScene scene(30);
    const std::string expected = scene.undisturbed();
    std::atomic<bool> interrupted = false;
    scene.options.interrupted = &interrupted;
    scene.options.checkpoint = 1000;
    Interrupt watcher(5, interrupted);
    CHECK_THROWS_AS(scene.run(scene.output, 1, {}, &watcher), Interrupted);
    REQUIRE(scene.notes.size() == 1);
    CHECK(scene.notes[0].find("the same command goes on from there") != std::string::npos);
    interrupted = false;
    CHECK(scene.run(scene.output, 2).resumed >= 5);
    CHECK(scene.bytes("out.qstats") == expected);
}

TEST_CASE("skipped samples of before a checkpoint stay skipped, with their reasons") {
    ResumeScene scene(12);
    std::filesystem::remove(scene.files[1]);
    std::filesystem::remove(scene.files[9]);
    const std::string expected = scene.undisturbed();
    scene.options.checkpoint = 4;
    scene.break_off(7);
    const CalibrationResult result = scene.run(scene.output, 2);
    CHECK(scene.bytes("out.qstats") == expected);
    REQUIRE(result.skipped.size() == 2);
    CHECK(result.skipped[0].number == 1);
    CHECK(result.skipped[0].reason.starts_with(scene.files[1].string()));
    CHECK(result.samples == 10);
}

TEST_CASE("under strict a checkpoint with a skipped sample is refused by the name of its file") {
    ResumeScene scene(12);
    std::filesystem::remove(scene.files[1]);
    scene.options.checkpoint = 4;
    scene.break_off(7);
    scene.options.strict = true;
    CHECK(scene.refusal().starts_with(scene.files[1].string()));
    CHECK(std::filesystem::exists(scene.checkpoint));
}

TEST_CASE("a checkpoint of another run is refused: it says in what they differ and how to start anew") {
    ResumeScene scene(12);
    scene.options.settings = "color=rgb\nmultiply=1";
    scene.options.checkpoint = 4;
    scene.break_off(9);
    const std::string start = scene.checkpoint.string() + ": is of another run: ";
    const std::string end = "; remove " + scene.checkpoint.string() + " to start anew";
    std::string difference;
    SUBCASE("settings") {
        scene.options.settings = "color=rgb\nmultiply=2";
        difference = "a line of the settings is 'multiply=1', expected 'multiply=2'";
    }
    SUBCASE("kind of statistics") {
        scene.options.counter.extremes_only = true;
        difference =
            "the kind of statistics is full, masks below nothing, expected extremes, masks below nothing";
    }
    SUBCASE("number of samples") {
        scene.files.pop_back();
        difference = "the number of samples is 12, expected 11";
    }
    SUBCASE("order of the samples") {
        std::swap(scene.files[10], scene.files[11]);
        difference = "the SHA-256 of the samples' numbers and files is ";
    }
    SUBCASE("tensors") {
        scene.options.tensors = std::set<std::string, std::less<>>{"x", "y"};
        difference = "the number of tensors is 9, expected 2";
    }
    SUBCASE("model") {
        OnnxModel model;
        model.graph.input("x", {"n", 3, 6, 6}).output("y").node("Neg", {"x"}, {"y"});
        model.save(scene.folder / "model.onnx");
        difference = "the model hash is ";
    }
    const std::string message = scene.refusal();
    CHECK(message.starts_with(start + difference));
    CHECK(message.ends_with(end));
    CHECK(std::filesystem::exists(scene.checkpoint));
    std::filesystem::remove(scene.checkpoint);
    CHECK(scene.run(scene.output, 2).resumed == 0);
}

TEST_CASE("a second run beside one that is going on is refused and does it no harm") {
    ResumeScene scene(12);
    const std::string expected = scene.undisturbed();
    scene.options.checkpoint = 4;
    class Second : public Progress {
      public:
        explicit Second(ResumeScene& scene) : scene_(scene) {}
        void advance(std::size_t done, std::size_t /*total*/, std::string_view /*current*/) override {
            if (done == 6) message = scene_.refusal();
        }
        std::string message;

      private:
        ResumeScene& scene_;
    };
    Second second(scene);
    scene.run(scene.output, 2, {}, &second);
    CHECK(second.message == scene.output.string() + ": cannot be written: another run is writing it");
    CHECK(scene.bytes("out.qstats") == expected);
}

TEST_CASE("rows that were changed since the checkpoint are refused, and it says how to start anew") {
    ResumeScene scene(12);
    scene.options.checkpoint = 4;
    scene.break_off(9);
    write_unsynced(scene.part, "other");
    const std::string message = scene.refusal();
    CHECK(message.starts_with(scene.part.string() +
                              ": expected the rows of the run that was broken off, found 5 of "));
    CHECK(message.ends_with("to start anew"));
}
