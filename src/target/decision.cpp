#include "target/decision.h"

namespace qcalib {

std::string_view name_of(Decision::Kind kind) {
    switch (kind) {
        case Decision::Kind::activation:
            return "activation";
        case Decision::Kind::weight:
            return "weight";
        case Decision::Kind::bias:
            return "bias";
        default:
            return "constant";
    }
}

}  // namespace qcalib
