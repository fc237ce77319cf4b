// The golden values are answers of Samsung ONE's circle-quantizer.
#include "target/circle_arithmetic.h"

#include <limits>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

using namespace qcalib;

namespace {

struct GoldenGrid {
    float min;
    float max;
    float scale;
    std::int64_t zero_point = 0;
};

const CircleRules& builtin_circle_rules() {
    static const std::shared_ptr<const CircleRules> rules = load_target("circle").circle;
    return *rules;
}

TensorEncoding entry_of_grids(std::vector<Encoding> encodings, std::optional<int> axis = {}) {
    return {"t", std::move(encodings), axis, ""};
}

std::vector<double> codes_of(std::vector<float> values, const Encoding& encoding, CircleCoding coding) {
    const Tensor tensor = Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
    return numbers_of(circle_codes(tensor, entry_of_grids({encoding}), coding).view());
}

}  // namespace

TEST_CASE("uint8 scale and zero point are circle-quantizer's, bit by bit") {
    const std::vector<GoldenGrid> golden{{-1, 1, 0.00784313772F, 128},
                                         {-1, 3, 0.0156862754F, 64},
                                         {0, 6, 0.0235294122F, 0},
                                         {0.5F, 2.5F, 0.00980392192F, 0},
                                         {-3, -1, 0.0117647061F, 255},
                                         {-5.2F, 5.1F, 0.0403921567F, 129},
                                         {0, 0, 9.99999975e-06F, 0},
                                         {-0.001F, 0.0005F, 9.99999975e-06F, 100},
                                         {-0.001F, -0.0005F, 9.99999975e-06F, 100},
                                         {-1e-7F, 6, 0.0235294122F, 0},
                                         {-6, 1e-7F, 0.0235294122F, 255},
                                         {-0.4F, 2.2F, 0.0101960786F, 39},
                                         {2, 2, 2.0F / 255, 0},
                                         {-2, -2, 2.0F / 255, 255},
                                         {-0.0F, 0, 9.99999975e-06F, 0},
                                         {1e-9F, 1e-9F, 9.99999975e-06F, 0},
                                         {-3, -0.0F, 0.0117647061F, 255},
                                         {-127.5F, 127.5F, 1, 128},
                                         {-0.5F, 254.5F, 1, 1},
                                         {-3.4e38F, 3.4e38F, 2.66666656e36F, 127},
                                         {0, 1e-9F, 9.99999975e-06F, 0}};
    for (const GoldenGrid& row : golden) {
        CAPTURE(row.min);
        CAPTURE(row.max);
        const Encoding encoding = circle_encoding({row.min, row.max}, 8, builtin_circle_rules());
        CHECK(static_cast<float>(encoding.scale) == row.scale);
        CHECK(circle_zero_point(encoding) == row.zero_point);
        CHECK(encoding.min <= 0);
        CHECK(encoding.max >= 0);
    }
}

TEST_CASE("int16 scales are circle-quantizer's, bit by bit, with a zero point of 0") {
    const std::vector<GoldenGrid> golden{{0, 0, 9.99999994e-09F},
                                         {-1, 3, 9.15555283e-05F},
                                         {-1, 1, 3.05185094e-05F},
                                         {0, 6, 0.000183111057F},
                                         {0.5F, 2.5F, 7.62962736e-05F},
                                         {-5.2F, 5.1F, 0.000158696246F},
                                         {-0.001F, 0.0005F, 3.05185104e-08F}};
    for (const GoldenGrid& row : golden) {
        CAPTURE(row.min);
        const Encoding encoding = circle_encoding({row.min, row.max}, 16, builtin_circle_rules());
        CHECK(static_cast<float>(encoding.scale) == row.scale);
        CHECK(circle_zero_point(encoding) == 0);
        CHECK(encoding.symmetric);
    }
}

TEST_CASE("codes are clipped and rounded half away from zero in float32") {
    const Encoding asymmetric = circle_encoding({-0.5, 2}, 8, builtin_circle_rules());
    CHECK(codes_of({-0.5F, 0.25F, 1, 2, 9, -9}, asymmetric, CircleCoding::own) ==
          std::vector<double>{0, 77, 153, 255, 255, 0});
    const Encoding concat = circle_encoding_of(0.0666666701F, 120, 8);
    CHECK(codes_of({0.5F, -20, 1e30F, -std::numeric_limits<float>::max()}, concat, CircleCoding::given) ==
          std::vector<double>{127, 0, 255, 0});
    const Encoding symmetric = circle_encoding({-0.5, 2}, 16, builtin_circle_rules());
    CHECK(codes_of({-0.5F, 0.25F, 1, 2, 9, -9}, symmetric, CircleCoding::own) ==
          std::vector<double>{-8192, 4096, 16384, 32767, 32767, -32767});
    CHECK(codes_of({0.1F, -0.2F, 1e30F, -1e30F}, circle_encoding_of(2.3068053e-05F, 0, 32),
                   CircleCoding::bias) == std::vector<double>{4335, -8670, 2147483647, -2147483648.0});
    CHECK(codes_of({1e30F}, circle_encoding_of(1e-10F, 0, 64), CircleCoding::bias).front() > 9.2e18);
}

TEST_CASE("a value that is its own scale has its sign for a code") {
    for (const float value : {0.25F, -0.1F, 0.0F}) {
        CAPTURE(value);
        const Encoding narrow = circle_sign_encoding(value, 8);
        CHECK(static_cast<float>(narrow.scale) == std::abs(value));
        CHECK(circle_zero_point(narrow) == (value < 0 ? 1 : 0));
        CHECK(codes_of({value}, narrow, CircleCoding::sign).front() == (value < 0 ? 0 : 1));
        const Encoding wide = circle_sign_encoding(value, 16);
        CHECK(circle_zero_point(wide) == 0);
        CHECK(codes_of({value}, wide, CircleCoding::sign).front() == (value < 0 ? -1 : 1));
    }
}

TEST_CASE("channels lie on the axis of the encoding, and codes stand for what was coded") {
    const std::vector<float> values{0, 10, 1, 20, 2, 30};
    const Tensor tensor = Tensor::of<float>({3, 2}, values);
    const TensorEncoding entry =
        entry_of_grids({circle_encoding_of(0.5, 0, 8), circle_encoding_of(10, 0, 8)}, 1);
    const Tensor codes = circle_codes(tensor, entry, CircleCoding::own);
    CHECK(codes.type() == DataType::uint8);
    CHECK(numbers_of(codes.view()) == std::vector<double>{0, 1, 2, 2, 4, 3});
    CHECK(numbers_of(circle_values(codes, entry).view()) == std::vector<double>{0, 10, 1, 20, 2, 30});
}
