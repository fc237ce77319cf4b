#include "simulate/simulation_tap.h"

#include <algorithm>

namespace qcalib {

SimulationTap::SimulationTap(std::vector<bool> quantized, std::vector<bool> seen)
    : quantized_(std::move(quantized)), seen_(std::move(seen)) {}

void SimulationTap::set(const Quantization* quantization, ValueObserver* observer) {
    runs_.local() = {quantization, observer};
}

TapRight SimulationTap::right(const Graph& /*graph*/, ValueId value) const {
    if (value < quantized_.size() && quantized_[value]) return TapRight::write;
    return value < seen_.size() && seen_[value] ? TapRight::read : TapRight::ignore;
}

void SimulationTap::on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) {
    const Run& run = runs_.local();
    QuantizationSums sums;
    const TensorQuantizer* quantizer =
        run.quantization == nullptr ? nullptr : run.quantization->activations[value].get();
    if (view.descriptor->type != DataType::float32) quantizer = nullptr;
    if (quantizer != nullptr) sums = quantizer->apply(view);
    if (run.observer != nullptr) run.observer->see(value, view, quantizer == nullptr ? nullptr : &sums);
}

void Capture::begin(const std::vector<bool>* wanted) {
    wanted_ = wanted;
    for (Place& place : places_) place.used = 0;
}

void Capture::see(ValueId value, TensorView view, const QuantizationSums* /*sums*/) {
    if (wanted_ != nullptr && !(*wanted_)[value]) return;
    Place& place = places_[value];
    if (place.used == place.tensors.size()) place.tensors.emplace_back();
    Tensor& tensor = place.tensors[place.used++];
    if (!(tensor.descriptor() == *view.descriptor) || tensor.data() == nullptr)
        tensor = Tensor(*view.descriptor);
    std::ranges::copy(view.bytes(), tensor.mutable_view().bytes().begin());
}

std::span<const Tensor> Capture::of(ValueId value) const {
    return std::span(places_[value].tensors).first(places_[value].used);
}

Comparer::Comparer(const Capture& reference, std::span<ValueErrors> errors, ValueObserver* next)
    : reference_(reference), errors_(errors), next_(next), times_(errors.size()) {}

void Comparer::see(ValueId value, TensorView view, const QuantizationSums* sums) {
    if (view.descriptor->type == DataType::float32) {
        ValueErrors& errors = errors_[value];
        const std::span<const Tensor> before = reference_.of(value);
        const std::uint32_t time = times_[value]++;
        if (time < before.size() && before[time].shape() == view.descriptor->shape)
            errors.error.add(compare(before[time].view(), view));
        else
            ++errors.misfits;
        if (sums != nullptr) errors.quantized.add(*sums);
    }
    if (next_ != nullptr) next_->see(value, view, sums);
}

}  // namespace qcalib
