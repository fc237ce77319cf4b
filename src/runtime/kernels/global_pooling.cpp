#include <algorithm>
#include <limits>

#include "runtime/kernels/all.h"
#include "runtime/kernels/channel_loops.h"
#include "runtime/kernels/window.h"

namespace qcalib {

namespace {

// [N, C, spatial...] to [N, C, 1...]: the mean or the greatest of each channel of each batch item.
template <Fold fold>
class GlobalPoolReference : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (!context.has_input(0)) context.refuse("input 0 should be there");
        require_one_float_type(context);
        const TensorDescriptor& input = context.input(0);
        if (input.rank() < 3)
            context.refuse("input 0 should have spatial dimensions, found " + to_string(input.shape));
        planes_ = static_cast<std::size_t>(input.shape[0] * input.shape[1]);
        pixels_ = static_cast<std::size_t>(element_count(std::span(input.shape).subspan(2)));
        if (pixels_ == 0) context.refuse("input 0 of shape " + to_string(input.shape) + " has no pixels");
        Prepared prepared;
        prepared.outputs = {input};
        std::fill(prepared.outputs[0].shape.begin() + 2, prepared.outputs[0].shape.end(), 1);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& /*workspace*/) const override {
        if (inputs[0].descriptor->type == DataType::float64) {
            run_loops<double>(inputs[0], outputs[0]);
        } else {
            run_loops<float>(inputs[0], outputs[0]);
        }
    }

  protected:
    std::size_t planes() const { return planes_; }
    std::size_t pixels() const { return pixels_; }

    // The result of one channel from what was folded.
    template <typename T>
    T result(double folded) const {
        return static_cast<T>(fold == Fold::sum ? folded / static_cast<double>(pixels_) : folded);
    }

  private:
    template <typename T>
    void run_loops(TensorView input, MutableTensorView output) const {
        const T* x = input.as<T>().data();
        for (T& y : output.as<T>()) {
            double total = fold == Fold::sum ? 0 : -std::numeric_limits<double>::infinity();
            for (std::size_t p = 0; p < pixels_; ++p) {
                total = fold == Fold::sum ? total + x[p] : std::max<double>(total, x[p]);
            }
            y = result<T>(total);
            x += pixels_;
        }
    }

    std::size_t planes_ = 0;
    std::size_t pixels_ = 0;
};

// Vectorised in either memory order, one pass over the input.
template <Fold fold>
class GlobalPool : public GlobalPoolReference<fold> {
    using Reference = GlobalPoolReference<fold>;

  public:
    std::vector<MemoryOrder> input_orders(const NodeContext& context) const override {
        std::vector<MemoryOrder> orders = all_row_major(context);
        if (context.has_input(0)) orders[0] = context.input(0).order;
        return orders;
    }

    Prepared prepare(const NodeContext& context) override {
        Prepared prepared = Reference::prepare(context);
        const TensorDescriptor& input = context.input(0);
        columns_ = static_cast<std::size_t>(input.shape[1]);
        by_columns_ = input.order == MemoryOrder::channels_last && !same_in_both_orders(input.shape);
        if (by_columns_) prepared.scratch_bytes = lane_bytes() + columns_ * sizeof(double);
        return prepared;
    }

    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override {
        if (inputs[0].descriptor->type != DataType::float32)
            return Reference::run(inputs, outputs, workspace);
        const float* x = inputs[0].as<float>().data();
        float* y = outputs[0].as<float>().data();
        if (!by_columns_) {
            for (std::size_t plane = 0; plane < this->planes(); ++plane, x += this->pixels()) {
                y[plane] = this->template result<float>(fold_row(fold, x, this->pixels()));
            }
            return;
        }
        auto* lanes = reinterpret_cast<float*>(workspace.scratch.data());
        auto* totals = reinterpret_cast<double*>(workspace.scratch.data() + lane_bytes());
        for (std::size_t n = 0; n < this->planes() / columns_; ++n, y += columns_) {
            fold_columns(fold, x + n * this->pixels() * columns_, this->pixels(), columns_, lanes, totals);
            for (std::size_t c = 0; c < columns_; ++c) y[c] = this->template result<float>(totals[c]);
        }
    }

  private:
    // A multiple of a double's alignment.
    std::size_t lane_bytes() const { return (fold_lanes(columns_) + 1) / 2 * 2 * sizeof(float); }

    std::size_t columns_ = 1;
    bool by_columns_ = false;
};

}  // namespace

void register_global_pooling(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "GlobalAveragePool",
                  .since = 1,
                  .summary = "the mean of each channel over all spatial dimensions",
                  .make = make_kernel<GlobalPool<Fold::sum>>,
                  .make_reference = make_kernel<GlobalPoolReference<Fold::sum>>});
    registry.add({.domain = "",
                  .op_type = "GlobalMaxPool",
                  .since = 1,
                  .summary = "the greatest element of each channel over all spatial dimensions",
                  .make = make_kernel<GlobalPool<Fold::max>>,
                  .make_reference = make_kernel<GlobalPoolReference<Fold::max>>});
}

}  // namespace qcalib
