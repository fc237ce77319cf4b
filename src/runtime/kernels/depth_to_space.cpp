// DepthToSpace and SpaceToDepth: blocks of pixels traded for channels.
#include <fmt/format.h>

#include "base/text.h"
#include "runtime/kernel_registry.h"
#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/index_map.h"
#include "runtime/kernels/strided_copy.h"

namespace qcalib {

namespace {

// How the channels of the deep side split into a block's row, its column and the channel of the wide side.
struct Blocks {
    TensorDescriptor deep;   // [N, C*b*b, H, W]
    TensorDescriptor wide;   // [N, C, H*b, W*b]
    std::int64_t size = 1;   // b
    bool rows_first = true;  // channel = (row*b + column)*C + c ("DCR"), else c*b*b + row*b + column ("CRD")

    // The axes n, c, row of pixels, row in block, column of pixels, column in block, with strides from one to
    // the other.
    std::vector<CopyAxis> axes(bool from_deep) const {
        const std::vector<std::int64_t> d = element_strides(deep);
        const std::vector<std::int64_t> w = element_strides(wide);
        const std::int64_t channels = wide.shape[1];
        const std::int64_t channel_step = rows_first ? 1 : size * size;
        const std::int64_t column_step = rows_first ? channels : 1;
        std::vector<CopyAxis> axes{
            {wide.shape[0], d[0], w[0]},        {channels, d[1] * channel_step, w[1]},
            {deep.shape[2], d[2], w[2] * size}, {size, d[1] * column_step * size, w[2]},
            {deep.shape[3], d[3], w[3] * size}, {size, d[1] * column_step, w[3]}};
        if (!from_deep) {
            for (CopyAxis& axis : axes) std::swap(axis.source_stride, axis.target_stride);
        }
        return axes;
    }
};

Blocks blocks_of(const NodeContext& context, bool from_deep) {
    const TensorDescriptor& input = context.input(0);
    if (input.rank() != 4) context.refuse(fmt::format("expected rank 4, found {}", to_string(input.shape)));
    Blocks blocks;
    blocks.size = context.node.attribute<std::int64_t>("blocksize", 0);
    if (blocks.size < 1 || blocks.size > 1 << 15) {
        context.refuse(fmt::format("expected a blocksize of 1 or more, found {}", blocks.size));
    }
    const auto mode = context.node.attribute<std::string>("mode", "DCR");
    if (mode != "DCR" && mode != "CRD")
        context.refuse(fmt::format("expected mode DCR or CRD, found '{}'", printable(mode)));
    blocks.rows_first = mode == "DCR";
    const std::int64_t square = blocks.size * blocks.size;
    const Shape& shape = input.shape;
    Shape other;
    if (from_deep) {
        if (shape[1] % square != 0) {
            context.refuse(
                fmt::format("expected channels that {} divides, found {}", square, to_string(shape)));
        }
        other = {shape[0], shape[1] / square, shape[2] * blocks.size, shape[3] * blocks.size};
    } else {
        if (shape[2] % blocks.size != 0 || shape[3] % blocks.size != 0) {
            context.refuse(fmt::format("expected a height and a width that {} divides, found {}", blocks.size,
                                       to_string(shape)));
        }
        other = {shape[0], shape[1] * square, shape[2] / blocks.size, shape[3] / blocks.size};
    }
    const TensorDescriptor output{input.type, other, input.order};
    blocks.deep = from_deep ? input : output;
    blocks.wide = from_deep ? output : input;
    return blocks;
}

template <bool from_deep>
class BlockCopy : public Kernel {
  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        return keep_first_order(context);
    }

    Prepared prepare(const NodeContext& context) override {
        const Blocks blocks = blocks_of(context, from_deep);
        copy_ = StridedCopy(blocks.axes(from_deep), size_of(blocks.deep.type));
        Prepared prepared;
        prepared.outputs = {from_deep ? blocks.wide : blocks.deep};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        copy_.run(inputs[0].data, outputs[0].data);
    }

  private:
    StridedCopy copy_;
};

// Channel by channel and pixel by pixel, by the definition.
template <bool from_deep>
class BlockCopyReference : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        blocks_ = blocks_of(context, from_deep);
        Prepared prepared;
        prepared.outputs = {from_deep ? blocks_.wide : blocks_.deep};
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        const Shape& wide = blocks_.wide.shape;
        const Shape& deep = blocks_.deep.shape;
        const std::size_t bytes = size_of(blocks_.deep.type);
        std::int64_t wide_index = 0;
        for (std::int64_t n = 0; n < wide[0]; ++n) {
            for (std::int64_t c = 0; c < wide[1]; ++c) {
                for (std::int64_t y = 0; y < wide[2]; ++y) {
                    for (std::int64_t x = 0; x < wide[3]; ++x, ++wide_index) {
                        const std::int64_t row =
                            n * deep[1] + deep_channel(c, y % blocks_.size, x % blocks_.size);
                        const std::int64_t deep_index =
                            (row * deep[2] + y / blocks_.size) * deep[3] + x / blocks_.size;
                        const auto from = static_cast<std::size_t>(from_deep ? deep_index : wide_index);
                        const auto to = static_cast<std::size_t>(from_deep ? wide_index : deep_index);
                        std::copy_n(inputs[0].data + from * bytes, bytes, outputs[0].data + to * bytes);
                    }
                }
            }
        }
    }

  private:
    std::int64_t deep_channel(std::int64_t channel, std::int64_t row, std::int64_t column) const {
        const std::int64_t place = row * blocks_.size + column;
        return blocks_.rows_first ? place * blocks_.wide.shape[1] + channel
                                  : channel * blocks_.size * blocks_.size + place;
    }

    Blocks blocks_;
};

}  // namespace

void register_depth_to_space(KernelRegistry& registry) {
    for (const std::int64_t since : {1, 11}) {  // the attribute mode came
        registry.add({.domain = "",
                      .op_type = "DepthToSpace",
                      .since = since,
                      .summary = "channels become blocks of pixels",
                      .make = make_kernel<BlockCopy<true>>,
                      .make_reference = make_kernel<BlockCopyReference<true>>});
    }
    registry.add({.domain = "",
                  .op_type = "SpaceToDepth",
                  .since = 1,
                  .summary = "blocks of pixels become channels",
                  .make = make_kernel<BlockCopy<false>>,
                  .make_reference = make_kernel<BlockCopyReference<false>>});
}

}  // namespace qcalib
