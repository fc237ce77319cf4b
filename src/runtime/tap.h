#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "tensor/tensor.h"

namespace qcalib {

// What a tap may do with a value; the strictest right of all taps holds.
enum class TapRight : std::uint8_t {
    ignore,  // never called: the value may become a view, be overwritten, be folded
    read,  // called once each time the value is made; it may be a view, be folded per plan, or be overwritten
           // in place by its last consumer afterwards
    write,  // as read, and the tap may change the buffer: the value is neither folded nor a view, nor has it
            // views whose source is still wanted
};

// Sees the values of a run as they are made. Calls of one sample come in plan order on one thread (graph
// inputs first); different samples call at the same time. Constants that hang on initializers alone give no
// call.
class Tap {
  public:
    virtual ~Tap() = default;
    virtual TapRight right(const Graph& graph, ValueId value) const = 0;
    // `view` is in the memory order the value has. Only a tap with the right to write may change it.
    virtual void on_value(ValueId value, std::uint64_t sample, MutableTensorView view) = 0;
};

}  // namespace qcalib
