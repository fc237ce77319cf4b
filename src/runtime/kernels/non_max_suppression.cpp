#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/text.h"
#include "runtime/kernels/all.h"

namespace qcalib {

namespace {

struct Box {
    double top = 0;
    double left = 0;
    double bottom = 0;
    double right = 0;

    double area() const { return (bottom - top) * (right - left); }
};

// Intersection over union; 0 where they do not meet or one is empty.
double overlap(const Box& a, const Box& b) {
    const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
    const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
    if (height <= 0 || width <= 0 || a.area() <= 0 || b.area() <= 0) return 0;
    const double both = height * width;
    return both / (a.area() + b.area() - both);
}

// Of each batch and class the boxes with the best scores that do not overlap a better one too much, as rows
// of (batch, class, box).
class NonMaxSuppression : public Kernel {
  public:
    Prepared prepare(const NodeContext& context) override {
        if (!context.has_input(0) || !context.has_input(1)) context.refuse("expected boxes and scores");
        const Shape& boxes = context.input(0).shape;
        const Shape& scores = context.input(1).shape;
        if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
            boxes[1] != scores[2]) {
            context.refuse(
                fmt::format("expected boxes [batches,boxes,4] and scores [batches,classes,boxes], "
                            "found {} and {}",
                            to_string(boxes), to_string(scores)));
        }
        for (const std::size_t i : {0, 1, 3, 4}) {
            if (context.has_input(i) && !is_floating(context.input(i).type)) {
                context.refuse(
                    fmt::format("input {}: expected float, found {}", i, name_of(context.input(i).type)));
            }
        }
        if (context.has_input(2) && context.input(2).type != DataType::int64) {
            context.refuse(fmt::format("input 2: expected int64, found {}", name_of(context.input(2).type)));
        }
        for (const std::size_t i : {2, 3, 4}) {
            if (context.has_input(i) && context.input(i).elements() != 1) {
                context.refuse(fmt::format("input {}: expected one number, found the shape {}", i,
                                           to_string(context.input(i).shape)));
            }
        }
        centered_ = context.node.attribute<std::int64_t>("center_point_box", 0) != 0;
        Prepared prepared;
        prepared.data_dependent = true;
        return prepared;
    }

    void run(std::span<const TensorView> /*inputs*/, std::span<const MutableTensorView> /*outputs*/,
             Workspace& /*workspace*/) const override {}

    std::vector<Tensor> make_outputs(std::span<const TensorView> inputs,
                                     Workspace& /*workspace*/) const override {
        const Shape& shape = inputs[1].descriptor->shape;
        const std::vector<double> corners = numbers_of(inputs[0]);
        const std::vector<double> scores = numbers_of(inputs[1]);
        const auto number = [&](std::size_t i, double otherwise) {
            return i < inputs.size() && inputs[i].present() ? numbers_of(inputs[i]).front() : otherwise;
        };
        const Limits limits{std::max(0.0, number(2, 0)), number(3, 0),
                            number(4, -std::numeric_limits<double>::infinity())};
        const auto boxes = static_cast<std::size_t>(shape[2]);
        std::vector<std::int64_t> rows;
        for (std::int64_t batch = 0; batch < shape[0]; ++batch) {
            const auto first_box = static_cast<std::size_t>(batch) * boxes;
            std::vector<Box> here;
            for (std::size_t i = 0; i < boxes; ++i) here.push_back(box_at(&corners[4 * (first_box + i)]));
            for (std::int64_t of = 0; of < shape[1]; ++of) {
                const auto first_score = static_cast<std::size_t>(batch * shape[1] + of) * boxes;
                for (const std::size_t box :
                     select(here, std::span(scores).subspan(first_score, boxes), limits)) {
                    rows.insert(rows.end(), {batch, of, static_cast<std::int64_t>(box)});
                }
            }
        }
        return {Tensor::of<std::int64_t>({static_cast<std::int64_t>(rows.size() / 3), 3}, rows)};
    }

  private:
    struct Limits {
        double count = 0;
        double overlap = 0;
        double score = 0;
    };

    Box box_at(const double* numbers) const {
        const auto [a, b, c, d] = std::array{numbers[0], numbers[1], numbers[2], numbers[3]};
        if (centered_) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};  // x, y, width, height
        return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
    }

    static std::vector<std::size_t> select(std::span<const Box> boxes, std::span<const double> scores,
                                           const Limits& limits) {
        std::vector<std::size_t> order(boxes.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::erase_if(order, [&](std::size_t i) { return !(scores[i] > limits.score); });
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
        std::vector<std::size_t> selected;
        for (const std::size_t candidate : order) {
            if (static_cast<double>(selected.size()) >= limits.count) break;
            const bool covered = std::any_of(selected.begin(), selected.end(), [&](std::size_t better) {
                return overlap(boxes[candidate], boxes[better]) > limits.overlap;
            });
            if (!covered) selected.push_back(candidate);
        }
        return selected;
    }

    bool centered_ = false;
};

}  // namespace

void register_non_max_suppression(KernelRegistry& registry) {
    registry.add({.domain = "",
                  .op_type = "NonMaxSuppression",
                  .since = 10,
                  .summary = "The best boxes that do not overlap a better one",
                  .make = make_kernel<NonMaxSuppression>,
                  .make_reference = make_kernel<NonMaxSuppression>});
}

}  // namespace qcalib
