#include "simulate/fake_quantize.h"

#include <cassert>

#include "base/error.h"
#include "base/text.h"
#include "simulate/element_kernels.h"
#include "simulate/grid_walk.h"

namespace qcalib {

namespace {

CodeGrid code_grid(const Encoding& encoding) {
    const auto codes = static_cast<double>((std::int64_t{1} << encoding.bits) - 1);
    const auto offset = static_cast<double>(encoding.offset);
    return {encoding.scale, offset, offset + codes};
}

DataType half_type(const TensorEncoding& encoding) {
    return encoding.float_name.starts_with("bf") ? DataType::bfloat16 : DataType::float16;
}

}  // namespace

void QuantizationSums::add(const QuantizationSums& other) {
    elements += other.elements;
    clipped += other.clipped;
    signal += other.signal;
    error += other.error;
}

void fake_quantize(std::span<float> elements, const Encoding& encoding, ValueRounding rounding,
                   QuantizationSums& sums) {
    const ElementChanges changes =
        quantize_elements(elements.data(), elements.size(), code_grid(encoding), rounding);
    sums.add({elements.size(), changes.clipped, changes.signal, changes.error});
}

TensorQuantizer::TensorQuantizer(TensorEncoding encoding, ValueRounding rounding)
    : encoding_(std::move(encoding)), rounding_(rounding) {
    const std::string name = printable(encoding_.tensor);
    if (encoding_.type == CodeType::floating) {
        const int width = encoding_.width();
        if (width != 16 && width != 32) {
            fail("'{}': expected integers or floating point of 16 or 32 bits, found {}", name,
                 encoding_.float_name.empty() ? fmt::format("floating point of {} bits", width)
                                              : printable(encoding_.float_name));
        }
        return;
    }
    if (encoding_.encodings.empty()) fail("'{}': expected a range or a scale, found only a width", name);
    for (const Encoding& one : encoding_.encodings) step_ += one.scale;
    step_ /= static_cast<double>(encoding_.encodings.size());
}

QuantizationSums TensorQuantizer::apply(MutableTensorView view) const {
    assert(view.descriptor->type == DataType::float32);
    QuantizationSums sums;
    const std::span<float> elements = view.as<float>();
    if (encoding_.type == CodeType::floating) {
        if (encoding_.width() == 16) round_to(half_type(encoding_), elements);
        sums.elements = elements.size();
        return sums;
    }
    walk_grids(view, encoding_, [&](std::span<float> run, const Encoding& grid) {
        fake_quantize(run, grid, rounding_, sums);
    });
    return sums;
}

}  // namespace qcalib
