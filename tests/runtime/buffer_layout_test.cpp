#include "runtime/buffer_layout.h"

#include <doctest/doctest.h>

#include "base/random.h"

using namespace qcalib;

namespace {

bool overlap(std::size_t a, std::size_t a_bytes, std::size_t b, std::size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

TEST_CASE("buffers that are in use at the same step never share bytes") {
    Random random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<BufferLife> buffers(1 + random.below(40));
        std::size_t total = 0;
        for (BufferLife& buffer : buffers) {
            buffer.bytes = random.below(5000);
            buffer.first = random.below(50);
            buffer.last = buffer.first + random.below(10);
            total += (buffer.bytes + 64) / 64 * 64;
        }
        const BufferLayout layout = lay_out(buffers);
        CHECK(layout.bytes <= total);
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            CHECK(layout.offsets[i] % 64 == 0);
            CHECK(layout.offsets[i] + buffers[i].bytes <= layout.bytes);
            for (std::size_t j = 0; j < i; ++j) {
                if (buffers[i].first > buffers[j].last || buffers[j].first > buffers[i].last) continue;
                CHECK_FALSE(
                    overlap(layout.offsets[i], buffers[i].bytes, layout.offsets[j], buffers[j].bytes));
            }
        }
    }
}

TEST_CASE("a chain of equal buffers needs the room of two") {
    std::vector<BufferLife> chain;
    for (std::size_t step = 0; step < 10; ++step) chain.push_back({1024, step, step + 1});
    CHECK(lay_out(chain).bytes == 2 * 1024);
}

TEST_CASE("no buffers need no room") {
    CHECK(lay_out({}).bytes == 0);
}
