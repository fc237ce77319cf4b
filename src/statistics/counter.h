#pragma once

#include <memory>
#include <optional>
#include <span>

#include "statistics/histogram.h"

namespace qcalib {

// What a row holds of one tensor in one sample.
struct SampleSummary {
    bool has_data = false;
    float min = 0;
    float max = 0;
    float low_tail = 0;   // the sample's own 0.01 % percentile of elements
    float high_tail = 0;  // 99.99 %

    bool operator==(const SampleSummary&) const = default;
};

struct CounterSettings {
    std::optional<double> mask_below;  // values below it (a negative number) are masks
    bool extremes_only = false;        // no histograms, no tails

    bool operator==(const CounterSettings&) const = default;
};

// Counts the elements of one tensor of one sample. Holds its working memory: one counter a worker.
class Counter {
  public:
    explicit Counter(CounterSettings settings = {});
    ~Counter();
    Counter(Counter&&) noexcept;

    // Counts all elements; the result is valid until the next call. The elements may lie unaligned.
    const TensorStatistics& count(std::span<const float> elements);
    // The same, into `result`, whose memory is used again.
    void count(std::span<const float> elements, TensorStatistics& result);

  private:
    struct Tables;
    CounterSettings settings_;
    std::unique_ptr<Tables> tables_;
    TensorStatistics result_;
};

// The row entry of a sample's own statistics (tails are left 0 without histograms).
SampleSummary summarize(const TensorStatistics& sample);

}  // namespace qcalib
