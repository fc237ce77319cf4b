#include "runtime/movement_cases.h"

namespace qcalib::test {

TEST_CASE("Constant gives the value of its one attribute") {
    OperatorCase test{.op_type = "Constant"};
    test.attributes["value"] = counting<std::int64_t>({2, 2});
    check_values(test, {2, 2}, {0, 1, 2, 3});
    test.attributes = {{"value_float", 2.5F}};
    check_values(test, {}, {2.5});
    test.attributes = {{"value_int", std::int64_t{-7}}};
    check_values(test, {}, {-7});
    test.attributes = {{"value_floats", std::vector<float>{1, 2}}};
    check_values(test, {2}, {1, 2});
    test.attributes = {{"value_ints", std::vector<std::int64_t>{3, 4, 5}}};
    check_values(test, {3}, {3, 4, 5});
    test.attributes = {{"value_texts", std::string("text")}};
    check_refused(test, "found value_texts");
    test.attributes = {};
    check_refused(test, "found none");
}

TEST_CASE("ConstantOfShape repeats one value, 0 by default") {
    OperatorCase test{.op_type = "ConstantOfShape"};
    test.inputs = {integers({2, 3})};
    check_values(test, {2, 3}, {0, 0, 0, 0, 0, 0});
    CHECK(run_operator(test, Kernels::fast)[0].type() == DataType::float32);
    test.attributes["value"] = integers({9});
    check_values(test, {2, 3}, {9, 9, 9, 9, 9, 9});
    test.inputs = {integers({})};
    check_values(test, {}, {9});
    test.inputs = {integers({0, 2})};
    check_values(test, {0, 2}, {});
    test.inputs = {integers({2, -1})};
    check_refused(test, "expected dimensions of 0 or more, found [2,-1]");
}

TEST_CASE("Shape gives the dimensions from start to end, Size their product") {
    OperatorCase test{.op_type = "Shape", .opset = 15};
    test.inputs = {counting({2, 3, 4, 5})};
    check_values(test, {4}, {2, 3, 4, 5});
    test.attributes = {{"start", std::int64_t{1}}};
    check_values(test, {3}, {3, 4, 5});
    test.attributes = {{"start", std::int64_t{-3}}, {"end", std::int64_t{-1}}};
    check_values(test, {2}, {3, 4});
    test.attributes = {{"start", std::int64_t{-10}}, {"end", std::int64_t{10}}};
    check_values(test, {4}, {2, 3, 4, 5});
    test.attributes = {{"start", std::int64_t{3}}, {"end", std::int64_t{1}}};
    check_values(test, {0}, {});
    OperatorCase size{.op_type = "Size"};
    size.inputs = {counting({2, 3, 4, 5})};
    check_values(size, {}, {120});
}

TEST_CASE("Range counts from start up or down to the limit, which it leaves out") {
    const auto range = [](auto start, auto limit, auto delta) {
        using T = decltype(start);
        OperatorCase test{.op_type = "Range", .constant = {true, true, true}};
        for (const T value : {start, limit, delta}) {
            test.inputs.emplace_back(Tensor::of<T>({}, std::span<const T>(&value, 1)));
        }
        return test;
    };
    check_values(range(std::int64_t{1}, std::int64_t{8}, std::int64_t{3}), {3}, {1, 4, 7});
    check_values(range(10, 4, -2), {3}, {10, 8, 6});
    check_values(range(1.0F, 2.0F, 0.25F), {4}, {1, 1.25, 1.5, 1.75});
    check_values(range(5, 1, 1), {0}, {});
    check_refused(range(1, 5, 0), "expected a range that ends");
}

}  // namespace qcalib::test
