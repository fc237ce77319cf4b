#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "simulate/bits_search.h"
#include "simulate/diagnosis.h"
#include "simulate/simulation.h"

namespace qcalib {

// All that a simulation found, and what it was of.
struct SimulationReport {
    std::string model;
    std::string data;
    std::string encodings;  // "": none, the model ran in float
    std::string against;    // folder of dumps
    std::string other;      // other file of encodings
    std::string converter_list;
    std::string target;
    std::string evidence;  // of the target's switches
    SimulationSwitches switches;
    SimulationResult result;
    std::vector<IsolatedCost> isolated;  // the costliest first
    bool whole = false;                  // the whole graph was run for each of them
    std::optional<Diagnosis> diagnosis;
    std::optional<BitsSearch> bits;
    std::optional<EncodingShares> shares;
};

// "rounding half-up, weights given, bias int32, input-ranges given, pre-activations quantized".
std::string describe(const SimulationSwitches& switches);

// For a terminal of that width: graph outputs, the costliest tensors (`all`: every one), and what else was
// asked for.
std::string simulation_text(const SimulationReport& report, bool all, std::size_t width);

// One JSON object; docs/simulate.md lists its keys. Numbers that are infinite are null.
std::string to_json(const SimulationReport& report, const Remarks& remarks);

}  // namespace qcalib
