// Operators of Circle along axes: reductions, normalisations, softmax.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/kernels/all.h"
#include "runtime/kernels/axes.h"
#include "runtime/kernels/circle_axis_kernels.h"
#include "runtime/kernels/circle_lowering.h"

namespace qcalib {

namespace {

using Operand = CircleLowering::Operand;
using Numbers = std::vector<std::int64_t>;

// The axes of input 1; none: nothing is reduced.
Operand reduced(CircleLowering& lowering, std::string_view op_type, Operand input) {
    const Numbers given = lowering.context().integers(1);
    if (given.empty()) return input;
    const Shape& shape = lowering.of(input).shape;
    Numbers axes;
    for (const std::int64_t axis : given) {  // one may be named twice
        const auto resolved = static_cast<std::int64_t>(resolve_axis(lowering.context(), axis, shape.size()));
        if (std::find(axes.begin(), axes.end(), resolved) == axes.end()) axes.push_back(resolved);
    }
    const auto keep = lowering.node().attribute<std::int64_t>("keep_dims", 0);
    return lowering.run(op_type, {input}, {{"axes", axes}, {"keepdims", keep}}, 11);
}

void lower_mean(CircleLowering& lowering) {
    lowering.result(0, reduced(lowering, "ReduceMean", lowering.required_input(0)));
}

void lower_sum(CircleLowering& lowering) {
    lowering.result(0, reduced(lowering, "ReduceSum", lowering.required_input(0)));
}

void lower_reduce_max(CircleLowering& lowering) {
    lowering.result(0, reduced(lowering, "ReduceMax", lowering.required_input(0)));
}

void lower_reduce_min(CircleLowering& lowering) {
    lowering.result(0, reduced(lowering, "ReduceMin", lowering.required_input(0)));
}

void lower_reduce_prod(CircleLowering& lowering) {
    lowering.result(0, reduced(lowering, "ReduceProd", lowering.required_input(0)));
}

// Booleans as the numbers 0 and 1.
void reduce_truths(CircleLowering& lowering, std::string_view op_type) {
    constexpr std::int64_t int32_type = 6;
    constexpr std::int64_t boolean_type = 9;
    const Operand numbers = lowering.run("Cast", {lowering.required_input(0)}, {{"to", int32_type}});
    lowering.result(0, lowering.run("Cast", {reduced(lowering, op_type, numbers)}, {{"to", boolean_type}}));
}

void lower_reduce_any(CircleLowering& lowering) {
    reduce_truths(lowering, "ReduceMax");
}

void lower_reduce_all(CircleLowering& lowering) {
    reduce_truths(lowering, "ReduceMin");
}

void lower_softmax(CircleLowering& lowering) {
    Operand input = lowering.required_input(0);
    const float beta = lowering.node().attribute<float>("beta", 1);
    if (beta != 1) {
        input = lowering.run("Mul", {input, lowering.number_like(input, static_cast<double>(beta))});
    }
    lowering.result(0, lowering.run("Softmax", {input}, {{"axis", std::int64_t{-1}}}));
}

void lower_log_softmax(CircleLowering& lowering) {
    lowering.result(0,
                    lowering.run("LogSoftmax", {lowering.required_input(0)}, {{"axis", std::int64_t{-1}}}));
}

// Over the pixels of each channel, then gamma and beta of each channel.
void lower_instance_norm(CircleLowering& lowering) {
    const Operand input = lowering.channels_second(lowering.required_input(0));
    const std::int64_t channels = lowering.of(input).shape[1];
    const auto per_channel = [&](std::size_t i) {
        const Operand operand = lowering.required_input(i);
        if (lowering.of(operand).elements() == static_cast<std::size_t>(channels)) {
            return lowering.as(operand, {channels});
        }
        return lowering.run("Expand", {lowering.as(operand, {1}), lowering.integers({channels})});
    };
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
        const std::size_t found = lowering.of(lowering.required_input(i)).elements();
        if (found == 1 || found == static_cast<std::size_t>(channels)) continue;
        lowering.context().refuse(
            fmt::format("expected {} numbers as input {}, one per channel, found {}", channels, i, found));
    }
    const float epsilon = lowering.node().attribute<float>("epsilon", 1e-5F);
    const Operand made = lowering.run("InstanceNormalization", {input, per_channel(1), per_channel(2)},
                                      {{"epsilon", epsilon}});
    lowering.activated_result(lowering.channels_last(made));
}

// x / root(mean of x^2 along the last axis + epsilon) gamma
void lower_rms_norm(CircleLowering& lowering) {
    const Operand x = lowering.required_input(0);
    const Operand mean = lowering.run("ReduceMean", {lowering.run("Mul", {x, x})},
                                      {{"axes", Numbers{-1}}, {"keepdims", std::int64_t{1}}}, 11);
    const double epsilon = static_cast<double>(lowering.node().attribute<float>("epsilon", 1e-6F));
    const Operand root =
        lowering.run("Sqrt", {lowering.run("Add", {mean, lowering.number_like(x, epsilon)})});
    const Operand normed = lowering.run("Div", {x, root});
    const Operand gamma = lowering.input(1);
    lowering.result(0, gamma == CircleLowering::absent ? normed : lowering.run("Mul", {normed, gamma}));
}

// x / max(root of the sum of x^2 along the last axis, 1e-6)
void lower_l2_normalization(CircleLowering& lowering) {
    const Operand x = lowering.required_input(0);
    const Operand sum =
        lowering.run("ReduceSumSquare", {x}, {{"axes", Numbers{-1}}, {"keepdims", std::int64_t{1}}}, 11);
    const Operand root = lowering.run("Sqrt", {sum});
    const Operand held = lowering.run("Max", {root, lowering.number_like(x, 1e-6)});
    lowering.activated_result(lowering.run("Div", {x, held}));
}

void lower_local_response(CircleLowering& lowering) {
    const Operand x = lowering.required_input(0);
    const Node& node = lowering.node();
    CircleLowering::Attributes attributes;
    for (const char* name : {"bias", "alpha", "beta"}) attributes[name] = node.attribute<float>(name, 0);
    attributes["radius"] = node.attribute<std::int64_t>("radius", 0);
    lowering.result(0, lowering.run_kernel(make_local_response_kernel(), "LocalResponse", {x}, 1,
                                           std::move(attributes))[0]);
}

void lower_cumsum(CircleLowering& lowering) {
    const Operand x = lowering.required_input(0);
    const Numbers axis = lowering.context().integers(1);
    if (axis.size() != 1) lowering.context().refuse(fmt::format("expected one axis, found {}", axis.size()));
    CircleLowering::Attributes attributes;
    attributes["axis"] = axis[0];
    for (const char* name : {"exclusive", "reverse"}) {
        attributes[name] = lowering.node().attribute<std::int64_t>(name, 0);
    }
    lowering.result(
        0, lowering.run_kernel(make_cumulative_sum_kernel(), "Cumulative", {x}, 1, std::move(attributes))[0]);
}

void pick_extreme(CircleLowering& lowering, bool greatest) {
    const Operand x = lowering.required_input(0);
    const Numbers axis = lowering.context().integers(1);
    if (axis.size() != 1) lowering.context().refuse(fmt::format("expected one axis, found {}", axis.size()));
    const bool wide = lowering.node().attribute<std::string>("output_type", "int64") == "int64";
    CircleLowering::Attributes attributes{{"axis", axis[0]},
                                          {"greatest", std::int64_t{greatest ? 1 : 0}},
                                          {"wide", std::int64_t{wide ? 1 : 0}}};
    lowering.result(
        0, lowering.run_kernel(make_extreme_index_kernel(), "Extreme", {x}, 1, std::move(attributes))[0]);
}

void lower_arg_max(CircleLowering& lowering) {
    pick_extreme(lowering, true);
}

void lower_arg_min(CircleLowering& lowering) {
    pick_extreme(lowering, false);
}

// The k greatest along the last axis, the greatest first, and where they were.
void lower_topk_v2(CircleLowering& lowering) {
    const Operand x = lowering.required_input(0);
    const Numbers k = lowering.context().integers(1);
    if (k.size() != 1 || lowering.node().outputs.size() != 2) {
        lowering.context().refuse("expected one number of elements to take and two outputs");
    }
    const std::vector<Operand> made = lowering.run_kernel(make_top_kernel(), "Top", {x}, 2, {{"k", k[0]}});
    lowering.result(0, made[0]);
    lowering.result(1, made[1]);
}

void lower_one_hot(CircleLowering& lowering) {
    const Operand indices = lowering.required_input(0);
    const Numbers depth = lowering.context().integers(1);
    if (depth.size() != 1)
        lowering.context().refuse(fmt::format("expected one depth, found {}", depth.size()));
    const auto axis = lowering.node().attribute<std::int64_t>("axis", -1);
    lowering.result(0, lowering.run_kernel(make_one_hot_kernel(), "OneHot",
                                           {indices, lowering.required_input(2), lowering.required_input(3)},
                                           1, {{"depth", depth[0]}, {"axis", axis}})[0]);
}

}  // namespace

void register_circle_reduce(KernelRegistry& registry) {
    add_circle_operator<lower_mean>(registry, "MEAN", "mean along axes", {1});
    add_circle_operator<lower_sum>(registry, "SUM", "sum along axes", {1});
    add_circle_operator<lower_reduce_max>(registry, "REDUCE_MAX", "greatest along axes", {1});
    add_circle_operator<lower_reduce_min>(registry, "REDUCE_MIN", "least along axes", {1});
    add_circle_operator<lower_reduce_prod>(registry, "REDUCE_PROD", "product along axes", {1});
    add_circle_operator<lower_reduce_any>(registry, "REDUCE_ANY", "whether any is true along axes", {1});
    add_circle_operator<lower_reduce_all>(registry, "REDUCE_ALL", "whether all are true along axes", {1});
    add_circle_operator<lower_softmax>(registry, "SOFTMAX",
                                       "e^(beta x), divided by its sum along the last axis");
    add_circle_operator<lower_log_softmax>(registry, "LOG_SOFTMAX",
                                           "logarithm of softmax along the last axis");
    add_circle_operator<lower_instance_norm>(registry, "INSTANCE_NORM",
                                             "channels normalised over their pixels");
    add_circle_operator<lower_rms_norm>(registry, "RMS_NORM",
                                        "divided by the root mean square of the last axis");
    add_circle_operator<lower_l2_normalization>(registry, "L2_NORMALIZATION",
                                                "divided by the norm of the last axis");
    add_circle_operator<lower_local_response>(registry, "LOCAL_RESPONSE_NORMALIZATION",
                                              "divided by a power of the squares of near channels");
    add_circle_operator<lower_cumsum>(registry, "CUMSUM", "sums of the elements up to each", {1});
    add_circle_operator<lower_arg_max>(registry, "ARG_MAX", "where the greatest is along an axis", {1});
    add_circle_operator<lower_arg_min>(registry, "ARG_MIN", "where the least is along an axis", {1});
    add_circle_operator<lower_topk_v2>(registry, "TOPK_V2", "the greatest of the last axis", {1});
    add_circle_operator<lower_one_hot>(registry, "ONE_HOT", "indices as vectors with one place set", {1});
}

}  // namespace qcalib
