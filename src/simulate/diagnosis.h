#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/simulation.h"

namespace qcalib {

// One switch set to another value than that of the simulation.
struct SwitchChange {
    std::string name;   // "weights"
    std::string value;  // "clipped"
    std::string text;   // what that means, a clause
};

// What changes do to the distance from dumped tensors.
struct TriedChanges {
    std::vector<SwitchChange> changes;  // none: the simulation as it was; one or two
    DumpErrors errors;                  // over all dumped tensors
};

// An assumption of the integer chain that its explanation rests on.
struct ChainCause {
    SwitchChange assumption;      // as it is: "layer-weights", "saturated"
    std::uint64_t different = 0;  // elements with another code without it
};

struct Diagnosis {
    enum class Verdict {
        nothing_to_explain,  // no element is half a step away
        explained,           // with these changes none is any more
        partly,              // they take half of the squared distance and of the other codes away, or more
        unexplained,
    };
    Verdict verdict = Verdict::unexplained;
    std::vector<TriedChanges> tried;     // the simulation as it was first, then the nearest first
    std::vector<TriedChanges> findings;  // those that explain equally well; as few changes as possible
    std::vector<ChainCause> causes;      // where the integer chain is a finding; the weightiest first
    std::vector<std::string> advice;     // what can be done about it
};

// Tries the switches' other values singly and in pairs against what a device or another tool dumped. Input
// ranges are tried where ranges were measured, those of the integer chain where the target has one.
Diagnosis diagnose(const SimulationRun& run, const DumpFolder& against);

}  // namespace qcalib
