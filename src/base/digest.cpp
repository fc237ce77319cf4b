#include "base/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

namespace qcalib {

struct Sha256::State {
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
    EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

Digest Sha256::finish() {
    Digest digest = {};
    unsigned int length = 0;
    EVP_DigestFinal_ex(state_->context.get(), reinterpret_cast<unsigned char*>(digest.data()), &length);
    return digest;
}

Digest Sha256::so_far() const {
    const State copy;
    EVP_MD_CTX_copy_ex(copy.context.get(), state_->context.get());
    Digest digest = {};
    unsigned int length = 0;
    EVP_DigestFinal_ex(copy.context.get(), reinterpret_cast<unsigned char*>(digest.data()), &length);
    return digest;
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return text;
}

}  // namespace qcalib
