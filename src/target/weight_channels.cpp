#include "target/weight_channels.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "encoding/encoding.h"
#include "statistics/counter.h"

namespace qcalib {

namespace {

constexpr double outlier_ratio = 8;
constexpr std::size_t least_channels = 4;  // that have a median worth the name
constexpr std::size_t most_channels = 8;   // that are named of a weight
constexpr std::size_t most_weights = 5;

double magnitude_of(const Range& range) {
    return std::max(std::abs(range.min), std::abs(range.max));
}

// Channels 0, 1, ... of a weight, the elements of one at a time.
class Channels {
  public:
    Channels(const Tensor& weight, std::optional<int> axis) : elements_(weight.view().as<float>()) {
        const Shape& shape = weight.descriptor().shape;
        if (!axis) {
            inner_ = elements_.size();
            return;
        }
        const auto place = static_cast<std::size_t>(*axis);
        count_ = static_cast<std::size_t>(shape[place]);
        inner_ =
            static_cast<std::size_t>(element_count(std::span<const std::int64_t>(shape).subspan(place + 1)));
    }

    std::size_t count() const { return count_; }

    const std::vector<float>& elements(std::size_t channel) {
        channel_.clear();
        for (std::size_t first = channel * inner_; first < elements_.size(); first += count_ * inner_) {
            const auto run = elements_.subspan(first, inner_);
            channel_.insert(channel_.end(), run.begin(), run.end());
        }
        return channel_;
    }

  private:
    std::span<const float> elements_;
    std::size_t count_ = 1;
    std::size_t inner_ = 0;
    std::vector<float> channel_;
};

std::string named(const std::string& weight, const std::vector<std::string>& channels) {
    const std::size_t shown = std::min(most_channels, channels.size());
    const std::string more =
        channels.size() > shown ? fmt::format(" and {} more", channels.size() - shown) : "";
    return fmt::format("'{}' ({}{})", printable(weight), join(std::span(channels).first(shown), ", "), more);
}

std::string listed(const std::vector<std::string>& weights) {
    const std::size_t shown = std::min(most_weights, weights.size());
    const std::string more =
        weights.size() > shown ? fmt::format(" and of {} weights more", weights.size() - shown) : "";
    return join(std::span(weights).first(shown), ", ") + more;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

std::vector<Range> chosen_weight_ranges(const Tensor& weight, std::optional<int> axis,
                                        const std::string& name, const MethodChoice& choice,
                                        const GridRules& grid) {
    std::vector<Range> ranges = weight_ranges(weight.view(), axis, name);
    if (choice.method->name() == "minmax") return ranges;
    Counter counter;
    Channels channels(weight, axis);
    for (std::size_t channel = 0; channel < channels.count(); ++channel) {
        const TensorStatistics& statistics = counter.count(channels.elements(channel));
        const auto chosen = choice.choose(TensorSamples(name, statistics), grid);
        if (chosen) ranges[channel] = *chosen;
    }
    return ranges;
}

void ChannelRemarks::look_at(const std::string& weight, std::span<const Range> ranges, bool per_channel) {
    std::vector<std::string> dead;
    std::vector<double> magnitudes;
    for (std::size_t channel = 0; channel < ranges.size(); ++channel) {
        const double magnitude = magnitude_of(ranges[channel]);
        if (magnitude == 0) {
            dead.push_back(std::to_string(channel));
        } else {
            magnitudes.push_back(magnitude);
        }
    }
    if (!dead.empty()) dead_.push_back(named(weight, dead));
    if (per_channel || magnitudes.size() < least_channels) return;
    const double usual = median(magnitudes);
    std::vector<std::string> outliers;
    for (std::size_t channel = 0; channel < ranges.size(); ++channel) {
        const double ratio = magnitude_of(ranges[channel]) / usual;
        if (ratio >= outlier_ratio) outliers.push_back(fmt::format("{}: {:.1f} times", channel, ratio));
    }
    if (!outliers.empty()) outliers_.push_back(named(weight, outliers));
}

void ChannelRemarks::add_to(Remarks& remarks) {
    if (!dead_.empty()) remarks.add("dead channels, whose weights are all zero: " + listed(dead_));
    if (!outliers_.empty()) {
        remarks.add(
            fmt::format("outlier channels, whose greatest weight is {} times the median channel's or more "
                        "and sets the step of all: {}",
                        outlier_ratio, listed(outliers_)));
    }
    dead_.clear();
    outliers_.clear();
}

}  // namespace qcalib
