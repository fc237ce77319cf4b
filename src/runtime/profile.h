#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace qcalib {

// What the steps of one operator cost over all runs. Steps that are no operator have names in brackets:
// "(reorder)", "(copy)".
struct OperatorCost {
    std::uint64_t calls = 0;
    double seconds = 0;  // CPU time of the workers' threads
    double bytes = 0;    // of all inputs and outputs
    double operations =
        0;  // multiplications and additions of products of matrices and convolutions; 0 for others
};

// Adds up what steps cost. One a worker; merged at the end.
class Profile {
  public:
    // The seconds of each step of one run of `plan`.
    void add_run(const Plan& plan, std::span<const double> seconds);
    void merge(const Profile& other);

    const std::map<std::string, OperatorCost>& by_operator() const { return costs_; }

  private:
    std::map<std::string, OperatorCost> costs_;
};

// What one core of this machine reaches now.
struct Peak {
    double operations_per_second = 0;  // float32, in a product of matrices that lie in its caches
    double bytes_per_second = 0;       // read and written, in a copy of memory that is in none
};

// Measures it in about 50 ms. `registry` gives the kernel of the product.
Peak measure_peak();

}  // namespace qcalib
