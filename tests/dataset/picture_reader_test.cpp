#include <cmath>
#include <numeric>
#include <thread>

#include <doctest/doctest.h>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "dataset/picture_decoder.h"
#include "dataset/sample_reader.h"
#include "sample_files.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

using PartialShape = std::vector<std::optional<std::int64_t>>;
using Values = std::vector<double>;
constexpr auto open = std::nullopt;

InputSpec input_of(PartialShape shape, DataType type = DataType::float32) {
    return {"x", type, std::move(shape), true};
}

// A picture of type CV_8UC3 and the like from its samples (BGR or BGRA), row by row.
template <typename Sample>
cv::Mat picture(int rows, int columns, int type, const std::vector<Sample>& samples) {
    return cv::Mat(rows, columns, type, const_cast<Sample*>(samples.data())).clone();
}

cv::Mat grey(int rows, int columns, const std::vector<std::uint8_t>& samples) {
    return picture(rows, columns, CV_8UC1, samples);
}

struct Pictures {
    SampleFolder folder;

    std::filesystem::path write(const cv::Mat& content, const std::string& name = "p.png") const {
        REQUIRE(cv::imwrite((folder.path() / name).string(), content));
        return folder.path() / name;
    }
};

// Pixels as they are: the numbers of the tensor are those of the picture.
PictureFlags plain() {
    PictureFlags preprocessing;
    preprocessing.multiply = 1;
    return preprocessing;
}

Tensor read_one(const InputSpec& input, const std::filesystem::path& file,
                const Preprocessing& preprocessing) {
    return SampleReader({input}, preprocessing).read({1, {file}}).at(0);
}

Values values_of(const InputSpec& input, const std::filesystem::path& file,
                 const Preprocessing& preprocessing) {
    return numbers_of(read_one(input, file, preprocessing).view());
}

std::string error_with(const InputSpec& input, const std::filesystem::path& file,
                       const Preprocessing& preprocessing = {}) {
    const std::string message = error_of([&] { read_one(input, file, preprocessing); });
    const std::string folder = file.parent_path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
}

// Two pixels, blue-green-red: (1,2,3) and (250,100,7).
cv::Mat two_colours() {
    return picture<std::uint8_t>(1, 2, CV_8UC3, {1, 2, 3, 250, 100, 7});
}

}  // namespace

TEST_CASE("A picture becomes planes of red, green and blue divided by 255") {
    const Pictures pictures;
    const Tensor tensor = read_one(input_of({1, 3, 1, 2}), pictures.write(two_colours()), {});
    CHECK(tensor.shape() == Shape{1, 3, 1, 2});
    const std::vector<double> pixels{3, 7, 2, 100, 1, 250};
    const auto values = tensor.view().as<float>();
    for (std::size_t i = 0; i < pixels.size(); ++i)
        CHECK(values[i] == static_cast<float>(pixels[i] * (1.0 / 255)));
}

TEST_CASE("--color bgr keeps blue first") {
    const Pictures pictures;
    PictureFlags preprocessing = plain();
    preprocessing.color = ColorOrder::bgr;
    CHECK(values_of(input_of({1, 3, 1, 2}), pictures.write(two_colours()), preprocessing) ==
          Values{1, 250, 2, 100, 3, 7});
}

TEST_CASE("mean and std are in units after the multiplication and in the order of --color") {
    const Pictures pictures;
    PictureFlags preprocessing;
    preprocessing.multiply = 0.5;
    preprocessing.mean = {1, 2, 3};
    preprocessing.std = {2, 4, 8};
    const auto file = pictures.write(two_colours());
    CHECK(values_of(input_of({1, 3, 1, 2}), file, preprocessing) == Values{(1.5 - 1) / 2, (3.5 - 1) / 2,
                                                                           (1.0 - 2) / 4, (50.0 - 2) / 4,
                                                                           (0.5 - 3) / 8, (125.0 - 3) / 8});
    preprocessing.mean = {10};
    preprocessing.std = {};
    preprocessing.color = ColorOrder::bgr;
    CHECK(values_of(input_of({1, 3, 1, 2}), file, preprocessing) == Values{-9.5, 115, -9, 40, -8.5, -6.5});
}

TEST_CASE("A channels-last input gets its pixels interleaved, at rank 4 and 3") {
    const Pictures pictures;
    const auto file = pictures.write(two_colours());
    const auto tall = pictures.write(two_colours().t(), "tall.png");
    const Tensor tensor = read_one(input_of({open, 2, 1, 3}), tall, plain());
    CHECK(tensor.shape() == Shape{1, 2, 1, 3});
    CHECK(numbers_of(tensor.view()) == Values{3, 2, 1, 7, 100, 250});
    CHECK(values_of(input_of({2, 1, 3}), tall, plain()) == Values{3, 2, 1, 7, 100, 250});
    CHECK(values_of(input_of({3, 1, 2}), file, plain()) == Values{3, 7, 2, 100, 1, 250});
}

TEST_CASE("A shape that fits both layouts is channels-first") {
    const Pictures pictures;
    const auto file = pictures.write(grey(2, 3, {1, 2, 3, 4, 5, 6}));
    CHECK(values_of(input_of({1, 1, 2, 3}), file, plain()) == Values{1, 2, 3, 4, 5, 6});
}

TEST_CASE("Open sizes are bound by the picture") {
    const Pictures pictures;
    const auto file = pictures.write(grey(2, 5, std::vector<std::uint8_t>(10, 9)));
    CHECK(read_one(input_of({open, 3, open, open}), file, plain()).shape() == Shape{1, 3, 2, 5});
    CHECK(read_one(input_of({1, 1, 2, open}), file, plain()).shape() == Shape{1, 1, 2, 5});
    CHECK(read_one(input_of({open, open, open, open}), file, plain()).shape() == Shape{1, 3, 2, 5});
    CHECK(read_one(input_of({open, open, open, 3}), file, plain()).shape() == Shape{1, 2, 5, 3});
    CHECK(read_one({"x", DataType::float32, {}, false}, file, plain()).shape() == Shape{1, 3, 2, 5});
}

TEST_CASE("Grey is repeated for three channels and opaque for four") {
    const Pictures pictures;
    const auto file = pictures.write(grey(1, 2, {7, 200}));
    CHECK(values_of(input_of({1, 3, 1, 2}), file, plain()) == Values{7, 200, 7, 200, 7, 200});
    CHECK(values_of(input_of({1, 4, 1, 2}), file, plain()) == Values{7, 200, 7, 200, 7, 200, 255, 255});
    CHECK(values_of(input_of({1, 1, 1, 2}), file, plain()) == Values{7, 200});
}

TEST_CASE("Colour becomes grey by 0.299 R + 0.587 G + 0.114 B for one channel") {
    const Pictures pictures;
    const auto file =
        pictures.write(picture<std::uint8_t>(1, 4, CV_8UC3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 30, 20, 10}));
    CHECK(values_of(input_of({1, 1, 1, 4}), file, plain()) ==
          Values{std::round(255 * 0.114), std::round(255 * 0.587), std::round(255 * 0.299),
                 std::round(30 * 0.114 + 20 * 0.587 + 10 * 0.299)});
}

TEST_CASE("Alpha is left out for three channels, unblended, and kept for four") {
    const Pictures pictures;
    const auto file = pictures.write(picture<std::uint8_t>(1, 2, CV_8UC4, {1, 2, 3, 0, 250, 100, 7, 128}));
    CHECK(values_of(input_of({1, 3, 1, 2}), file, plain()) == Values{3, 7, 2, 100, 1, 250});
    CHECK(values_of(input_of({1, 4, 1, 2}), file, plain()) == Values{3, 7, 2, 100, 1, 250, 0, 128});
    CHECK(values_of(input_of({1, 4, 1, 2}), pictures.write(two_colours(), "rgb.png"), plain()) ==
          Values{3, 7, 2, 100, 1, 250, 255, 255});
}

TEST_CASE("16-bit samples are divided by 257 and keep their fraction") {
    const Pictures pictures;
    const auto file = pictures.write(picture<std::uint16_t>(1, 3, CV_16UC1, {65535, 257, 1000}));
    const auto values = values_of(input_of({1, 1, 1, 3}), file, plain());
    CHECK(values == Values{255, 1, static_cast<float>(1000.0 / 257)});
    const auto colour = pictures.write(picture<std::uint16_t>(1, 1, CV_16UC3, {257, 514, 771}), "c.png");
    CHECK(values_of(input_of({1, 3, 1, 1}), colour, plain()) == Values{3, 2, 1});
    const auto alpha = pictures.write(picture<std::uint16_t>(1, 1, CV_16UC4, {257, 514, 771, 1028}), "a.png");
    CHECK(values_of(input_of({1, 4, 1, 1}), alpha, plain()) == Values{3, 2, 1, 4});
    CHECK(values_of(input_of({1, 1, 1, 3}, DataType::uint8), file, {}) == Values{255, 1, 4});
}

TEST_CASE("Resizing is bilinear with half-pixel centres and no antialiasing") {
    const Pictures pictures;
    PictureFlags preprocessing = plain();
    preprocessing.resize = PictureSize{4, 1};
    // x_in = (x + 0.5) / 2 - 0.5 = -0.25, 0.25, 0.75, 1.25; beyond the border the border.
    CHECK(values_of(input_of({1, 1, 1, 4}), pictures.write(grey(1, 2, {0, 100})), preprocessing) ==
          Values{0, 25, 75, 100});
    // x_in = (x + 0.5) * 3 - 0.5 = 1, 4: the pixels between are not looked at.
    preprocessing.resize = PictureSize{2, 1};
    CHECK(values_of(input_of({1, 1, 1, 2}), pictures.write(grey(1, 6, {255, 10, 255, 0, 70, 0})),
                    preprocessing) == Values{10, 70});
    // Both ways at once: 2x2 to 4x4, (0.75, 0.25) of both rows and columns.
    preprocessing.resize = PictureSize{4, 4};
    CHECK(values_of(input_of({1, 1, 4, 4}), pictures.write(grey(2, 2, {0, 160, 80, 240})), preprocessing) ==
          Values{0, 40, 120, 160, 20, 60, 140, 180, 60, 100, 180, 220, 80, 120, 200, 240});
    // To a width that is no multiple: x_in = (x + 0.5) * 2 / 3 - 0.5 = -1/6, 1/2, 7/6.
    preprocessing.resize = PictureSize{3, 1};
    CHECK(values_of(input_of({1, 1, 1, 3}), pictures.write(grey(1, 2, {10, 30})), preprocessing) ==
          Values{10, 20, 30});
}

TEST_CASE("Resized 8-bit samples are rounded to 8 bits, 16-bit ones to 16") {
    const Pictures pictures;
    PictureFlags preprocessing = plain();
    preprocessing.resize = PictureSize{4, 1};
    CHECK(values_of(input_of({1, 1, 1, 4}), pictures.write(grey(1, 2, {0, 1})), preprocessing) ==
          Values{0, 0, 1, 1});
    const auto deep = pictures.write(picture<std::uint16_t>(1, 2, CV_16UC1, {0, 257}), "deep.png");
    const auto values = values_of(input_of({1, 1, 1, 4}), deep, preprocessing);
    CHECK(values == Values{0, static_cast<float>(64.0 / 257), static_cast<float>(193.0 / 257), 1});
}

TEST_CASE("The crop is the centre, from half the margin rounded down") {
    const Pictures pictures;
    std::vector<std::uint8_t> samples(4 * 7);
    std::iota(samples.begin(), samples.end(), std::uint8_t{0});
    PictureFlags preprocessing = plain();
    preprocessing.crop = PictureSize{2, 1};
    const auto file = pictures.write(grey(4, 7, samples));
    CHECK(values_of(input_of({1, 1, 1, 2}), file, preprocessing) == Values{9, 10});
    preprocessing.crop = PictureSize{8, 1};
    CHECK(error_with(input_of({1, 1, 1, 8}), file, preprocessing) ==
          "p.png: expected at least 8x1 pixels for crop, found 7x4; put a resize before it");
    preprocessing.resize = PictureSize{6, 6};
    CHECK(error_with(input_of({1, 1, 1, 8}), file, preprocessing) ==
          "p.png: expected at least 8x1 pixels for crop, found 6x6 after resize");
}

TEST_CASE("Integer inputs get the pixels as they are, or rounded values once they are scaled") {
    const Pictures pictures;
    const auto file = pictures.write(two_colours());
    CHECK(values_of(input_of({1, 3, 1, 2}, DataType::uint8), file, {}) == Values{3, 7, 2, 100, 1, 250});
    CHECK(values_of(input_of({1, 3, 1, 2}, DataType::int32), file, {}) == Values{3, 7, 2, 100, 1, 250});
    PictureFlags half;
    half.multiply = 0.5;
    CHECK(values_of(input_of({1, 3, 1, 2}, DataType::uint8), file, half) == Values{2, 4, 1, 50, 0, 125});
    PictureFlags centred = plain();
    centred.mean = {128};
    CHECK(values_of(input_of({1, 3, 1, 2}, DataType::int8), file, centred) ==
          Values{-125, -121, -126, -28, -127, 122});
}

TEST_CASE("Values that the input's type cannot hold are refused") {
    const Pictures pictures;
    const auto file = pictures.write(two_colours());
    CHECK(error_with(input_of({1, 3, 1, 2}, DataType::int8), file) ==
          "p.png: pixels become 0 to 255, which type int8 of input 'x' [1,3,1,2] does not hold; choose other "
          "steps on values");
    PictureFlags huge;
    huge.multiply = 1e300;
    CHECK(error_with(input_of({1, 3, 1, 2}), file, huge).starts_with("p.png: pixels become 0 to "));
    CHECK(error_with(input_of({1, 3, 1, 2}, DataType::boolean), file) ==
          "p.png: input 'x' [1,3,1,2] is of type bool, which pictures cannot fill");
}

TEST_CASE("A picture of another size than the input's is refused with the option that mends it") {
    const Pictures pictures;
    const auto file = pictures.write(two_colours());
    CHECK(
        error_with(input_of({1, 3, 480, 640}), file) ==
        "p.png: expected a picture of 640x480 for input 'x' [1,3,480,640], found 2x1; give --resize 640x480");
    CHECK(error_with(input_of({1, 3, 480, open}), file) ==
          "p.png: expected a picture of ?x480 for input 'x' [1,3,480,?], found 2x1; give --resize");
    PictureFlags preprocessing;
    preprocessing.crop = PictureSize{1, 1};
    CHECK(error_with(input_of({1, 3, 2, 2}), file, preprocessing) ==
          "p.png: expected a picture of 2x2 for input 'x' [1,3,2,2], found 1x1 after crop; give other "
          "steps, or --resize 2x2");
}

TEST_CASE("Inputs that no single picture fills are refused") {
    const Pictures pictures;
    const auto file = pictures.write(two_colours());
    CHECK(error_with(input_of({4, 3, 1, 2}), file) ==
          "p.png: input 'x' [4,3,1,2] has a batch of 4; one picture fills a batch of 1");
    for (const PartialShape& shape :
         {PartialShape{1, 10}, PartialShape{1, 8, 1, 2}, PartialShape{1, 1, 3, 1, 2}}) {
        CHECK(error_with(input_of(shape), file) ==
              "p.png: input 'x' " + to_string(shape) +
                  " takes no pictures: expected [N,C,H,W] or [N,H,W,C] with 1, 3 or 4 channels");
    }
    PictureFlags preprocessing;
    preprocessing.mean = {1, 2, 3};
    const std::vector<InputSpec> inputs{input_of({1, 1, 1, 2}), {"y", DataType::float32, {1, 3, 1, 2}, true}};
    CHECK(error_of([&] {
              SampleReader(inputs, preprocessing).read({1, {file, file}});
          }) ==
          file.string() + ": 3 numbers for mean, expected one or 1, the channels of input 'x' [1,1,1,2]");
}

TEST_CASE("Files that are no pictures are refused by name") {
    const Pictures pictures;
    const InputSpec input = input_of({1, 3, open, open});
    CHECK(error_with(input, pictures.folder.write("text.jpg", "no picture")) ==
          "text.jpg: cannot be decoded as a picture");
    CHECK(error_with(input, pictures.folder.write("empty.png", "")) ==
          "empty.png: cannot be decoded as a picture: it is empty");
    CHECK(error_with(input, pictures.folder.path() / "none.PNG").starts_with("none.PNG: "));
    CHECK(error_with(input, pictures.write(cv::Mat(2, 2, CV_32FC3, cv::Scalar(1)), "float.tiff"))
              .starts_with("float.tiff: expected a picture of 8 or 16 bits a sample, found CV_32FC3"));
}

TEST_CASE("A picture that ends early is refused in every format") {
    const Pictures pictures;
    cv::Mat noise(64, 64, CV_8UC3);
    cv::RNG random(1);
    random.fill(noise, cv::RNG::UNIFORM, 0, 256);
    for (const std::string ending : {".jpg", ".png", ".bmp", ".webp", ".tif", ".ppm"}) {
        CAPTURE(ending);
        std::vector<std::uint8_t> bytes;
        REQUIRE(cv::imencode(ending, noise, bytes));
        for (const std::size_t size : {bytes.size() / 2, bytes.size() - 20}) {
            const std::string part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
            const auto file = pictures.folder.write("part" + ending, part);
            CHECK(error_with(input_of({1, 3, open, open}), file)
                      .starts_with("part" + ending + ": cannot be decoded as a picture"));
        }
    }
}

namespace {

std::span<const std::byte> as_bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
}

// An EXIF segment that holds nothing but this orientation.
std::string exif_segment(char orientation) {
    const std::string tiff = std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + orientation +
                             std::string("\0\0\0\0\0\0\0", 7);
    const std::string body = std::string("Exif\0\0", 6) + tiff;
    return std::string("\xff\xe1\0", 3) + static_cast<char>(body.size() + 2) + body;
}

// Black on the left, white on the right.
std::string black_and_white_jpeg() {
    cv::Mat content(16, 32, CV_8UC1, cv::Scalar(0));
    content(cv::Rect(16, 0, 16, 16)) = 255;
    std::vector<std::uint8_t> bytes;
    REQUIRE(cv::imencode(".jpg", content, bytes));
    return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("The end of a JPEG is told from markers inside its segments and data") {
    const std::string start("\xff\xd8", 2);
    const std::string end("\xff\xd9", 2);
    const std::string segment("\xff\xe1\0\x06\xff\xd9\xff\xd9", 8);
    const std::string data(
        "\xff\xda\0\x02"
        "ab\xff\0\xff\xd0\xff",
        11);
    CHECK(jpeg_is_whole(as_bytes(start + segment + data + end)));
    CHECK(jpeg_is_whole(as_bytes(start + segment + data + end + "behind")));
    CHECK(!jpeg_is_whole(as_bytes(start + segment + data)));
    CHECK(!jpeg_is_whole(as_bytes(start + segment)));
    CHECK(!jpeg_is_whole(as_bytes(start + segment.substr(0, 3))));
    CHECK(!jpeg_is_whole(as_bytes(start)));
    CHECK(jpeg_is_whole(as_bytes("no JPEG")));
    CHECK(jpeg_is_whole(as_bytes(black_and_white_jpeg())));
}

TEST_CASE("Pictures are turned upright by their EXIF orientation, whatever the channels") {
    const Pictures pictures;
    const std::string jpeg = black_and_white_jpeg();
    const auto file =
        pictures.folder.write("turned.jpg", jpeg.substr(0, 2) + exif_segment(6) + jpeg.substr(2));
    for (const std::int64_t channels : {1, 3, 4}) {
        const Tensor tensor = read_one(input_of({1, channels, open, open}), file, plain());
        REQUIRE(tensor.shape() == Shape{1, channels, 32, 16});
        CHECK(numbers_of(tensor.view())[0] < 10);
        CHECK(numbers_of(tensor.view())[15] < 10);
        CHECK(numbers_of(tensor.view())[31 * 16] > 245);
    }
}

TEST_CASE("Samples are read by several threads at once, and OpenCV starts none of its own") {
    const Pictures pictures;
    cv::Mat noise(300, 200, CV_8UC3);
    cv::RNG random(2);
    random.fill(noise, cv::RNG::UNIFORM, 0, 256);
    const auto file = pictures.write(noise);
    PictureFlags preprocessing;
    preprocessing.resize = PictureSize{64, 48};
    const SampleReader reader({input_of({1, 3, 48, 64})}, preprocessing);
    const Values expected = numbers_of(reader.read({1, {file}})[0].view());
    std::vector<Values> found(4);
    std::vector<std::thread> threads;
    for (Values& values : found) {
        threads.emplace_back([&] { values = numbers_of(reader.read({1, {file}})[0].view()); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Values& values : found) CHECK(values == expected);
    CHECK(cv::getNumThreads() == 1);
}

TEST_CASE("The files of a sample fill the inputs in their order, each by its own ending") {
    const Pictures pictures;
    const auto image = pictures.write(two_colours());
    const std::vector<float> numbers{1.5F, -2};
    const auto raw = pictures.folder.write_values<float>("v.raw", std::span(numbers));
    const std::vector<InputSpec> inputs{input_of({1, 3, 1, 2}), {"v", DataType::float32, {2}, true}};
    const auto tensors = SampleReader(inputs, plain()).read({1, {image, raw}});
    REQUIRE(tensors.size() == 2);
    CHECK(numbers_of(tensors[0].view()) == Values{3, 7, 2, 100, 1, 250});
    CHECK(numbers_of(tensors[1].view()) == Values{1.5, -2});
}
