#include "ranges/mask_like.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "ranges/histogram_side.h"

namespace qcalib {

namespace {

constexpr int empty_binades = 4;
constexpr double most_outliers = 0.01;  // of all elements; more are a part of the distribution
constexpr std::size_t most_named = 5;

// The binade of a magnitude: n where 2^(n-1) <= magnitude < 2^n.
int binade_of(double magnitude) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    return exponent;
}

// The topmost binade of magnitudes up to `end`, which itself is one of them or not.
int binade_below(double end) {
    return binade_of(std::nextafter(end, 0.0));
}

std::optional<FarValues> far_values(const HistogramSide& side, const HistogramSide& other) {
    if (side.empty()) return std::nullopt;
    const double opposite = other.empty() ? 0 : other.greatest();
    FarValues far;
    const std::vector<OccupiedBin>& bins = side.bins();
    for (std::size_t i = bins.size(); i-- > 0;) {
        far.count += static_cast<std::uint64_t>(bins[i].count);
        far.nearest = bins[i].lower;
        far.rest = std::max(opposite, i > 0 ? bins[i - 1].upper : 0.0);
        if (far.nearest <= opposite || far.rest <= 0) return std::nullopt;
        if (binade_of(far.nearest) - binade_below(far.rest) > empty_binades) return far;
    }
    return std::nullopt;
}

struct FarTensor {
    std::string name;
    FarValues values;
};

std::string listed(const std::vector<FarTensor>& tensors, std::string_view form) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < std::min(most_named, tensors.size()); ++i) {
        const FarValues& values = tensors[i].values;
        texts.push_back(fmt::format(fmt::runtime(form), printable(tensors[i].name), values.count,
                                    values.nearest, values.rest));
    }
    const std::string more =
        tensors.size() > most_named ? fmt::format(" and {} more", tensors.size() - most_named) : "";
    return join(texts, ", ") + more;
}

// A power of two in the middle between two magnitudes, or below the greater one where there is no lesser.
double bound_between(double rest, double nearest) {
    const double middle = rest > 0 ? std::sqrt(rest) * std::sqrt(nearest) : nearest / 2;
    const double bound = std::exp2(std::floor(std::log2(middle)));
    return bound < rest ? std::exp2(std::ceil(std::log2(rest))) : bound;
}

// The greatest negative magnitude of a tensor that is no mask, and whose it is.
struct Rest {
    double magnitude = 0;
    std::string name;
};

std::string mask_remark(const std::vector<FarTensor>& masked, const Rest& rest) {
    double nearest = masked[0].values.nearest;
    double own_rest = 0;
    for (const FarTensor& tensor : masked) {
        nearest = std::min(nearest, tensor.values.nearest);
        own_rest = std::max(own_rest, tensor.values.rest);
    }
    const bool clean = rest.magnitude < nearest;
    const double bound =
        bound_between(clean ? std::max(rest.magnitude, 0.0) : std::min(own_rest, nearest), nearest);
    std::string text = fmt::format(
        "mask-like values, {} or more empty binades beyond the rest: {}; to leave them out calibrate again "
        "with --mask-below -{}",
        empty_binades, listed(masked, "'{0}' ({1} from -{2:.6g} down, the rest within {3:.6g})"), bound);
    if (!clean) {
        text += fmt::format(", which leaves out values of '{}' as well (down to -{:.6g})",
                            printable(rest.name), rest.magnitude);
    }
    return text;
}

}  // namespace

std::optional<FarValues> far_negative_values(const TensorStatistics& statistics) {
    if (!statistics.extremes) return std::nullopt;
    return far_values(negative_side(statistics), positive_side(statistics));
}

std::optional<FarValues> far_positive_values(const TensorStatistics& statistics) {
    if (!statistics.extremes) return std::nullopt;
    return far_values(positive_side(statistics), negative_side(statistics));
}

std::vector<std::string> far_value_remarks(const StatisticsFile& file) {
    if (file.header().counter.extremes_only) return {};
    std::vector<FarTensor> masked;
    std::vector<FarTensor> outliers;
    Rest rest;
    const std::vector<TensorInfo>& tensors = file.header().tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorStatistics& statistics = file.tensor(i);
        if (tensors[i].constant || !statistics.extremes) continue;
        const auto masks = far_negative_values(statistics);
        if (masks) masked.push_back({tensors[i].name, *masks});
        const auto far = far_positive_values(statistics);
        if (far &&
            static_cast<double>(far->count) <= most_outliers * static_cast<double>(statistics.counted())) {
            outliers.push_back({tensors[i].name, *far});
        }
        const double negative =
            masks ? std::min(masks->rest, -statistics.extremes->min) : -statistics.extremes->min;
        if (negative > rest.magnitude) rest = {negative, tensors[i].name};
    }
    std::vector<std::string> remarks;
    if (!masked.empty()) remarks.push_back(mask_remark(masked, rest));
    if (!outliers.empty()) {
        remarks.push_back(fmt::format(
            "outliers, {} or more empty binades beyond the rest: {}; a method that clips (qcalib list "
            "methods) leaves them out",
            empty_binades, listed(outliers, "'{0}' ({1} from {2:.6g} up, the rest within {3:.6g})")));
    }
    return remarks;
}

}  // namespace qcalib
