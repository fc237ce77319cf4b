#include "base/digest.h"

#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace qcalib {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::string sha256(std::string_view text) {
    Sha256 hash;
    hash.update(bytes_of(text));
    return to_hex(hash.finish());
}

}  // namespace

// FIPS 180-2, appendix B, and the empty message.
TEST_CASE("SHA-256 answers the published values") {
    CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256(std::string(1'000'000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 does not depend on how the bytes are cut") {
    const std::string text(1000, 'x');
    for (const std::size_t piece : {1U, 7U, 63U, 64U, 65U, 999U}) {
        Sha256 hash;
        for (std::size_t start = 0; start < text.size(); start += piece) {
            hash.update(bytes_of(std::string_view(text).substr(start, piece)));
        }
        hash.update({});
        CHECK(to_hex(hash.finish()) == sha256(text));
    }
}

TEST_CASE("the SHA-256 so far leaves what follows as it is") {
    Sha256 hash;
    hash.update(bytes_of("ab"));
    CHECK(to_hex(hash.so_far()) == sha256("ab"));
    hash.update(bytes_of("c"));
    CHECK(to_hex(hash.so_far()) == sha256("abc"));
    CHECK(to_hex(hash.finish()) == sha256("abc"));
}

TEST_CASE("hexadecimal is lower case with two digits for each byte") {
    const std::vector<std::byte> bytes = {std::byte{0}, std::byte{0x0f}, std::byte{0xab}};
    CHECK(to_hex(bytes) == "000fab");
    CHECK(to_hex({}).empty());
}

}  // namespace qcalib
