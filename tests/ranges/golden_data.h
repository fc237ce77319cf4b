#pragma once

#include <cstdint>
#include <vector>

namespace qcalib::test {

// The data on which other calibrators were run (golden/README.md): four batches of 4,096 numbers. Kind 0:
// signed, batches of different spread; 1: its Relu, times 3; 2: signed, moved by 0.3, one in a thousand 25
// times as large. Computed in double and rounded once, so that they are the same bits everywhere.
class GoldenData {
  public:
    static constexpr std::size_t batch_size = 4096;
    using Batches = std::vector<std::vector<float>>;

    static Batches batches(int kind) {
        GoldenData data(static_cast<std::uint64_t>(1000 + kind));
        Batches batches;
        for (const double gain : {1.0, 1.7, 0.6, 1.3}) {
            std::vector<float>& batch = batches.emplace_back(batch_size);
            for (float& value : batch) value = static_cast<float>(data.draw(kind, gain));
        }
        return batches;
    }

  private:
    explicit GoldenData(std::uint64_t seed) : state_(seed) {}

    // splitmix64: the top 24 bits as a fraction.
    double unit() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        return static_cast<double>((z ^ (z >> 31)) >> 40) / 16777216.0;
    }

    double draw(int kind, double gain) {
        double bell = -2;
        const double first = unit();
        const double second = unit();
        const double third = unit();
        bell = first + second + third + unit() - 2;
        if (kind == 0) return bell * gain;
        if (kind == 1) return bell > 0 ? bell * gain * 3 : 0.0;
        const double outlier = unit() > 0.999 ? 25.0 * bell : 0.0;
        const double scaled = bell * gain;
        return scaled + outlier + 0.3;
    }

    std::uint64_t state_;
};

}  // namespace qcalib::test
