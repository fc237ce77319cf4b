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
    // Errors offer the nearest value; so does a switch of the integer chain for a target without one.
    SimulationSwitches switches(const Target& target) const;

  private:
    void add_chain_to(CLI::App& app);
    bool has_chain_flag() const;

    std::string rounding_;
    std::string weights_;
    std::string bias_;
    std::string input_ranges_;
    std::string pre_activations_;
    std::string arithmetic_;
    std::string network_input_;
    std::string leading_clip_;
    std::string batch_norm_weights_;
    std::string layer_weights_;
    std::string shift_rounding_;
    std::string output_scale_;
    std::string element_signs_;
};

}  // namespace qcalib
