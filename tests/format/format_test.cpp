#include "format/format.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"

using namespace qcalib;

TEST_CASE("every format has a name of its own, a suffix and documentation, and is found by its name") {
    REQUIRE_FALSE(formats().empty());
    std::set<std::string> names;
    for (const Format* format : formats()) {
        CHECK(names.insert(format->name()).second);
        CHECK(format->suffix().size() > 1);
        CHECK(format->suffix().front() == '.');
        CHECK(format->summary().size() > 40);
        CHECK(&find_format(format->name()) == format);
    }
    CHECK(names.count("snpe") == 1);
}

TEST_CASE("an unknown format is an error that lists the formats and offers the nearest") {
    CHECK_THROWS_WITH_AS(find_format("snp"), "format 'snp': expected one of snpe (did you mean 'snpe'?)",
                         Error);
    CHECK_THROWS_WITH_AS(find_format("protobuf\x02"), "format 'protobuf\\x02': expected one of snpe", Error);
}
