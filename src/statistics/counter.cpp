#include "statistics/counter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "statistics/block_kernels.h"

namespace qcalib {

namespace {

constexpr std::size_t block_elements = 4096;                 // one block and its slots stay in L1
constexpr std::size_t direct_elements = 2048;                // tensors up to here are counted without tables
constexpr std::size_t flush_after = 65535 - block_elements;  // what each table may hold before another block
constexpr std::int32_t least_normal = 0x00800000;
constexpr int exponent_of_nothing = -126;  // below that of every ordinary value

// The least magnitude, as bits, that is a mask: 1e30, or on the negative side the first beyond `mask_below`.
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
    limits.negative = std::clamp(beyond, static_cast<std::uint32_t>(least_normal), limit);
    return limits;
}

// The value of an order number; zeros and denormals give +0.
float value_of(std::int32_t order) {
    if (order >= -least_normal && order < least_normal) return 0.0F;
    return std::bit_cast<float>(order ^ ((order >> 31) & 0x7fffffff));
}

// The least E of a side whose greatest magnitude has these bits; -126 where it has no ordinary value.
int exponent_of(std::int32_t magnitude_bits) {
    return std::max(magnitude_bits >> 23, 0) - 126;
}

// The order number of the greatest magnitude of each side, as bits of that magnitude (below least_normal:
// none).
std::int32_t positive_bits(const BlockScan& scan) {
    return scan.greatest;
}
std::int32_t negative_bits(const BlockScan& scan) {
    return -1 - scan.least;
}

void reset(TensorStatistics& statistics) {
    statistics.zeros = 0;
    statistics.nans = 0;
    statistics.positive_infinities = 0;
    statistics.negative_infinities = 0;
    statistics.positive_masks = 0;
    statistics.negative_masks = 0;
    statistics.extremes.reset();
    statistics.positive.clear();
    statistics.negative.clear();
}

// The count of each slot, in turns: neighbouring elements are often equal, and a count that was just written
// is slow to read again. The padding keeps the tables from meeting in the same cache sets.
struct SlotTables {
    std::array<std::uint16_t, slots> first = {};
    std::array<std::uint16_t, 32> padding = {};
    std::array<std::uint16_t, slots> second = {};
};

// Counts slots, and fetches `next` (elements, or null) meanwhile. Answers how many the first table got, at
// least half.
std::size_t count_slots(const std::uint16_t* indices, std::size_t count, SlotTables& tables,
                        const float* next) {
    std::uint16_t* const first = tables.first.data();
    std::uint16_t* const second = tables.second.data();
    const auto* const fetched = reinterpret_cast<const char*>(next);
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        if (next != nullptr) __builtin_prefetch(fetched + i * sizeof(float));
        for (std::size_t k = 0; k < 16; k += 4) {
            std::uint64_t four = 0;
            std::memcpy(&four, indices + i + k, sizeof four);
            ++first[(four & 0xffff) - lowest_slot];
            ++second[((four >> 16) & 0xffff) - lowest_slot];
            ++first[((four >> 32) & 0xffff) - lowest_slot];
            ++second[(four >> 48) - lowest_slot];
        }
    }
    const std::size_t half = i / 2;
    const std::size_t tail = count - i;
    for (; i < count; ++i) ++first[indices[i] - lowest_slot];
    return half + tail;
}

}  // namespace

// The working memory, and the state of the call being made.
struct Counter::Tables {
    explicit Tables(const CounterSettings& settings)
        : limits(mask_limits(settings)), extremes_only(settings.extremes_only) {}

    void start(TensorStatistics& target, bool use_tables);
    void count_block(const float* block, std::size_t count, const float* next);
    void finish();

  private:
    // One sign: its histogram, its E so far, and the K of its keys.
    struct Side {
        MagnitudeHistogram* histogram = nullptr;
        int exponent = exponent_of_nothing;
        int key_exponent = exponent_of_nothing;

        bool present() const { return exponent != exponent_of_nothing; }
        std::size_t plain_key() const { return first_plain_key(key_exponent - exponent); }
    };

    BlockScan scan(const float* block, std::size_t count);
    bool holds_specials(const BlockScan& scan) const;
    bool fits(const BlockScan& scan) const;
    void make_room(const BlockScan& scan);
    void take(const BlockScan& scan, std::size_t count);
    void count_constant(std::int32_t order, std::size_t count);
    void count_directly(std::size_t count);
    void flush();
    void add_sums(std::size_t keys, const Side& side);

    const MaskLimits limits;
    const bool extremes_only;

    TensorStatistics* statistics = nullptr;
    bool tabulate = false;
    BlockScan whole;  // of all blocks so far
    Side positive;
    Side negative;
    SlotOffsets offsets;
    std::size_t pending = 0;  // counts in the first table, no fewer than in the second

    std::array<std::uint16_t, block_elements + slot_padding> indices = {};
    std::array<float, block_elements + slot_padding> ordinary = {};
    std::array<std::uint16_t, direct_elements> positive_bins = {};
    std::array<std::uint16_t, direct_elements> negative_bins = {};
    std::array<std::uint32_t, keys_per_side> sums = {};
    std::array<std::uint32_t, MagnitudeHistogram::group> low_bins = {};
    SlotTables tables;
};

void Counter::Tables::start(TensorStatistics& target, bool use_tables) {
    statistics = &target;
    tabulate = use_tables;
    whole = {};
    positive = {&target.positive};
    negative = {&target.negative};
    offsets = {};
    pending = 0;
}

// Scans a block and, once it is known where keys begin, writes its slots.
BlockScan Counter::Tables::scan(const float* block, std::size_t count) {
    const bool slots_known = positive.present() || negative.present();
    return slots_known ? index_block(block, count, offsets, indices.data()) : scan_block(block, count);
}

bool Counter::Tables::holds_specials(const BlockScan& scan) const {
    return positive_bits(scan) >= static_cast<std::int32_t>(limits.positive) ||
           negative_bits(scan) >= static_cast<std::int32_t>(limits.negative);
}

// True where the slots of the block's elements mean what they should.
bool Counter::Tables::fits(const BlockScan& scan) const {
    return exponent_of(positive_bits(scan)) <= positive.key_exponent &&
           exponent_of(negative_bits(scan)) <= negative.key_exponent;
}

// Moves the keys of the sides that the block is too large for, and leaves room for somewhat larger ones.
void Counter::Tables::make_room(const BlockScan& scan) {
    if (pending > 0) flush();
    const auto raise = [](Side& side, int exponent) {
        if (exponent > side.key_exponent) side.key_exponent = exponent + key_headroom;
    };
    raise(positive, exponent_of(positive_bits(scan)));
    raise(negative, exponent_of(negative_bits(scan)));
    offsets = slot_offsets(positive.key_exponent, negative.key_exponent);
}

void Counter::Tables::take(const BlockScan& scan, std::size_t count) {
    whole.least = std::min(whole.least, scan.least);
    whole.greatest = std::max(whole.greatest, scan.greatest);
    positive.exponent = std::max(positive.exponent, exponent_of(positive_bits(scan)));
    negative.exponent = std::max(negative.exponent, exponent_of(negative_bits(scan)));
    statistics->zeros += count - scan.nonzero;
}

void Counter::Tables::count_constant(std::int32_t order, std::size_t count) {
    const float value = value_of(order);
    const Side& side = value < 0 ? negative : positive;
    side.histogram->grow(side.exponent);
    side.histogram->add(MagnitudeHistogram::bin_of(std::fabs(value), side.exponent), count);
}

// The bin of each key of a small tensor: it is one block, so K is as far above E as it can be.
constexpr auto bins_of_keys = [] {
    std::array<std::uint16_t, keys_per_side> bins = {};
    for (std::size_t key = 0; key < bins.size(); ++key) {
        bins[key] = static_cast<std::uint16_t>(bin_of_key(key, first_plain_key(key_headroom)));
    }
    return bins;
}();

// Counts the slots of a small tensor bin by bin: the tables would take longer to empty than to fill.
void Counter::Tables::count_directly(std::size_t count) {
    std::size_t positives = 0;
    std::size_t negatives = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint16_t slot = indices[i];
        const bool is_positive = slot >= first_positive_slot;
        const std::size_t key = is_positive ? slot - first_positive_slot : first_negative_slot - slot;
        const std::uint16_t bin = bins_of_keys[key];
        positive_bins[positives] = bin;  // both, and one is kept: signs are hard to predict
        negative_bins[negatives] = bin;
        positives += is_positive ? 1 : 0;
        negatives += is_positive ? 0 : 1;
    }
    const auto add = [](const Side& side, std::span<const std::uint16_t> bins) {
        if (bins.empty()) return;
        side.histogram->grow(side.exponent);
        side.histogram->add_each(bins);
    };
    add(positive, std::span(positive_bins).first(positives));
    add(negative, std::span(negative_bins).first(negatives));
}

void Counter::Tables::count_block(const float* block, std::size_t count, const float* next) {
    BlockScan found = extremes_only ? scan_block(block, count) : scan(block, count);
    if (holds_specials(found)) {
        count = separate_block(block, count, limits, *statistics, ordinary.data());
        block = ordinary.data();
        if (count == 0) return;
        found = extremes_only ? scan_block(block, count) : scan(block, count);
    }
    if (extremes_only || found.nonzero == 0) {
        take(found, count);
        return;
    }
    const bool constant = found.least == found.greatest;
    if (!fits(found)) {
        make_room(found);
        if (!constant) index_block(block, count, offsets, indices.data());
    }
    take(found, count);
    if (constant) {
        count_constant(found.least, count);
    } else if (tabulate) {
        pending += count_slots(indices.data(), found.nonzero, tables, next);
        if (pending > flush_after) flush();
    } else {
        count_directly(found.nonzero);
    }
}

// Moves the tables' counts into the histograms.
void Counter::Tables::flush() {
    if (positive.present()) {
        const auto keys = static_cast<std::size_t>(key_of(positive_bits(whole), positive.key_exponent)) + 1;
        take_positive_keys(tables.first.data(), tables.second.data(), keys, sums.data());
        add_sums(keys, positive);
    }
    if (negative.present()) {
        const auto keys = static_cast<std::size_t>(key_of(negative_bits(whole), negative.key_exponent)) + 1;
        take_negative_keys(tables.first.data(), tables.second.data(), keys, sums.data());
        add_sums(keys, negative);
    }
    pending = 0;
}

// Adds the sums of that many keys to their bins.
void Counter::Tables::add_sums(std::size_t keys, const Side& side) {
    constexpr std::size_t block = MagnitudeHistogram::block;
    const std::size_t plain_key = side.plain_key();
    const std::size_t plain = (keys - plain_key + block - 1) / block * block;
    std::fill_n(sums.begin() + static_cast<std::ptrdiff_t>(keys), plain_key + plain - keys, 0U);
    fold_low_keys(sums.data(), plain_key, low_bins.data());
    side.histogram->grow(side.exponent);
    side.histogram->add_run(0, low_bins);
    side.histogram->add_run(MagnitudeHistogram::group, std::span(sums).subspan(plain_key, plain));
}

void Counter::Tables::finish() {
    if (pending > 0) flush();
    if (whole.least > whole.greatest) return;
    statistics->extremes = Range{value_of(whole.least), value_of(whole.greatest)};
}

Counter::Counter(CounterSettings settings)
    : settings_(settings), tables_(std::make_unique<Tables>(settings)) {}
Counter::~Counter() = default;
Counter::Counter(Counter&&) noexcept = default;

const TensorStatistics& Counter::count(std::span<const float> elements) {
    reset(result_);
    tables_->start(result_, elements.size() > direct_elements);
    for (std::size_t done = 0; done < elements.size(); done += block_elements) {
        const std::size_t left = elements.size() - done;
        const std::size_t count = std::min(left, block_elements);
        const float* const block = elements.data() + done;
        tables_->count_block(block, count, left > 2 * block_elements ? block + block_elements : nullptr);
    }
    tables_->finish();
    return result_;
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
