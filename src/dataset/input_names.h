#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/input_spec.h"

namespace qcalib {

std::vector<std::string> input_names(std::span<const InputSpec> inputs);

// "a, b and c", as they may be shown.
std::string list_of_inputs(std::span<const InputSpec> inputs);

// "no input 'imgae' (did you mean 'image'?)"; where none is near, the inputs there are.
std::string no_such_input(std::string_view name, std::span<const InputSpec> inputs);

// "input 'image' [1,3,?,?]".
std::string describe(const InputSpec& input);

}  // namespace qcalib
