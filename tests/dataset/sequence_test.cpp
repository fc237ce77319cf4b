#include "dataset/sequence.h"

#include <numeric>

#include <doctest/doctest.h>

#include "sample_files.h"
#include "tensor/npy.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using PartialShape = std::vector<std::optional<std::int64_t>>;
constexpr auto open = std::nullopt;

InputSpec float_input(PartialShape shape, const std::string& name = "x") {
    return {name, DataType::float32, std::move(shape), true};
}

std::vector<float> counting(std::size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0F);
    return values;
}

struct Files {
    SampleFolder folder;

    std::filesystem::path raw(const std::string& name, std::size_t count) const {
        return folder.write_values<float>(name, counting(count));
    }
    std::filesystem::path npy(const std::string& name, Shape shape) const {
        const auto count = static_cast<std::size_t>(element_count(shape));
        write_npy(folder / name, Tensor::of<float>(std::move(shape), counting(count)).view());
        return folder / name;
    }
};

Sequence open_one(const InputSpec& input, const std::filesystem::path& file,
                  const Preprocessing& preprocessing = {}) {
    return {ListEntry{1, {file}}, std::span(&input, 1), preprocessing};
}

// Shape and values of the only input in a step.
std::pair<Shape, std::vector<double>> step_of(const Sequence& sequence, std::size_t index) {
    const Tensor tensor = sequence.step(index).at(0);
    return {tensor.shape(), numbers_of(tensor.view())};
}

using Step = std::pair<Shape, std::vector<double>>;

}  // namespace

TEST_CASE("A raw file longer than its input is cut into steps, and what fills none is named") {
    const Files files;
    const InputSpec input = float_input({1, 3});
    const Sequence even = open_one(input, files.raw("even.raw", 6));
    CHECK(even.steps() == 2);
    CHECK(step_of(even, 0) == Step{{1, 3}, {0, 1, 2}});
    CHECK(step_of(even, 1) == Step{{1, 3}, {3, 4, 5}});
    CHECK(even.left_over().empty());
    const Sequence odd = open_one(input, files.raw("odd.raw", 8));
    CHECK(odd.steps() == 2);
    CHECK(odd.left_over() == std::vector{(files.folder / "odd.raw").string() + " (8 of 12 bytes)"});
    CHECK(open_one(input, files.raw("one.raw", 3)).steps() == 1);
    const Sequence half_more = open_one(input, files.raw("half.raw", 4));
    CHECK(half_more.steps() == 1);
    CHECK(half_more.left_over().size() == 1);
}

TEST_CASE("A raw file shorter than its input, or of another type, is refused as ever") {
    const Files files;
    CHECK(error_of([&] {
              open_one(float_input({1, 3}), files.raw("a.raw", 2));
          }) == (files.folder / "a.raw").string() +
                    ": expected 12 bytes (float32 for input 'x' [1,3]), found 8 bytes");
    const InputSpec flags{"b", DataType::boolean, {2}, true};
    CHECK(error_of([&] {
              open_one(flags, files.folder.write("b.raw", std::string("\1\0\1\7", 4)));
          }).find("found 7 at byte 3") != std::string::npos);
    CHECK(open_one(flags, files.folder.write("b.raw", std::string("\1\0\1\0", 4))).steps() == 2);
}

TEST_CASE("A raw file that binds an open dimension is one step") {
    const Files files;
    const Sequence sequence = open_one(float_input({open, 2}), files.raw("a.raw", 8));
    CHECK(sequence.steps() == 1);
    CHECK(step_of(sequence, 0).first == Shape{4, 2});
}

TEST_CASE("An array longer than its input is cut along its first axis") {
    const Files files;
    const auto cut = [&](const PartialShape& input, const Shape& shape) {
        return open_one(float_input(input), files.npy("a.npy", shape));
    };
    SUBCASE("of the input's rank") {
        CHECK(cut({1, 2}, {3, 2}).steps() == 3);
        CHECK(step_of(cut({1, 2}, {3, 2}), 2) == Step{{1, 2}, {4, 5}});
        CHECK(step_of(cut({2, 2}, {5, 2}), 1) == Step{{2, 2}, {4, 5, 6, 7}});
        CHECK(cut({2, 2}, {5, 2}).left_over() ==
              std::vector{(files.folder / "a.npy").string() + " (1 of 2 rows)"});
        CHECK(step_of(cut({1, open, 2}, {3, 2, 2}), 1) == Step{{1, 2, 2}, {4, 5, 6, 7}});
    }
    SUBCASE("without the input's batch of 1") {
        CHECK(cut({1, 3}, {7}).steps() == 2);
        CHECK(step_of(cut({1, 3}, {7}), 1) == Step{{1, 3}, {3, 4, 5}});
        CHECK(step_of(cut({1, 2, 2}, {4, 2}), 1) == Step{{1, 2, 2}, {4, 5, 6, 7}});
    }
    SUBCASE("a stack of inputs") {
        CHECK(cut({1, 2}, {3, 1, 2}).steps() == 3);
        CHECK(step_of(cut({1, 2}, {3, 1, 2}), 1) == Step{{1, 2}, {2, 3}});
        CHECK(step_of(cut({}, {4}), 3) == Step{{}, {3}});
    }
    SUBCASE("one that fits is one step") {
        CHECK(cut({1, 3}, {1, 3}).steps() == 1);
        CHECK(cut({1, 3}, {3}).steps() == 1);
        CHECK(cut({open, 3}, {5, 3}).steps() == 1);
    }
    SUBCASE("one that does not fit is refused") {
        CHECK(error_of([&] {
                  cut({1, 3}, {4, 2});
              }).find("expected shape [1,3] for input 'x' [1,3], found [4,2]") != std::string::npos);
        CHECK(error_of([&] { cut({4, 3}, {2, 3}); }).find("found [2,3]") != std::string::npos);
        CHECK(error_of([&] { cut({1, 3}, {2}); }).find("found [2]") != std::string::npos);
    }
}

TEST_CASE("Channels-last files are cut before they are permuted") {
    const Files files;
    PictureFlags preprocessing;
    preprocessing.layout = DataLayout::nhwc;
    const InputSpec input = float_input({1, 2, 1, 2});  // NCHW; in the file pixels of two channels
    const Step second{{1, 2, 1, 2}, {4, 6, 5, 7}};
    CHECK(step_of(open_one(input, files.raw("a.raw", 8), preprocessing), 1) == second);
    CHECK(step_of(open_one(input, files.npy("a.npy", {2, 1, 2, 2}), preprocessing), 1) == second);
}

TEST_CASE("Inputs without a file, of one step, and carried ones are the same in every step") {
    const Files files;
    std::vector<InputSpec> inputs = {float_input({1, 2}, "x"), float_input({1}, "gain"),
                                     float_input({2}, "state"), float_input({1}, "rate")};
    inputs[2].carried = true;
    inputs[3].otherwise = Tensor::of<float>({1}, std::vector<float>{16});
    const ListEntry entry{1,
                          {files.raw("x.raw", 6), files.raw("gain.raw", 1), files.raw("state.raw", 2), {}}};
    const Sequence sequence(entry, inputs, {});
    CHECK(sequence.steps() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        const std::vector<Tensor> tensors = sequence.step(i);
        CHECK(numbers_of(tensors[0].view())[0] == 2.0 * static_cast<double>(i));
        CHECK(numbers_of(tensors[1].view()) == std::vector<double>{0});
        CHECK(numbers_of(tensors[2].view()) == std::vector<double>{0, 1});
        CHECK(numbers_of(tensors[3].view()) == std::vector<double>{16});
    }
    const ListEntry long_state{
        1, {files.raw("x.raw", 6), files.raw("gain.raw", 1), files.raw("state.raw", 4), {}}};
    CHECK(error_of([&] { Sequence(long_state, inputs, {}); }).find("state.raw: expected 8 bytes") !=
          std::string::npos);
}

TEST_CASE("Files of one sequence that are cut must have as many steps") {
    const Files files;
    const std::vector<InputSpec> inputs = {float_input({1, 2}, "x"), float_input({1}, "y")};
    const ListEntry entry{1, {files.raw("x.raw", 6), files.raw("y.raw", 4)}};
    const std::string folder = files.folder.path().string();
    CHECK(error_of([&] { Sequence(entry, inputs, {}); }) ==
          folder + "/y.raw: expected 3 steps, as in " + folder + "/x.raw of the same sequence, found 4");
    const ListEntry good{1, {files.raw("x.raw", 6), files.raw("y.raw", 3)}};
    CHECK(Sequence(good, inputs, {}).steps() == 3);
}
