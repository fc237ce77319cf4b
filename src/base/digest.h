#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace qcalib {

using Digest = std::array<std::byte, 32>;

// SHA-256 over bytes given piece by piece.
class Sha256 {
  public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;

    void update(std::span<const std::byte> bytes);
    Digest finish();
    // The digest of the bytes given so far; more may follow.
    Digest so_far() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// Lower-case hexadecimal.
std::string to_hex(std::span<const std::byte> bytes);

}  // namespace qcalib
