#include <doctest/doctest.h>

#include "base/error.h"
#include "fixtures.h"
#include "support/temporary_folder.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

// What reading a file of one tensor with these row and skipped numbers says, or "".
std::string read_error(std::uint64_t sequences, const std::vector<std::uint64_t>& rows,
                       const std::vector<std::uint64_t>& skipped, std::uint32_t shard = 1,
                       std::uint32_t shards = 1) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "steps.qstats";
    StatisticsHeader header = example_header(sequences, shard, shards);
    header.tensors = {{"x", false}};
    header.sequences = true;
    Counter counter;
    StatisticsSet set(1);
    {
        StatisticsWriter writer(path, header);
        for (const std::uint64_t number : rows) {
            const TensorStatistics& found = counter.count(std::vector<float>{1.0F});
            set.merge(0, found);
            writer.add_row({number, {summarize(found)}});
        }
        writer.finish(set, skipped);
    }
    std::string message = message_of<Error>([&] { CHECK(StatisticsFile(path).header().sequences); });
    return message.starts_with(path.string() + ": ") ? message.substr(path.string().size() + 2) : message;
}

}  // namespace

TEST_CASE("rows of sequences are their steps from the first on, in the order of the sequences") {
    const auto at = [](std::uint64_t sequence, std::uint64_t step) { return step_number(sequence, step); };
    CHECK(read_error(0, {}, {}) == "");
    CHECK(read_error(2, {at(0, 0), at(0, 1), at(1, 0)}, {}) == "");
    CHECK(read_error(3, {at(0, 0), at(2, 0), at(2, 1)}, {at(1, 0)}) == "");
    CHECK(read_error(5, {at(1, 0), at(1, 1), at(3, 0)}, {}, 2, 2) == "");
    CHECK(read_error(2, {at(0, 0), at(0, 1)}, {}) == "sequence 1 has no first step, nor is it skipped");
    CHECK(read_error(2, {at(0, 1), at(1, 0)}, {}) == "sequence 0 has no first step, nor is it skipped");
    CHECK(read_error(2, {at(0, 0), at(0, 2), at(1, 0)}, {}) ==
          "sequence 1 has no first step, nor is it skipped");
    CHECK(read_error(1, {at(0, 0), at(0, 2)}, {}) == "step 2 of sequence 0 is out of order");
    CHECK(read_error(1, {at(0, 0), at(1, 0)}, {}) == "step 0 of sequence 1 is out of order");
    CHECK(read_error(1, {at(0, 0)}, {at(0, 1)}) == "step 1 of sequence 0 is out of order");
    CHECK(read_error(std::uint64_t{1} << 33, {}, {}) ==
          "found the impossible number of 8589934592 sequences");
}
