#include "runtime/movement_cases.h"

namespace qcalib::test {

TEST_CASE("DepthToSpace spreads channels over blocks by mode, SpaceToDepth takes them back") {
    OperatorCase test{.op_type = "DepthToSpace"};
    test.attributes["blocksize"] = std::int64_t{2};
    test.inputs = {counting({1, 8, 1, 1})};
    check_values(test, {1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7});
    test.attributes["mode"] = std::string("CRD");
    check_values(test, {1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    for (const char* mode : {"DCR", "CRD"}) {
        test.attributes["mode"] = std::string(mode);
        test.inputs = {random_tensor({2, 12, 3, 5}, 1)};
        check_all_kernels_agree(test);
    }
    OperatorCase back{.op_type = "SpaceToDepth"};
    back.attributes["blocksize"] = std::int64_t{2};
    back.inputs = {counting({1, 1, 2, 4})};
    check_values(back, {1, 4, 1, 2}, {0, 2, 1, 3, 4, 6, 5, 7});
    back.inputs = {random_tensor({2, 3, 6, 4}, 1)};
    check_all_kernels_agree(back);
}

TEST_CASE("DepthToSpace and SpaceToDepth refuse shapes their block does not divide") {
    OperatorCase test{.op_type = "DepthToSpace"};
    test.attributes["blocksize"] = std::int64_t{2};
    test.inputs = {counting({1, 6, 1, 1})};
    check_refused(test, "expected channels that 4 divides");
    test.inputs = {counting({4, 1, 1})};
    check_refused(test, "expected rank 4");
    test.op_type = "SpaceToDepth";
    test.inputs = {counting({1, 1, 3, 4})};
    check_refused(test, "expected a height and a width that 2 divides");
}

}  // namespace qcalib::test
