#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "report/table.h"

namespace qcalib {

// What an operator, or a stage of a run, cost over all samples.
struct CostRow {
    std::string name;
    double calls = 0;
    double seconds = 0;
    double bytes = 0;       // read and written; 0: not known
    double operations = 0;  // floating-point; 0: none worth telling
};

// What one core reaches, to compare with.
struct CostPeak {
    double operations_per_second = 0;
    double bytes_per_second = 0;
};

// A table headed `title` of the costs of a sample, the dearest first: calls, milliseconds, share of all, and
// what was reached of the peak: operations a second for products and convolutions, bytes a second for the
// rest. Above 100 % the data come from a cache.
Table cost_table(const std::string& title, std::span<const CostRow> rows, double samples,
                 const CostPeak& peak);

}  // namespace qcalib
