#include "base/remarks.h"

#include <algorithm>
#include <thread>

#include <doctest/doctest.h>

namespace qcalib {

TEST_CASE("remarks keep their order and each text once") {
    Remarks remarks;
    CHECK(remarks.empty());
    remarks.add("b");
    remarks.add("a");
    remarks.add("b");
    CHECK(remarks.all() == std::vector<std::string>{"b", "a"});
    CHECK_FALSE(remarks.empty());
}

TEST_CASE("remarks of several threads are all kept") {
    Remarks remarks;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&remarks, t] {
            for (int i = 0; i < 100; ++i) remarks.add(std::to_string(t * 50 + i));
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(remarks.all().size() == 250);
}

}  // namespace qcalib
