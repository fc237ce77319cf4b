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
        CHECK((format->suffix().front() == '.' || format->suffix().front() == '/'));
        CHECK(format->summary().size() > 40);
        CHECK(format->limits().size() > 20);
        CHECK(&find_format(format->name()) == format);
    }
    CHECK(names == std::set<std::string>{"snpe", "mqbench", "aimet-0.4.0", "aimet-0.5.0", "aimet-0.6.1",
                                         "aimet-1.0.0", "aimet-2.0.0", "ppq", "qairt-dump", "ort-table",
                                         "ort-overrides", "tensorrt-cache", "tidl-prototxt", "tidl-onnx",
                                         "tidl-options", "circle-qparam", "circle-model"});
}

TEST_CASE("an unknown format is an error that lists the formats and offers the nearest") {
    const auto message_of = [](const std::string& name) -> std::string {
        try {
            find_format(name);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    CHECK(message_of("snp").starts_with("format 'snp': expected one of snpe, mqbench, aimet-0.4.0, "));
    CHECK(message_of("snp").ends_with("(did you mean 'snpe'?)"));
    CHECK(message_of("aimet-1.0").ends_with("(did you mean 'aimet-1.0.0'?)"));
    CHECK(message_of("protobuf\x02").starts_with("format 'protobuf\\x02': expected one of snpe, "));
}

TEST_CASE("a format that is only read cannot be written, and says which can") {
    Remarks remarks;
    CHECK_THROWS_WITH_AS(
        find_format("ppq").emit(EncodingSet{}, remarks),
        "format 'ppq': is only read; expected one of snpe, mqbench, aimet-0.4.0, aimet-0.5.0, "
        "aimet-0.6.1, aimet-1.0.0, aimet-2.0.0, tidl-prototxt, tidl-onnx, tidl-options, circle-qparam",
        Error);
}
