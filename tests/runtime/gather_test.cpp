#include "runtime/movement_cases.h"

namespace qcalib::test {

namespace {

OperatorCase gather(const std::string& op_type, Tensor data, Tensor indices, std::int64_t axis) {
    OperatorCase test{.op_type = op_type};
    test.inputs = {std::move(data), std::move(indices)};
    test.attributes["axis"] = axis;
    return test;
}

Tensor table(Shape shape, std::vector<std::int64_t> values) {
    return Tensor::of<std::int64_t>(std::move(shape), values);
}

}  // namespace

TEST_CASE("Gather picks slices along any axis, from the back where negative") {
    check_values(gather("Gather", counting({3, 2}), integers({2, 0, -1}), 0), {3, 2}, {4, 5, 0, 1, 4, 5});
    check_values(gather("Gather", counting({2, 3}), table({1, 2}, {0, 2}), 1), {2, 1, 2}, {0, 2, 3, 5});
    check_values(gather("Gather", counting<std::int64_t>({4}), table({}, {-2}), 0), {}, {2});
    const std::vector<std::int32_t> narrow{1};
    check_values(gather("Gather", counting<std::uint8_t>({2, 2}), Tensor::of<std::int32_t>({1}, narrow), -1),
                 {2, 1}, {1, 3});
    check_values(gather("Gather", counting({2, 3}), integers({}), 0), {0, 3}, {});
}

TEST_CASE("Gather agrees with the reference on every axis") {
    for (std::int64_t axis = 0; axis < 4; ++axis) {
        check_all_kernels_agree(
            gather("Gather", random_tensor({4, 5, 6, 7}, 2), table({2, 2}, {3, 0, -4, 1}), axis));
    }
}

TEST_CASE("Gather names the node and the index that lies outside") {
    check_refused(gather("Gather", counting({3, 2}), integers({0, 3}), 0),
                  "expected indices from -3 to 2, found 3");
    check_refused(gather("Gather", counting({3, 2}), integers({-4}), 0), "Gather 'node'");
    check_refused(gather("Gather", counting({3, 2}), integers({0}), 2),
                  "expected an axis from -2 to 1, found 2");
    check_refused(gather("Gather", counting({3, 2}), counting<std::uint8_t>({1}), 0), "found uint8");
}

TEST_CASE("GatherElements picks one element per index") {
    check_values(gather("GatherElements", counting({3, 3}), table({2, 3}, {1, 2, 0, -1, 0, 0}), 0), {2, 3},
                 {3, 7, 2, 6, 1, 2});
    check_values(gather("GatherElements", counting({2, 2}), table({2, 2}, {0, 0, 1, 0}), 1), {2, 2},
                 {0, 0, 3, 2});
    check_refused(gather("GatherElements", counting({2, 2}), table({1, 1}, {2}), 1), "found 2");
    check_refused(gather("GatherElements", counting({2, 2}), table({3, 1}, {0, 0, 0}), 1),
                  "within its shape [2,2]");
}

TEST_CASE("GatherND picks slices by coordinates, after batch dimensions") {
    OperatorCase test{.op_type = "GatherND"};
    test.inputs = {counting({2, 2}), table({2, 2}, {0, 0, -1, 1})};
    check_values(test, {2}, {0, 3});
    test.inputs = {counting({2, 2, 2}), table({2, 1}, {1, 0})};
    check_values(test, {2, 2, 2}, {4, 5, 6, 7, 0, 1, 2, 3});
    test.attributes["batch_dims"] = std::int64_t{1};
    check_values(test, {2, 2}, {2, 3, 4, 5});
    test.inputs[1] = table({2, 1}, {1, 2});
    check_refused(test, "expected indices from -2 to 1, found 2");
}

TEST_CASE("ScatterND writes or combines slices at coordinates") {
    OperatorCase test{.op_type = "ScatterND", .opset = 18};
    test.inputs = {counting({3, 2}), table({2, 1}, {2, 0}), counting({2, 2})};
    check_values(test, {3, 2}, {2, 3, 2, 3, 0, 1});
    test.inputs[1] = table({2, 1}, {1, 1});
    test.attributes["reduction"] = std::string("add");
    check_values(test, {3, 2}, {0, 1, 4, 7, 4, 5});
    test.attributes["reduction"] = std::string("mul");
    check_values(test, {3, 2}, {0, 1, 0, 9, 4, 5});
    test.attributes["reduction"] = std::string("max");
    check_values(test, {3, 2}, {0, 1, 2, 3, 4, 5});
    test.attributes["reduction"] = std::string("mni");
    check_refused(test, "expected reduction");
    test.attributes.clear();
    test.inputs[2] = counting({2, 3});
    check_refused(test, "expected updates");
}

TEST_CASE("ScatterElements writes elements at indices along an axis") {
    OperatorCase test{.op_type = "ScatterElements", .opset = 16};
    test.attributes["axis"] = std::int64_t{1};
    test.inputs = {counting<std::int64_t>({1, 5}), table({1, 2}, {1, -1}), table({1, 2}, {70, 80})};
    check_values(test, {1, 5}, {0, 70, 2, 3, 80});
    test.attributes["reduction"] = std::string("add");
    test.inputs[1] = table({1, 2}, {1, 1});
    check_values(test, {1, 5}, {0, 151, 2, 3, 4});
}

TEST_CASE("Expand broadcasts and Tile repeats") {
    OperatorCase expand{.op_type = "Expand"};
    expand.inputs = {counting({3, 1}), integers({2, 1, 2})};
    check_values(expand, {2, 3, 2}, {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2});
    expand.inputs = {counting({2, 2}), integers({1})};
    check_values(expand, {2, 2}, {0, 1, 2, 3});
    expand.inputs = {booleans({}, {true}), integers({2})};
    check_values(expand, {2}, {1, 1});
    expand.inputs = {counting({1, 3}), integers({0, 3})};
    check_values(expand, {0, 3}, {});
    expand.inputs = {counting({2, 2}), integers({3, 2})};
    check_refused(expand, "cannot expand [2,2] to [3,2]");
    OperatorCase tile{.op_type = "Tile"};
    tile.inputs = {counting<std::int32_t>({2, 2}), integers({1, 2})};
    check_values(tile, {2, 4}, {0, 1, 0, 1, 2, 3, 2, 3});
    tile.inputs[1] = integers({2, 1});
    check_values(tile, {4, 2}, {0, 1, 2, 3, 0, 1, 2, 3});
    tile.inputs[1] = integers({0, 1});
    check_values(tile, {0, 2}, {});
    tile.inputs[1] = integers({2});
    check_refused(tile, "expected 2 repeats of 0 or more, found [2]");
    for (const auto& repeats : {std::vector<std::int64_t>{2, 1, 3, 1}, {1, 4, 1, 2}, {1, 1, 1, 1}}) {
        tile.inputs = {random_tensor({2, 3, 4, 5}, 5), integers(repeats)};
        check_all_kernels_agree(tile);
    }
}

}  // namespace qcalib::test
