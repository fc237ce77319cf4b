#include "statistics/counter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "statistics/block_kernels.h"

namespace qcalib {

namespace {

constexpr std::size_t block_elements = 1024;  // one block and its slots stay in L1
constexpr std::size_t few_elements = 192;     // up to here bins are marked as they are counted
constexpr std::size_t most_pending = (1U << 31) - 1;
constexpr std::uint32_t least_normal = 0x00800000U;  // bits
constexpr int exponent_of_nothing = -126;            // below that of every ordinary value

// The value of these bits; zeros and denormals give +0.
float value_of(std::uint32_t bits) {
    return (bits & 0x7fffffffU) < least_normal ? 0.0F : std::bit_cast<float>(bits);
}

// The least E of a side whose greatest magnitude has these bits; -126 where it has no ordinary value.
int exponent_of(std::uint32_t magnitude_bits) {
    return static_cast<int>(magnitude_bits >> 23) - 126;
}

}  // namespace

MaskLimits mask_limits(const CounterSettings& settings) {
    const auto limit = std::bit_cast<std::uint32_t>(1e30F);  // the least float that is not below 1e30
    MaskLimits limits{limit, limit};
    if (!settings.mask_below) return limits;
    const double threshold = *settings.mask_below;
    if (!(threshold <= 0)) fail("mask-below: expected a negative number, found {}", threshold);
    if (threshold <= -1e30) return limits;
    const double magnitude = -threshold;
    auto nearest = static_cast<float>(magnitude);
    if (static_cast<double>(nearest) > magnitude) nearest = std::nextafter(nearest, 0.0F);
    const std::uint32_t beyond = std::bit_cast<std::uint32_t>(nearest) + 1;
    limits.negative = std::clamp(beyond, least_normal, limit);
    return limits;
}

// The working memory, and the state of the call being made.
struct Counter::Tables {
    explicit Tables(const CounterSettings& settings)
        : limits(mask_limits(settings)), extremes_only(settings.extremes_only) {}

    void start(TensorStatistics& target, bool few);
    void count_block(const float* block, std::size_t count, const float* next);
    void finish();

  private:
    BlockScan scan(const float* block, std::size_t count);
    bool holds_specials(const BlockScan& scan) const;
    bool fits(const BlockScan& scan) const;
    void make_room(const BlockScan& scan);
    void count_constant(float value, std::size_t count);
    void settle();

    const MaskLimits limits;
    const bool extremes_only;

    TensorStatistics* statistics = nullptr;
    std::uint32_t* counts = nullptr;  // of the statistics, by slot; null: few elements
    BlockScan whole;                  // of all blocks so far
    SideExponents exponents;          // E of both sides, over all blocks so far
    bool zeros_seen = false;          // in the last block
    std::size_t pending = 0;          // counts that the histograms do not know of

    alignas(64) std::array<std::uint16_t, block_elements + index_padding> slots = {};
    alignas(64) std::array<float, block_elements + index_padding> ordinary = {};
};

void Counter::Tables::start(TensorStatistics& target, bool few) {
    statistics = &target;
    counts =
        few || extremes_only ? nullptr : MagnitudeHistogram::counts_by_slot(target.positive, target.negative);
    whole = {};
    exponents = {exponent_of_nothing, exponent_of_nothing};
    zeros_seen = false;
    pending = 0;
}

// Scans a block and, where its elements can have slots, writes these. The first such block makes room.
BlockScan Counter::Tables::scan(const float* block, std::size_t count) {
    if (extremes_only) return scan_block(block, count);
    bool both_signs = whole.both_signs();
    if (std::max(exponents.positive, exponents.negative) == exponent_of_nothing) {
        const BlockScan sides = scan_greatest(block, count);
        if (holds_specials(sides) || fits(sides)) return scan_block(block, count);
        make_room(sides);
        both_signs = sides.both_signs();
    }
    SideExponents of_sides = exponents;
    if (of_sides.positive == exponent_of_nothing) of_sides.positive = of_sides.negative;
    if (of_sides.negative == exponent_of_nothing) of_sides.negative = of_sides.positive;
    const BlockScan found = index_block(block, count, of_sides, both_signs && !zeros_seen, slots.data());
    zeros_seen = found.nonzero < count;
    return found;
}

bool Counter::Tables::holds_specials(const BlockScan& scan) const {
    return scan.positive_bits() >= limits.positive || scan.negative_bits() >= limits.negative;
}

// True where the slots of the block's elements mean what they should.
bool Counter::Tables::fits(const BlockScan& scan) const {
    return exponent_of(scan.positive_bits()) <= exponents.positive &&
           exponent_of(scan.negative_bits()) <= exponents.negative;
}

// Takes the E of the sides that the block is too large for: slots mean something else from here on.
void Counter::Tables::make_room(const BlockScan& scan) {
    if (pending > 0) settle();
    const auto raise = [](MagnitudeHistogram& side, int& exponent, std::uint32_t bits) {
        if (exponent_of(bits) <= exponent) return;
        exponent = exponent_of(bits);
        side.grow(exponent);
    };
    raise(statistics->positive, exponents.positive, scan.positive_bits());
    raise(statistics->negative, exponents.negative, scan.negative_bits());
}

void Counter::Tables::count_constant(float value, std::size_t count) {
    const float magnitude = std::fabs(value);
    if (value < 0) {
        statistics->negative.add(MagnitudeHistogram::bin_of(magnitude, exponents.negative), count);
    } else {
        statistics->positive.add(MagnitudeHistogram::bin_of(magnitude, exponents.positive), count);
    }
}

void Counter::Tables::count_block(const float* block, std::size_t count, const float* next) {
    BlockScan found = scan(block, count);
    if (holds_specials(found)) {
        count = separate_block(block, count, limits, *statistics, ordinary.data());
        block = ordinary.data();
        if (count == 0) return;
        found = scan(block, count);
    }
    const bool histograms = !extremes_only && found.nonzero > 0;
    if (histograms && !fits(found)) {
        make_room(found);
        if (!found.constant()) scan(block, count);
    }
    whole.take_extremes(found);
    statistics->zeros += count - found.nonzero;
    if (!histograms) return;
    if (found.constant()) {
        count_constant(value_of(found.least_bits), count);
    } else if (counts != nullptr) {
        if (pending + found.nonzero > most_pending) settle();
        count_slots(std::span(slots).first(found.nonzero), counts, next);
        pending += found.nonzero;
    } else {
        MagnitudeHistogram::add_each(std::span(slots).first(found.nonzero), statistics->positive,
                                     statistics->negative);
    }
}

// Tells the histograms what was counted.
void Counter::Tables::settle() {
    const auto end = [](const MagnitudeHistogram& side, std::uint32_t greatest) {
        return MagnitudeHistogram::bin_of(std::bit_cast<float>(greatest), side.exponent()) + 1;
    };
    MagnitudeHistogram& positive = statistics->positive;
    MagnitudeHistogram& negative = statistics->negative;
    if (negative.empty()) {
        positive.recount(end(positive, whole.positive_bits()), pending);
    } else if (positive.empty()) {
        negative.recount(end(negative, whole.negative_bits()), pending);
    } else {
        const std::uint64_t negatives = negative.recount(end(negative, whole.negative_bits()));
        positive.recount(end(positive, whole.positive_bits()), pending - negatives);
    }
    pending = 0;
}

void Counter::Tables::finish() {
    if (pending > 0) settle();
    if (whole.least_bits > whole.greatest_bits) return;
    statistics->extremes = Range{value_of(whole.least_element()), value_of(whole.greatest_element())};
}

Counter::Counter(CounterSettings settings)
    : settings_(settings), tables_(std::make_unique<Tables>(settings)) {}
Counter::~Counter() = default;
Counter::Counter(Counter&&) noexcept = default;

const TensorStatistics& Counter::count(std::span<const float> elements) {
    count(elements, result_);
    return result_;
}

void Counter::count(std::span<const float> elements, TensorStatistics& result) {
    result.clear();
    tables_->start(result, elements.size() <= few_elements);
    for (std::size_t done = 0; done < elements.size(); done += block_elements) {
        const std::size_t left = elements.size() - done;
        const float* const block = elements.data() + done;
        tables_->count_block(block, std::min(left, block_elements),
                             left > 2 * block_elements ? block + block_elements : nullptr);
    }
    tables_->finish();
}

SampleSummary summarize(const TensorStatistics& sample) {
    SampleSummary summary;
    if (!sample.extremes) return summary;
    summary.has_data = true;
    summary.min = static_cast<float>(sample.extremes->min);
    summary.max = static_cast<float>(sample.extremes->max);
    if (sample.positive.total() + sample.negative.total() == 0) return summary;
    // As everywhere, what would be denormal is zero, whether or not the processor is set to flush it.
    const auto rounded = [](double value) {
        return std::fabs(value) < 0x1p-126 ? 0.0F : static_cast<float>(value);
    };
    summary.low_tail = rounded(quantile(sample, 0.0001));
    summary.high_tail = rounded(quantile(sample, 0.9999));
    return summary;
}

}  // namespace qcalib
