#include "mapping/mapping_samples.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace qcalib {

namespace {

// Box-Muller.
double normal(Random& random) {
    const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
    return radius * std::cos(2 * std::numbers::pi * random.unit());
}

template <typename T>
void fill_small(MutableTensorView view, Random& random) {
    for (T& element : view.as<T>()) element = static_cast<T>(random.below(2));
}

template <typename From, typename To>
Tensor converted_to(const Tensor& tensor) {
    Tensor answer({data_type_of<To>(), tensor.shape(), MemoryOrder::row_major});
    auto target = answer.mutable_view().as<To>();
    const auto source = tensor.view().as<From>();
    for (std::size_t i = 0; i < source.size(); ++i) target[i] = static_cast<To>(source[i]);
    return answer;
}

// Integers of another width: what converters change.
Tensor converted(const Tensor& tensor, DataType type, const std::string& input) {
    if (tensor.type() == type) return tensor;
    if (tensor.type() == DataType::int32 && type == DataType::int64)
        return converted_to<std::int32_t, std::int64_t>(tensor);
    if (tensor.type() == DataType::int64 && type == DataType::int32)
        return converted_to<std::int64_t, std::int32_t>(tensor);
    if (tensor.type() == DataType::uint8 && type == DataType::float32)
        return converted_to<std::uint8_t, float>(tensor);
    fail("input '{}': expected the same type in both models, found {} and {}", printable(input),
         name_of(tensor.type()), name_of(type));
}

}  // namespace

Tensor random_input(DataType type, const Shape& shape, std::uint64_t seed, double scale) {
    Tensor tensor({type, shape, MemoryOrder::row_major});
    const MutableTensorView view = tensor.mutable_view();
    Random random(seed);
    switch (type) {
        case DataType::float32: {
            std::size_t i = 0;
            for (float& element : view.as<float>()) {
                const double offset = std::fmod(static_cast<double>(++i) * std::numbers::phi, 1.0);
                element = static_cast<float>(scale * (0.1 + normal(random) + 0.05 * offset));
            }
            break;
        }
        case DataType::int64:
            fill_small<std::int64_t>(view, random);
            break;
        case DataType::int32:
            fill_small<std::int32_t>(view, random);
            break;
        case DataType::int16:
            fill_small<std::int16_t>(view, random);
            break;
        default:
            if (size_of(type) != 1) fail("no random data for an input of type {}", name_of(type));
            for (std::byte& element : view.bytes()) element = static_cast<std::byte>(random.below(2));
    }
    return tensor;
}

Tensor laid_out(const Tensor& tensor, const AxisMap& map, const Shape& shape, DataType type,
                const std::string& input) {
    const Tensor moved =
        map.form == AxisMap::Form::axes && !map.identity() ? permuted(tensor.view(), map) : tensor;
    Tensor answer({moved.type(), shape, MemoryOrder::row_major});
    if (answer.view().elements() != moved.view().elements()) {
        fail("input '{}': expected data for shape {}, found shape {}", printable(input), to_string(shape),
             to_string(moved.shape()));
    }
    const auto source = moved.view().bytes();
    std::copy(source.begin(), source.end(), answer.mutable_view().data);
    return converted(answer, type, input);
}

}  // namespace qcalib
