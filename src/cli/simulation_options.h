#pragma once

#include <string>

#include "target/target.h"

namespace CLI {
class App;
}

namespace qcalib {

// The flags of a simulation's switches, each in place of what the target's rules say.
class SwitchOptions {
  public:
    void add_to(CLI::App& app);
    // Errors offer the nearest value.
    SimulationSwitches switches(const Target& target) const;

  private:
    std::string rounding_;
    std::string weights_;
    std::string bias_;
    std::string input_ranges_;
    std::string pre_activations_;
};

}  // namespace qcalib
