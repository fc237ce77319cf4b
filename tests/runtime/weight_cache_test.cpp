#include "runtime/weight_cache.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "support/operator_harness.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

bool all_zero(const HugeBuffer& buffer) {
    for (std::size_t i = 0; i < buffer.size(); ++i) {
        if (buffer.data()[i] != std::byte{0}) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("a huge buffer is aligned, zeroed and all there") {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, (std::size_t{1} << 20) - 1,
                                    std::size_t{1} << 20, (std::size_t{3} << 20) + 5, std::size_t{8} << 20}) {
        INFO(bytes);
        HugeBuffer buffer(bytes);
        REQUIRE(buffer.size() == bytes);
        const std::uintptr_t alignment = bytes >= (std::size_t{1} << 20) ? std::uintptr_t{2} << 20 : 64;
        CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment == 0);
        CHECK(all_zero(buffer));
        std::memset(buffer.data(), 7, bytes);
        const std::byte* data = buffer.data();
        HugeBuffer moved(std::move(buffer));
        CHECK(moved.data() == data);
        CHECK(moved.data()[bytes - 1] == std::byte{7});
        HugeBuffer assigned;
        assigned = std::move(moved);
        CHECK(assigned.data() == data);
        CHECK(assigned.size() == bytes);
    }
    CHECK(HugeBuffer(0).data() == nullptr);
    CHECK(HugeBuffer().size() == 0);
}

TEST_CASE("packed weights are made once per data and layout") {
    WeightCache cache;
    const Tensor weight = random_tensor({16}, 1);
    const Tensor same = weight;  // NOLINT(performance-unnecessary-copy-initialization): shares the elements
    const Tensor other = random_tensor({16}, 1);
    int filled = 0;
    const auto fill = [&](std::byte* target) {
        ++filled;
        std::memcpy(target, weight.data(), 64);
    };
    const auto first = cache.get(weight, "a", 64, fill);
    CHECK(std::memcmp(first->data(), weight.data(), 64) == 0);
    CHECK(cache.get(same, "a", 64, fill) == first);
    CHECK(filled == 1);
    CHECK(cache.get(weight, "b", 64, fill) != first);
    CHECK(cache.get(other, "a", 64, fill) != first);
    CHECK(filled == 3);
    CHECK(cache.bytes() == 3 * 64);
}

TEST_CASE("weights that went away are not mistaken for new ones at their address") {
    WeightCache cache;
    for (std::uint64_t i = 0; i < 50; ++i) {
        const Tensor weight = random_tensor({64}, i);
        const auto packed = cache.get(weight, "", weight.descriptor().bytes(), [&](std::byte* target) {
            std::memcpy(target, weight.data(), weight.descriptor().bytes());
        });
        CHECK(std::memcmp(packed->data(), weight.data(), weight.descriptor().bytes()) == 0);
    }
}

TEST_CASE("a fill that fails leaves nothing behind") {
    WeightCache cache;
    const Tensor weight = random_tensor({4}, 1);
    CHECK_THROWS_AS(cache.get(weight, "", 16, [](std::byte*) { throw std::runtime_error("no"); }),
                    std::runtime_error);
    CHECK(cache.bytes() == 0);
    CHECK(cache.get(weight, "", 16, [](std::byte* target) { target[0] = std::byte{1}; })->data()[0] ==
          std::byte{1});
}

TEST_CASE("several threads get one packed copy") {
    WeightCache cache;
    const Tensor weight = random_tensor({1024}, 1);
    std::vector<std::shared_ptr<const HugeBuffer>> got(4);
    std::vector<std::thread> threads;
    threads.reserve(got.size());
    for (auto& packed : got) {
        threads.emplace_back([&cache, &weight, &packed] {
            for (int layout = 0; layout < 20; ++layout) {
                packed = cache.get(weight, std::to_string(layout), 4096,
                                   [&](std::byte* target) { std::memcpy(target, weight.data(), 4096); });
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& packed : got) CHECK(packed == got[0]);
    CHECK(cache.bytes() == 20 * 4096);
}

TEST_CASE("weights in a mapped file can lie anywhere and are read again after their pages went") {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / "qcalib_weight_cache_test.bin";
    const Tensor values = random_tensor({64, 64, 3, 3}, 1);
    const std::size_t bytes = values.descriptor().bytes();
    {
        std::ofstream file(path, std::ios::binary);
        file.put('x');
        file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(bytes));
    }
    const auto mapped = std::make_shared<const MappedFile>(path);
    const Tensor unaligned(values.descriptor(), mapped, mapped->bytes().subspan(1));
    OperatorCase test{.op_type = "Conv", .opset = 11};
    test.inputs = {random_tensor({1, 64, 8, 8}, 2), values};
    test.constant = {false, true};
    const Tensor expected = run_operator(test, Kernels::fast)[0];
    test.inputs[1] = unaligned;
    const Tensor output = run_operator(test, Kernels::fast)[0];
    CHECK(std::memcmp(output.data(), expected.data(), expected.descriptor().bytes()) == 0);
    CHECK(std::memcmp(unaligned.data(), values.data(), bytes) == 0);
    std::filesystem::remove(path);
}
