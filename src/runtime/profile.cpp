#include "runtime/profile.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "runtime/guards.h"
#include "runtime/onednn.h"

namespace qcalib {

namespace {

using Clock = std::chrono::steady_clock;

std::string name_of(const Graph& graph, const Step& step) {
    switch (step.kind) {
        case Step::Kind::run: {
            const Node& node = graph.nodes[step.node];
            return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
        }
        case Step::Kind::reorder:
            return "(reorder)";
        case Step::Kind::copy:
            return "(copy)";
        case Step::Kind::widen:
            return "(widen)";
        case Step::Kind::show:
            break;
    }
    return "(show)";
}

double elements(const TensorDescriptor& descriptor) {
    return static_cast<double>(element_count(descriptor.shape));
}

const TensorDescriptor* descriptor_of(const Plan& plan, std::span<const std::int32_t> tensors,
                                      std::size_t i) {
    if (i >= tensors.size() || tensors[i] < 0) return nullptr;
    return &plan.tensors()[static_cast<std::size_t>(tensors[i])].descriptor;
}

// Each element of a product's output, or of a transposed convolution's input, meets as many weights as one
// filter has.
double operations_of(const Plan& plan, const Node& node, const Step& step) {
    const TensorDescriptor* first = descriptor_of(plan, step.inputs, 0);
    const TensorDescriptor* second = descriptor_of(plan, step.inputs, 1);
    const TensorDescriptor* output = descriptor_of(plan, step.outputs, 0);
    if (first == nullptr || second == nullptr || output == nullptr) return 0;
    const bool transposed = node.op_type == "ConvTranspose";
    if (node.op_type == "Conv" || transposed) {
        const double filter =
            elements(*second) / static_cast<double>(std::max<std::int64_t>(1, second->shape[0]));
        return 2 * filter * elements(transposed ? *first : *output);
    }
    if (node.op_type == "MatMul" || node.op_type == "Gemm") {
        const bool swapped = node.op_type == "Gemm" && node.attribute<std::int64_t>("transA", 0) != 0;
        return 2 * elements(*output) *
               static_cast<double>(swapped ? first->shape.front() : first->shape.back());
    }
    return 0;
}

double bytes_of(const Plan& plan, const Step& step) {
    double bytes = 0;
    for (const auto& tensors : {step.inputs, step.outputs}) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            const TensorDescriptor* descriptor = descriptor_of(plan, tensors, i);
            if (descriptor != nullptr) bytes += static_cast<double>(descriptor->bytes());
        }
    }
    return bytes;
}

// The best of several runs: what the machine can do when nothing else runs.
template <typename Run>
double least_seconds(const Run& run) {
    double least = 1e9;
    for (int i = 0; i < 8; ++i) {
        const Clock::time_point start = Clock::now();
        run();
        least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return least;
}

double peak_operations() {
    constexpr std::int64_t size = 512;
    const DenormalGuard denormals;
    const SingleThreadGuard single_thread;
    const std::vector<float> numbers(size * size, 0.5F);
    std::vector<float> product(numbers.size());
    WeightCache weights;
    const InputInfo second{{DataType::float32, {size, size}, MemoryOrder::row_major}, std::nullopt, false};
    const auto matmul = onednn::make_matmul({{size, size}, {size, size}, {size, size}}, {second, weights});
    if (matmul == nullptr) return 0;
    const HugeBuffer scratch(matmul->scratch_bytes());
    const std::unique_ptr<KernelState> state = matmul->make_state();
    Workspace workspace{{scratch.data(), scratch.size()}, state.get()};
    const onednn::Operands operands{reinterpret_cast<const std::byte*>(numbers.data()),
                                    reinterpret_cast<const std::byte*>(numbers.data()), nullptr,
                                    reinterpret_cast<std::byte*>(product.data())};
    return 2.0 * size * size * size / least_seconds([&] { matmul->execute(operands, workspace); });
}

double peak_bytes() {
    constexpr std::size_t size = std::size_t{64} << 20;
    const HugeBuffer source(size);
    const HugeBuffer target(size);
    std::memset(source.data(), 1, size);
    return 2.0 * size / least_seconds([&] { std::memcpy(target.data(), source.data(), size); });
}

}  // namespace

void Profile::add_run(const Plan& plan, std::span<const double> seconds) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        const Step& step = plan.steps()[i];
        if (step.kind == Step::Kind::show) continue;
        OperatorCost& cost = costs_[name_of(plan.graph(), step)];
        ++cost.calls;
        cost.seconds += seconds[i];
        cost.bytes += bytes_of(plan, step);
        if (step.kind == Step::Kind::run)
            cost.operations += operations_of(plan, plan.graph().nodes[step.node], step);
    }
}

void Profile::merge(const Profile& other) {
    for (const auto& [name, cost] : other.costs_) {
        OperatorCost& sum = costs_[name];
        sum.calls += cost.calls;
        sum.seconds += cost.seconds;
        sum.bytes += cost.bytes;
        sum.operations += cost.operations;
    }
}

Peak measure_peak() {
    return {peak_operations(), peak_bytes()};
}

}  // namespace qcalib
