#include "runtime/onednn.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/onednn_parts.h"

namespace qcalib::onednn {

namespace {

thread_local int library_depth = 0;

constexpr std::size_t alignment = 64;

std::size_t aligned_size(const MemoryDescriptor& descriptor) {
    return (descriptor.get_size() + alignment - 1) / alignment * alignment;
}

void check(dnnl_status_t status, const char* what) {
    if (status == dnnl_success) return;
    if (status == dnnl_out_of_memory) throw std::bad_alloc();
    fail("oneDNN could not {} (status {})", what, static_cast<int>(status));
}

// A text that is the same for the same descriptor.
std::string text_of(const MemoryDescriptor& descriptor) {
#if DNNL_VERSION_MAJOR >= 3
    std::string text;
    const auto add = [&text](const dnnl::memory::dims& numbers) {
        for (const auto number : numbers) text += std::to_string(number) + ",";
        text += ";";
    };
    add(descriptor.get_dims());
    add(descriptor.get_padded_dims());
    add(descriptor.get_strides());
    add(descriptor.get_inner_blks());
    add(descriptor.get_inner_idxs());
    return text;
#else
    return {reinterpret_cast<const char*>(&descriptor.data), sizeof(descriptor.data)};
#endif
}

// The tensor with its elements aligned: itself, or a copy where it lies anyhow in a mapped file.
Tensor with_aligned_elements(const Tensor& tensor) {
    if (reinterpret_cast<std::uintptr_t>(tensor.data()) % size_of(tensor.type()) == 0) return tensor;
    Tensor copy(tensor.descriptor());
    std::memcpy(copy.mutable_view().data, tensor.data(), tensor.descriptor().bytes());
    return copy;
}

dnnl::memory unbound(const MemoryDescriptor& descriptor, const dnnl::engine& engine) {
    return {descriptor, engine, DNNL_MEMORY_NONE};
}

void pack(const Tensor& weights, const MemoryDescriptor& from, const MemoryDescriptor& to,
          const dnnl::engine& engine, std::byte* target) {
    const Tensor aligned = with_aligned_elements(weights);
    // The library takes what it only reads as writable too.
    dnnl::memory source(from, engine, const_cast<std::byte*>(aligned.data()));  // NOLINT
    dnnl::memory destination(to, engine, target);
    dnnl::stream stream(engine);
    dnnl::reorder(source, destination).execute(stream, source, destination);
    stream.wait();
}

// Arguments of one call: memory objects whose buffers are set before it.
class Arguments {
  public:
    Arguments() = default;
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    // A memory object for the argument, or nullptr where the descriptor is empty.
    dnnl_memory_t add(int argument, const MemoryDescriptor& descriptor, const dnnl::engine& engine) {
        if (descriptor.get_size() == 0) return nullptr;
        owned_.push_back(unbound(descriptor, engine));
        return add(argument, owned_.back().get());
    }
    dnnl_memory_t add(int argument, dnnl_memory_t memory) {
        list_.at(count_++) = {argument, memory};
        return memory;
    }
    void execute(const dnnl::primitive& primitive, const dnnl::stream& stream) const {
        check(dnnl_primitive_execute(primitive.get(), stream.get(), count_, list_.data()), "run a primitive");
    }

  private:
    std::vector<dnnl::memory> owned_;
    std::array<dnnl_exec_arg_t, 5> list_{};
    int count_ = 0;
};

void point(dnnl_memory_t memory, const std::byte* data) {
    if (memory == nullptr) return;
    check(dnnl_memory_set_data_handle(memory, const_cast<std::byte*>(data)), "take a buffer");  // NOLINT
}

struct State : KernelState {
    explicit State(const dnnl::engine& shared) : engine(shared), stream(shared) {}

    dnnl::engine engine;  // kept until all below is gone, should the primitive go first
    dnnl::stream stream;
    Arguments arguments;
    dnnl_memory_t source = nullptr;
    dnnl_memory_t weights = nullptr;
    dnnl_memory_t bias = nullptr;
    dnnl_memory_t target = nullptr;
    dnnl_memory_t scratchpad = nullptr;

    Arguments packing;
    dnnl_memory_t unpacked = nullptr;
    dnnl_memory_t packed = nullptr;
    dnnl_memory_t packing_scratchpad = nullptr;
};

}  // namespace

bool inside_library() {
    return library_depth > 0;
}

InsideLibrary::InsideLibrary() {
    ++library_depth;
}
InsideLibrary::~InsideLibrary() {
    --library_depth;
}

bool limit_isa(Isa isa) {
    dnnl::cpu_isa limit = dnnl::cpu_isa::avx512_core;
    if (isa == Isa::best) return true;
    if (isa == Isa::avx2) limit = dnnl::cpu_isa::avx2;
    if (isa == Isa::baseline) limit = dnnl::cpu_isa::sse41;
    return dnnl::set_max_cpu_isa(limit) == dnnl::status::success;
}

dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

bool is_slow(const std::string& implementation) {
    return implementation.starts_with("ref");
}

MemoryDescriptor plain(const dnnl::memory::dims& dims) {
    dnnl::memory::dims strides(dims.size(), 1);
    for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
    return strided(dims, strides);
}

MemoryDescriptor plain(const TensorDescriptor& descriptor) {
    using Tag = dnnl::memory::format_tag;
    const bool last = descriptor.order == MemoryOrder::channels_last;
    dnnl::memory::dims dims = descriptor.shape;
    if (dims.size() == 3) dims.insert(dims.begin() + 2, 1);
    if (dims.size() == 4) return {dims, f32, last ? Tag::nhwc : Tag::nchw};
    return {dims, f32, last ? Tag::ndhwc : Tag::ncdhw};
}

std::size_t described_rank(const Window& window) {
    return std::max<std::size_t>(2, window.rank);
}

MemoryDescriptor strided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides) {
    return {dims, f32, strides};
}

MemoryDescriptor any_order(const dnnl::memory::dims& dims) {
    return {dims, f32, dnnl::memory::format_tag::any};
}

void bind_weights(Primitive::Parts& parts, const MemoryDescriptor& unpacked, const Weights& weights) {
    if (weights.info.constant) {
        const Tensor& constant = *weights.info.constant;
        const std::size_t bytes = parts.weights.get_size();
        const auto fill = [&](std::byte* target) {
            pack(constant, unpacked, parts.weights, parts.engine, target);
        };
        if (weights.info.weight) {
            parts.packed =
                weights.cache.get(constant, text_of(unpacked) + text_of(parts.weights), bytes, fill);
        } else {
            auto own = std::make_shared<HugeBuffer>(bytes);
            fill(own->data());
            parts.packed = std::move(own);
        }
        parts.packed_memory = dnnl::memory(parts.weights, parts.engine, parts.packed->data());
        return;
    }
    if (parts.weights == unpacked) return;
    const dnnl::reorder::primitive_desc reorder(parts.engine, unpacked, parts.engine, parts.weights,
                                                user_scratchpad());
    parts.packing = dnnl::reorder(reorder);
    parts.unpacked = unpacked;
    parts.packing_scratchpad = reorder.scratchpad_desc();
}

Primitive::Primitive(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Primitive::~Primitive() = default;

const std::string& Primitive::implementation() const {
    return parts_->implementation;
}

bool Primitive::has_packed_weights() const {
    return parts_->packed != nullptr;
}

// The scratch memory holds the primitive's own, then the packed weights, then the reorder's own.
std::size_t Primitive::scratch_bytes() const {
    std::size_t bytes = aligned_size(parts_->scratchpad);
    if (parts_->packing) bytes += aligned_size(parts_->weights) + aligned_size(parts_->packing_scratchpad);
    return bytes;
}

std::unique_ptr<KernelState> Primitive::make_state() const {
    const InsideLibrary inside;
    const Parts& parts = *parts_;
    auto state = std::make_unique<State>(parts.engine);
    state->source = state->arguments.add(DNNL_ARG_SRC, parts.source, parts.engine);
    if (parts.packed) {
        state->arguments.add(DNNL_ARG_WEIGHTS, parts.packed_memory.get());
    } else {
        state->weights = state->arguments.add(DNNL_ARG_WEIGHTS, parts.weights, parts.engine);
    }
    state->bias = state->arguments.add(DNNL_ARG_BIAS, parts.bias, parts.engine);
    state->target = state->arguments.add(DNNL_ARG_DST, parts.target, parts.engine);
    state->scratchpad = state->arguments.add(DNNL_ARG_SCRATCHPAD, parts.scratchpad, parts.engine);
    if (parts.packing) {
        state->unpacked = state->packing.add(DNNL_ARG_FROM, parts.unpacked, parts.engine);
        state->packed = state->packing.add(DNNL_ARG_TO, parts.weights, parts.engine);
        state->packing_scratchpad =
            state->packing.add(DNNL_ARG_SCRATCHPAD, parts.packing_scratchpad, parts.engine);
    }
    return state;
}

void Primitive::execute(const Operands& operands, Workspace& workspace) const {
    const InsideLibrary inside;
    const Parts& parts = *parts_;
    auto& state = static_cast<State&>(*workspace.state);
    const std::byte* weights = operands.weights;
    if (parts.packing) {
        std::byte* packed = workspace.scratch.data() + aligned_size(parts.scratchpad);
        point(state.unpacked, operands.weights);
        point(state.packed, packed);
        point(state.packing_scratchpad, packed + aligned_size(parts.weights));
        state.packing.execute(parts.packing, state.stream);
        weights = packed;
    }
    point(state.source, operands.source);
    point(state.weights, weights);
    point(state.bias, operands.bias);
    point(state.target, operands.target);
    point(state.scratchpad, workspace.scratch.data());
    state.arguments.execute(parts.primitive, state.stream);
}

}  // namespace qcalib::onednn
