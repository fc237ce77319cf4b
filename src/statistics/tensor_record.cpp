#include "statistics/tensor_record.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace qcalib::records {

namespace {

constexpr int least_exponent = -125;                            // of 2^-126, the least normal float
constexpr int greatest_exponent = 100;                          // of the greatest float below 1e30
constexpr std::uint64_t greatest_sum = std::uint64_t{1} << 62;  // elements of one file, far beyond any

// Sums that cannot overflow.
class Total {
  public:
    explicit Total(const std::string& what) : what_(what) {}
    void add(std::uint64_t count) {
        if (count > greatest_sum - sum_) fail("{}: counts more than 2^62 elements", what_);
        sum_ += count;
    }

  private:
    const std::string& what_;
    std::uint64_t sum_ = 0;
};

MagnitudeHistogram decode_histogram(const qstats::Histogram& message, Total& total, const std::string& what) {
    constexpr std::size_t bins = MagnitudeHistogram::bins;
    const int exponent = message.exponent();
    const auto size = static_cast<std::size_t>(message.counts_size());
    if (exponent < least_exponent || exponent > greatest_exponent) {
        fail("{}: expected a histogram exponent from {} to {}, found {}", what, least_exponent,
             greatest_exponent, exponent);
    }
    if (size == 0 || size > bins || message.first_bin() > bins - size) {
        fail("{}: expected histogram bins within 0 to {}, found {} from {}", what, bins - 1, size,
             message.first_bin());
    }
    const std::size_t first = message.first_bin();
    const std::size_t last = first + size - 1;
    if (message.counts(0) == 0 || message.counts(static_cast<int>(size) - 1) == 0 ||
        last < bins - MagnitudeHistogram::group) {
        fail("{}: expected a histogram from its first to its last count, the last in the highest binade",
             what);
    }
    MagnitudeHistogram histogram;
    histogram.grow(exponent);
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t count = message.counts(static_cast<int>(i));
        total.add(count);
        histogram.add(first + i, count);
    }
    return histogram;
}

// True for +0 and for ordinary values, which are all floats.
bool may_be_extreme(double value) {
    if (value == 0) return !std::signbit(value);
    const double magnitude = std::fabs(value);
    return magnitude >= 0x1p-126 && magnitude < 1e30 &&
           static_cast<double>(static_cast<float>(value)) == value;
}

// True where the side's greatest magnitude is one that the histogram of that side can have.
bool agrees(const MagnitudeHistogram& side, double greatest_magnitude) {
    if (side.empty()) return greatest_magnitude <= 0;
    if (greatest_magnitude <= 0) return false;
    int exponent = 0;
    std::frexp(greatest_magnitude, &exponent);
    return exponent == side.exponent();
}

void check_extremes(const TensorStatistics& statistics, bool extremes_only, const std::string& what) {
    if (!statistics.extremes) {
        if (statistics.counted() > 0) fail("{}: has counts and no minimum and maximum", what);
        return;
    }
    const auto [min, max] = *statistics.extremes;
    if (!may_be_extreme(min) || !may_be_extreme(max) || min > max) {
        fail("{}: found the impossible minimum {} and maximum {}", what, min, max);
    }
    const bool zero_outside = statistics.zeros > 0 && (min > 0 || max < 0);
    const bool sides_agree =
        extremes_only || (agrees(statistics.positive, max) && agrees(statistics.negative, -min));
    const bool zero_missing = !extremes_only && statistics.zeros == 0 && (min == 0 || max == 0);
    if (zero_outside || zero_missing || !sides_agree) {
        fail("{}: minimum {} and maximum {} are not those of its counts", what, min, max);
    }
}

}  // namespace

TensorStatistics decode(const qstats::Tensor& message, bool extremes_only, const std::string& what) {
    TensorStatistics statistics;
    statistics.zeros = message.zeros();
    statistics.nans = message.nans();
    statistics.positive_infinities = message.positive_infinities();
    statistics.negative_infinities = message.negative_infinities();
    statistics.positive_masks = message.positive_masks();
    statistics.negative_masks = message.negative_masks();
    Total total(what);
    for (const std::uint64_t count :
         {statistics.zeros, statistics.nans, statistics.positive_infinities, statistics.negative_infinities,
          statistics.positive_masks, statistics.negative_masks}) {
        total.add(count);
    }
    if (extremes_only && (message.has_positive() || message.has_negative())) {
        fail("{}: has a histogram in a file of extremes only", what);
    }
    if (message.has_positive()) statistics.positive = decode_histogram(message.positive(), total, what);
    if (message.has_negative()) statistics.negative = decode_histogram(message.negative(), total, what);
    if (message.has_extremes())
        statistics.extremes = Range{message.extremes().min(), message.extremes().max()};
    check_extremes(statistics, extremes_only, what);
    return statistics;
}

}  // namespace qcalib::records
