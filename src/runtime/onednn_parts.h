#pragma once

// Private to src/runtime/onednn*.cpp: what a primitive is made of, in oneDNN's types. Written for oneDNN 2,
// the version it is tested with; the branches for version 3 are untested.

#include <memory>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "runtime/onednn.h"

namespace qcalib::onednn {

// Marks this thread as being inside the library while it lives.
class InsideLibrary {
  public:
    InsideLibrary();
    ~InsideLibrary();
    InsideLibrary(const InsideLibrary&) = delete;
    InsideLibrary& operator=(const InsideLibrary&) = delete;
};

using MemoryDescriptor = dnnl::memory::desc;
constexpr auto f32 = dnnl::memory::data_type::f32;

struct Primitive::Parts {
    dnnl::engine engine;  // the very one that the primitive was described with, and its owner
    dnnl::primitive primitive;
    std::string implementation;
    MemoryDescriptor source;
    MemoryDescriptor weights;  // empty: none
    MemoryDescriptor bias;     // empty: none
    MemoryDescriptor target;
    MemoryDescriptor scratchpad;

    // Constant weights as the primitive wants them.
    std::shared_ptr<const HugeBuffer> packed;
    dnnl::memory packed_memory;

    // Weights that change with each run, where the primitive wants them in another order than they lie in.
    dnnl::reorder packing;
    MemoryDescriptor unpacked;
    MemoryDescriptor packing_scratchpad;
};

// Attributes that leave scratch memory to the caller.
dnnl::primitive_attr user_scratchpad();
// True for the library's plain loops, which are orders of magnitude slower than all else.
bool is_slow(const std::string& implementation);
// A dense row-major descriptor.
MemoryDescriptor plain(const dnnl::memory::dims& dims);
// A tensor of rank 3 to 5 in its memory order. One spatial dimension is told as two, the first of them 1, for
// which the library has more fast code (depthwise convolution, pooling).
MemoryDescriptor plain(const TensorDescriptor& descriptor);
// The spatial dimensions to describe a window in, then.
std::size_t described_rank(const Window& window);
MemoryDescriptor strided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides);
MemoryDescriptor any_order(const dnnl::memory::dims& dims);

// Takes the primitive and the descriptors it settled on from a primitive descriptor.
template <typename PrimitiveT, typename DescriptorT>
std::unique_ptr<Primitive::Parts> parts_of(const DescriptorT& chosen, const dnnl::engine& engine) {
    auto parts = std::make_unique<Primitive::Parts>();
    parts->engine = engine;
    parts->implementation = chosen.impl_info_str();
    parts->source = chosen.src_desc();
    parts->target = chosen.dst_desc();
    parts->scratchpad = chosen.scratchpad_desc();
    parts->primitive = PrimitiveT(chosen);
    return parts;
}

// Settles where the primitive's weights come from: packs a constant now, else prepares the reorder of each
// run. `unpacked` is the order they lie in.
void bind_weights(Primitive::Parts& parts, const MemoryDescriptor& unpacked, const Weights& weights);

// Runs `make` (which answers nullptr or parts): what the library cannot do at all is nullptr as well.
template <typename Make>
std::unique_ptr<Primitive> attempt(const Make& make) {
    const InsideLibrary inside;
    try {
        std::unique_ptr<Primitive::Parts> parts = make();
        return parts == nullptr ? nullptr : std::make_unique<Primitive>(std::move(parts));
    } catch (const dnnl::error& error) {
        if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
        return nullptr;
    }
}

}  // namespace qcalib::onednn
