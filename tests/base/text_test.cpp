#include "base/text.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace qcalib {

namespace {

template <typename Action>
std::string error_of(Action action) {
    return test::message_of<Error>(action);
}

}  // namespace

TEST_CASE("the nearest name is the one with the fewest edits, and none where all are far") {
    const std::vector<std::string> names = {"minmax", "ema", "percentile", "entropy"};
    CHECK(nearest_name("minmix", names) == "minmax");
    CHECK(nearest_name("percentil", names) == "percentile");
    CHECK(nearest_name("em", names) == "ema");
    CHECK(nearest_name("entorpy", names) == "entropy");
    CHECK(nearest_name("histogram", names).empty());
    CHECK(nearest_name("", names).empty());
    CHECK(nearest_name("xyz", names).empty());
    CHECK(nearest_name("minmax", {}).empty());
}

TEST_CASE("a suggestion shows the nearest name as it may be printed") {
    const std::vector<std::string> names = {"in\x01put", "output"};
    CHECK(did_you_mean("outptu", names) == " (did you mean 'output'?)");
    CHECK(did_you_mean("input", names) == " (did you mean 'in\\x01put'?)");
    CHECK(did_you_mean("weights", names).empty());
}

TEST_CASE("a star in a pattern stands for any run of bytes and a question mark for one") {
    CHECK(glob_match("*", ""));
    CHECK(glob_match("conv*", "conv1/weight"));
    CHECK(glob_match("*weight", "conv1/weight"));
    CHECK(glob_match("*a*b*", "xaxxbx"));
    CHECK(glob_match("a?c", "abc"));
    CHECK(glob_match("a*bc", "abcbc"));
    CHECK(glob_match("[x]", "[x]"));
    CHECK(glob_match("", ""));
    CHECK_FALSE(glob_match("", "a"));
    CHECK_FALSE(glob_match("a?c", "ac"));
    CHECK_FALSE(glob_match("conv", "conv1"));
    CHECK_FALSE(glob_match("*a*b", "xbxa"));
}

TEST_CASE("a pattern of many stars is matched without exploding") {
    const std::string name(2000, 'a');
    std::string pattern;
    for (int i = 0; i < 200; ++i) pattern += "a*";
    CHECK(glob_match(pattern, name));
    CHECK_FALSE(glob_match(pattern + "b", name));
}

TEST_CASE("text is trimmed, split and joined") {
    CHECK(trim(" \t a b\r\n") == "a b");
    CHECK(trim(" \n ").empty());
    CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
    CHECK(split("", ',') == std::vector<std::string>{""});
    CHECK(split("a,", ',') == std::vector<std::string>{"a", ""});
    const std::vector<std::string> parts = {"a", "b", "c"};
    CHECK(join(parts, ", ") == "a, b, c");
    CHECK(join({}, ", ").empty());
}

TEST_CASE("a printable name keeps well-formed UTF-8 and shows all other bytes in hexadecimal") {
    CHECK(printable("conv1/weight:0") == "conv1/weight:0");
    CHECK(printable("größe-層-😀") == "größe-層-😀");
    CHECK(printable(std::string_view("a\0b\n\x7f", 5)) == "a\\x00b\\x0a\\x7f");
    CHECK(printable("\x1b[31m") == "\\x1b[31m");
    CHECK(printable("\xff\xfe") == "\\xff\\xfe");
    CHECK(printable("\xc3") == "\\xc3");                             // cut sequence
    CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // overlong
    CHECK(printable("\xe0\x80\x80") == "\\xe0\\x80\\x80");           // overlong
    CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // surrogate
    CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
    CHECK(printable("\xc2\x85") == "\\xc2\\x85");                    // a C1 control
    CHECK(printable("\xe5\xb1") == "\\xe5\\xb1");
}

TEST_CASE("integers are parsed whole or refused with what they are for") {
    CHECK(parse_integer(" 42 ", "--limit") == 42);
    CHECK(parse_integer("-9223372036854775808", "x") == std::numeric_limits<std::int64_t>::min());
    CHECK(error_of([] { parse_integer("12x", "--limit"); }) ==
          "--limit: expected a whole number, found '12x'");
    CHECK_THROWS_AS(parse_integer("", "x"), Error);
    CHECK_THROWS_AS(parse_integer("1.5", "x"), Error);
    CHECK_THROWS_AS(parse_integer("9223372036854775808", "x"), Error);
}

TEST_CASE("real numbers are parsed whole or refused with what they are for") {
    CHECK(parse_real("0.5", "x") == 0.5);
    CHECK(parse_real("-1e-3 ", "x") == -1e-3);
    CHECK(error_of([] { parse_real("1,5", "--mean"); }) == "--mean: expected a number, found '1,5'");
    CHECK_THROWS_AS(parse_real("", "x"), Error);
    CHECK_THROWS_AS(parse_real("1e999", "x"), Error);
}

TEST_CASE("byte counts are shown with the largest unit that fits") {
    CHECK(human_bytes(0) == "0 B");
    CHECK(human_bytes(1023) == "1023 B");
    CHECK(human_bytes(1024) == "1.0 KiB");
    CHECK(human_bytes(320 * 1024) == "320.0 KiB");
    CHECK(human_bytes(1536ULL * 1024 * 1024) == "1.5 GiB");
    CHECK(human_bytes(1024ULL * 1024 - 1) == "1.0 MiB");
    CHECK(human_bytes(std::numeric_limits<std::uint64_t>::max()) == "16777216.0 TiB");
}

TEST_CASE("memory sizes are parsed with and without units") {
    CHECK(parse_bytes("1000000", "x") == 1000000);
    CHECK(parse_bytes("512M", "x") == 512ULL << 20U);
    CHECK(parse_bytes("2GiB", "x") == 2ULL << 30U);
    CHECK(parse_bytes("2 gb", "x") == 2ULL << 30U);
    CHECK(parse_bytes("1.5k", "x") == 1536);
    CHECK(parse_bytes("1T", "x") == 1ULL << 40U);
    CHECK(parse_bytes("7 B", "x") == 7);
    for (const char* bad : {"", "M", "12Q", "12KK", "12iB", "-1", "1e30", "nan", "inf", "12M3", "1\xff"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_bytes(bad, "--memory"), Error);
    }
    CHECK(error_of([] { parse_bytes("12Q", "--memory"); }) ==
          "--memory: expected a size such as 800M or 2G, found '12Q'");
}

}  // namespace qcalib
