#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "tensor/data_type.h"

namespace qcalib {

class Tensor;

// One element of a string tensor: bytes that can be copied as they are, like a number's. A short string lies
// in it, a longer one in memory of the tensor that it comes from (Tensor::own_elements). All zeros are "".
class StringElement {
  public:
    static constexpr std::size_t most_inside = 24;  // as many characters as a number has as text

    std::string_view text() const { return {length_ <= most_inside ? inside_ : outside_, length_}; }
    // Shows `text`, which must outlive it where it is longer than most_inside.
    void show(std::string_view text) {
        length_ = text.size();
        if (length_ > most_inside) {
            outside_ = text.data();
        } else if (!text.empty()) {
            std::memcpy(inside_, text.data(), text.size());
        }
    }

  private:
    std::uint64_t length_;
    union {
        char inside_[most_inside];  // NOLINT(modernize-avoid-c-arrays): of a union
        const char* outside_;
    };
};
static_assert(std::is_trivial_v<StringElement> && sizeof(StringElement) == 32);

// One element of a sequence or of an optional value (rank 1, of no or one element): a tensor, or a sequence
// again, in memory of the value that it comes from (Tensor::own_elements).
using TensorElement = const Tensor*;

template <>
constexpr DataType data_type_of<StringElement>() {
    return DataType::string;
}

}  // namespace qcalib
