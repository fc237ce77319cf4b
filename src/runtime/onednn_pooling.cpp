#include <algorithm>

#include "runtime/onednn_parts.h"

namespace qcalib::onednn {

namespace {

using Dims = dnnl::memory::dims;

dnnl::algorithm algorithm_of(PoolingKind kind) {
    switch (kind) {
        case PoolingKind::max:
            return dnnl::algorithm::pooling_max;
        case PoolingKind::average_counting_pads:
            return dnnl::algorithm::pooling_avg_include_padding;
        case PoolingKind::average:
            break;
    }
    return dnnl::algorithm::pooling_avg_exclude_padding;
}

struct WindowDims {
    Dims strides, kernel, dilation, before, behind;
};

// Padding behind the input is what the last window needs, where that is more than was asked for.
WindowDims window_dims(const PoolingShape& shape) {
    const Window& window = shape.window;
    const Extents input = spatial_extents(shape.input.shape);
    const Extents output = spatial_extents(shape.output.shape);
    WindowDims dims;
    for (std::size_t axis = 3 - described_rank(window); axis < 3; ++axis) {
        const std::int64_t needed = (output[axis] - 1) * window.stride[axis] + window.reach(axis) -
                                    input[axis] - window.pad_begin[axis];
        dims.strides.push_back(window.stride[axis]);
        dims.kernel.push_back(window.kernel[axis]);
        dims.dilation.push_back(window.dilation[axis] - 1);
        dims.before.push_back(window.pad_begin[axis]);
        dims.behind.push_back(std::max(window.pad_end[axis], needed));
    }
    return dims;
}

#if DNNL_VERSION_MAJOR >= 3
using Pooling = dnnl::pooling_forward;

Pooling::primitive_desc choose(const PoolingShape& shape, const dnnl::engine& engine) {
    const WindowDims dims = window_dims(shape);
    return {engine,
            dnnl::prop_kind::forward_inference,
            algorithm_of(shape.kind),
            plain(shape.input),
            plain(shape.output),
            dims.strides,
            dims.kernel,
            dims.dilation,
            dims.before,
            dims.behind,
            user_scratchpad(),
            true};
}
#else
using Pooling = dnnl::pooling_v2_forward;

Pooling::primitive_desc choose(const PoolingShape& shape, const dnnl::engine& engine) {
    const WindowDims dims = window_dims(shape);
    const Pooling::desc operation(dnnl::prop_kind::forward_inference, algorithm_of(shape.kind),
                                  plain(shape.input), plain(shape.output), dims.strides, dims.kernel,
                                  dims.dilation, dims.before, dims.behind);
    return {operation, user_scratchpad(), engine, true};
}
#endif

}  // namespace

std::unique_ptr<Primitive> make_pooling(const PoolingShape& shape) {
    return attempt([&]() -> std::unique_ptr<Primitive::Parts> {
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        const auto chosen = choose(shape, engine);
        if (!chosen || is_slow(chosen.impl_info_str())) return nullptr;
        return parts_of<Pooling>(chosen, engine);
    });
}

}  // namespace qcalib::onednn
