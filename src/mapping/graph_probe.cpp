#include "mapping/graph_probe.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "runtime/kernel_registry.h"

namespace qcalib {

class GraphProbe::ProbeTap : public Tap {
  public:
    TapRight right(const Graph& /*graph*/, ValueId /*value*/) const override { return TapRight::read; }
    void on_value(ValueId value, std::uint64_t /*sample*/, MutableTensorView view) override {
        if (visit == nullptr || view.descriptor->type != DataType::float32) return;
        if (view.descriptor->order == MemoryOrder::row_major) {
            (*visit)(value, view);
            return;
        }
        Tensor ordered({view.descriptor->type, view.descriptor->shape, MemoryOrder::row_major});
        copy_to_order(view, ordered.mutable_view());
        (*visit)(value, ordered.view());
    }

    const Visit* visit = nullptr;
};

GraphProbe::GraphProbe(std::shared_ptr<const Graph> graph, std::string label)
    : graph_(std::move(graph)), label_(std::move(label)), tap_(std::make_unique<ProbeTap>()) {
    const std::vector<std::string> missing = missing_operators(*graph_, builtin_kernels());
    if (!missing.empty()) {
        fail("{}: cannot be run, {} not supported:\n  {}", label_,
             missing.size() == 1 ? "an operator is" : "operators are", join(missing, "\n  "));
    }
    program_ = std::make_unique<Program>(graph_, builtin_kernels(), std::vector<Tap*>{tap_.get()});
    align_constants();
}

GraphProbe::~GraphProbe() = default;

void GraphProbe::run(std::span<const Tensor> inputs, const Visit& visit) {
    tap_->visit = &visit;
    try {
        frame_.run(program_->plan(inputs), inputs, 0);
    } catch (const Error& error) {
        tap_->visit = nullptr;
        fail("{}: {}", label_, error.what());
    }
    tap_->visit = nullptr;
}

const Tensor* GraphProbe::constant(ValueId value) const {
    const auto found = aligned_.find(value);
    if (found != aligned_.end()) return &found->second;
    const Tensor* tensor = program_->constant(value);
    return tensor != nullptr && tensor->type() == DataType::float32 ? tensor : nullptr;
}

void GraphProbe::align_constants() {
    for (ValueId id = 0; id < graph_->values.size(); ++id) {
        const Tensor* tensor = constant(id);
        if (tensor == nullptr || reinterpret_cast<std::uintptr_t>(tensor->data()) % alignof(float) == 0)
            continue;
        Tensor copy({tensor->type(), tensor->shape(), MemoryOrder::row_major});
        const std::span<const std::byte> bytes = tensor->view().bytes();
        std::copy(bytes.begin(), bytes.end(), copy.mutable_view().data);
        aligned_.emplace(id, std::move(copy));
    }
}

std::vector<ProbedValue> GraphProbe::take_fingerprints(std::span<const std::vector<Tensor>> samples) {
    std::vector<ProbedValue> values(graph_->values.size());
    for (std::size_t sample = 0; sample < samples.size(); ++sample) {
        run(samples[sample], [&](ValueId id, TensorView view) {
            ProbedValue& value = values[id];
            if (view.elements() == 0) return;
            if (value.samples.size() > sample) {
                value.repeated = true;
                return;
            }
            value.shape = view.descriptor->shape;
            value.samples.push_back(fingerprint(view));
        });
    }
    for (ValueId id = 0; id < values.size(); ++id) {
        ProbedValue& value = values[id];
        const Tensor* tensor = constant(id);
        if (tensor != nullptr && tensor->view().elements() > 0) {
            value.constant = true;
            value.shape = tensor->shape();
            value.samples = {fingerprint(tensor->view())};
        } else if (value.samples.size() != samples.size()) {
            value.samples.clear();  // of a branch that not all samples take
        }
        for (const Fingerprint& print : value.samples)
            value.largest = std::max(value.largest, print.largest());
        value.poor = is_poor(value.samples);
    }
    return values;
}

}  // namespace qcalib
