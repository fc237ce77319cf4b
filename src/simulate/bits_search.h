#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simulate/simulation.h"

namespace qcalib {

struct BitsSearchSettings {
    int bits = 16;                  // that tensors are put to
    std::size_t random_orders = 3;  // to compare with; 0: none
    std::uint64_t seed = 1;
};

// The error with so many tensors on more bits.
struct BitsPoint {
    std::size_t tensors = 0;
    double cost = 0;         // output_cost() with the costliest of them
    double random_cost = 0;  // the mean over random orders
};

struct BitsSearch {
    std::vector<IsolatedCost> ranking;  // candidates: integers of fewer bits, the costliest first
    std::vector<BitsPoint> curve;       // from none to all
    bool whole = false;                 // the whole graph was run for each candidate
};

// Ranks all encodings by what each costs alone, and simulates the model with the first 1, 2, 3, 5, 8, ... of
// them on more bits, beside as many chosen at random.
BitsSearch search_bits(const SimulationRun& run, const BitsSearchSettings& settings);

// What one differing encoding does to the graph's outputs.
struct EncodingShare {
    std::string name;
    double share = 0;   // of what all differing encodings change, each by itself: all shares are 1 together
    double alone = 0;   // what it changes by itself, as a part of the whole difference
    double closes = 0;  // of the whole difference: what goes where it alone is changed
};

struct EncodingShares {
    double difference = 0;              // output_cost() of the second run beside the first
    std::size_t same = 0;               // encodings that do not differ
    std::vector<EncodingShare> shares;  // the greatest first
};

// Runs the model with the given encodings, with `other`, and with each differing encoding of `other` alone
// among the given ones.
EncodingShares encoding_shares(const SimulationRun& run, const GivenEncodings& other);

}  // namespace qcalib
