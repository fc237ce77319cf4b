#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qcalib {

// One way in which a chain of operators is written, as the `fusions` of a target's YAML have it:
//
//     a = Add(x, 3); c = Clip(a, 0, 6); m = Mul(x, c); y = Div(m, 6)
//
// Each statement is a node and names its first output; the last one is what is left of the chain. `A|B` are
// alternatives, `HardSigmoid{alpha=0.1666667}` asks for an attribute. An operand is the name of a statement,
// a name for any activation (the same one wherever it stands), a number (a constant all of whose elements are
// that, within a ten-thousandth), `#w` (a constant that keeps its encoding) or `%b` (one that has none any
// more). The bounds of a Clip may be attributes. Add and Mul take their operands in either order. What a node
// has beyond the operands given must be constant.
struct PatternForm {
    struct Operand {
        enum class Kind : std::uint8_t { statement, activation, number, kept_constant, lost_constant };
        Kind kind = Kind::activation;
        std::size_t index = 0;  // of the statement or of the activation
        double number = 0;
        bool vector = false;  // of constants: all dimensions but the last are 1
    };
    struct Attribute {
        std::string name;
        double value = 0;
    };
    struct Statement {
        std::vector<std::string> op_types;
        std::vector<Attribute> attributes;
        std::vector<Operand> operands;
    };
    std::string text;
    std::vector<Statement> statements;
    std::size_t activations = 0;  // how many different names for activations there are
};

// An Error says what was expected at which character.
PatternForm parse_pattern_form(std::string_view text);

}  // namespace qcalib
