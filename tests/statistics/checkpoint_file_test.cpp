#include "statistics/checkpoint_file.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "statistics/fixtures.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// Half of a run over example_elements: what it leaves and what it goes on with.
class Scene {
  public:
    Scene() {
        set.merge(1, counter.count(example_elements(1, 0)));
        checkpoint.header = header;
        checkpoint.selection = std::string(64, 'a');
        checkpoint.skipped = {{0, "s0.npy: cannot be read"}, {3, std::string("odd\xff\0reason", 11)}};
        checkpoint.left_over = {"seq.raw (3 of 4 bytes)"};
    }

    void count(std::uint64_t first, std::uint64_t end, StatisticsWriter& writer, StatisticsSet& into) {
        for (std::uint64_t sample = first; sample < end; ++sample) {
            Row row{sample, {}};
            for (const std::size_t tensor : {0, 2}) {
                const TensorStatistics& found = counter.count(example_elements(tensor, sample));
                into.merge(tensor, found);
                row.entries.push_back(summarize(found));
            }
            writer.add_row(row);
        }
    }

    // Counts `done` samples and leaves a checkpoint and the rows, and `more` rows it does not know of.
    void break_off(std::uint64_t done, std::uint64_t more = 0) {
        StatisticsWriter writer(output, header);
        count(0, done, writer, set);
        checkpoint.done = done;
        checkpoint.rows = done;
        checkpoint.part = writer.sync();
        write_checkpoint(checkpoint_path(output), checkpoint, set);
        StatisticsSet forgotten(3);
        count(done, done + more, writer, forgotten);
        if (more > 0) writer.sync();
    }

    // Goes on from the checkpoint to the end.
    void go_on() {
        const CheckpointFile file(checkpoint_path(output));
        StatisticsSet resumed(3);
        resumed.merge(1, counter.count(example_elements(1, 0)));
        file.merge_into(resumed);
        StatisticsWriter writer(output, header, file.checkpoint().part);
        count(file.checkpoint().done, header.selected, writer, resumed);
        writer.finish(resumed, {});
    }

    std::string undisturbed() {
        write_example(folder / "undisturbed.qstats", header);
        return read_text_file(folder / "undisturbed.qstats");
    }

    TemporaryFolder folder;
    std::filesystem::path output = folder / "net.qstats";
    std::filesystem::path part = folder / "net.qstats.part";
    StatisticsHeader header = example_header(20);
    Counter counter{header.counter};
    StatisticsSet set{3};
    Checkpoint checkpoint;
};

std::string opening(const std::filesystem::path& path) {
    return message_of<Error>([&] { const CheckpointFile file(path); });
}

}  // namespace

TEST_CASE("a checkpoint comes back as it was written") {
    Scene scene;
    scene.break_off(7);
    const CheckpointFile file(checkpoint_path(scene.output));
    CHECK(file.checkpoint() == scene.checkpoint);
    StatisticsSet found(3);
    found.merge(1, scene.counter.count(example_elements(1, 0)));
    file.merge_into(found);
    for (std::size_t tensor = 0; tensor < 3; ++tensor) CHECK(found[tensor] == scene.set[tensor]);
}

TEST_CASE("going on from a checkpoint gives the file of an undisturbed run") {
    for (const std::uint64_t done : {1, 7, 19}) {
        Scene scene;
        scene.break_off(done);
        scene.go_on();
        CHECK(read_text_file(scene.output) == scene.undisturbed());
        CHECK_FALSE(std::filesystem::exists(scene.part));
    }
}

TEST_CASE("rows behind a checkpoint, whole or torn, are cut off") {
    Scene scene;
    scene.break_off(7, 5);
    const std::string rows = read_text_file(scene.part);
    REQUIRE(rows.size() > scene.checkpoint.part.bytes);
    write_unsynced(scene.part, rows.substr(0, rows.size() - 3));
    scene.go_on();
    CHECK(read_text_file(scene.output) == scene.undisturbed());
}

TEST_CASE("a run that ended right before it removed its checkpoint is done again from there") {
    Scene scene;
    scene.break_off(7);
    scene.go_on();
    REQUIRE_FALSE(std::filesystem::exists(scene.part));
    scene.go_on();
    CHECK(read_text_file(scene.output) == scene.undisturbed());
    CHECK(files_in(scene.folder) == 3);  // the two files and the checkpoint
}

TEST_CASE("rows that are not those of the checkpoint are refused and left alone") {
    const auto refusal = [](Scene& scene) { return message_of<Error>([&] { scene.go_on(); }); };
    SUBCASE("too few") {
        Scene scene;
        scene.break_off(7);
        const std::string rows = read_text_file(scene.part).substr(0, 200);
        write_unsynced(scene.part, rows);
        CHECK(refusal(scene).starts_with(
            scene.part.string() + ": expected the rows of the run that was broken off, found 200 of "));
        CHECK(read_text_file(scene.part) == rows);
    }
    SUBCASE("others") {
        Scene scene;
        scene.break_off(7);
        std::string rows = read_text_file(scene.part);
        rows[rows.size() - 2] ^= 1;
        write_unsynced(scene.part, rows);
        CHECK(refusal(scene) ==
              scene.part.string() +
                  ": expected the rows of the run that was broken off, found other contents; remove " +
                  checkpoint_path(scene.output).string() + " to start anew");
        CHECK(read_text_file(scene.part) == rows);
    }
    SUBCASE("none") {
        Scene scene;
        scene.break_off(7);
        std::filesystem::remove(scene.part);
        CHECK(refusal(scene).starts_with(
            scene.part.string() + ": expected the rows of the run that was broken off, found no file"));
    }
}

TEST_CASE("a constant that is not the checkpoint's is refused by name") {
    Scene scene;
    scene.break_off(7);
    const CheckpointFile file(checkpoint_path(scene.output));
    StatisticsSet others(3);
    CHECK(message_of<Error>([&] { file.merge_into(others); }).find("constant 'weight' has other values") !=
          std::string::npos);
}

TEST_CASE("a checkpoint cut anywhere, or with any byte changed, is refused by name") {
    Scene scene;
    scene.break_off(2);
    const std::filesystem::path path = checkpoint_path(scene.output);
    const std::string whole = read_text_file(path);
    const std::filesystem::path broken = scene.folder / "broken.qstats.checkpoint";
    for (std::size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 37) {
        write_unsynced(broken, whole.substr(0, size));
        CHECK(opening(broken).starts_with(broken.string() + ": "));
    }
    for (std::size_t at = 0; at < whole.size(); at += at < 200 ? 1 : 37) {
        std::string changed = whole;
        changed[at] ^= 0x10;
        write_unsynced(broken, changed);
        CHECK(opening(broken).starts_with(broken.string() + ": "));
    }
    write_unsynced(broken, read_text_file(scene.part));
    CHECK(opening(broken) == broken.string() + ": expected a checkpoint, found other contents");
}
