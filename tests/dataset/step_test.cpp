#include <doctest/doctest.h>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "dataset/preprocessing.h"
#include "dataset/sample_reader.h"
#include "sample_files.h"

using namespace qcalib;
using namespace qcalib::test;

namespace {

constexpr auto open = std::nullopt;
using Values = std::vector<double>;

PictureStep step_of(const std::string& text) {
    return parse_step(parse_step_text(text, "--preprocess"), "--preprocess");
}

std::string step_error(const std::string& text) {
    return error_of([&] { step_of(text); });
}

std::string preset_error(const std::string& text) {
    return error_of([&] { parse_preset(parse_step_text(text, "--preprocess"), "--preprocess"); });
}

Preprocessing preset(const std::string& text) {
    return Preprocessing(parse_preset(parse_step_text(text, "p"), "p"));
}

Preprocessing steps_of(const std::vector<std::string>& texts) {
    std::vector<PictureStep> steps;
    for (const std::string& text : texts) steps.push_back(step_of(text));
    return Preprocessing(steps);
}

// A grey picture of one value, or of `samples` row by row, through the steps.
class OnePicture {
  public:
    OnePicture(int rows, int columns, std::vector<std::uint8_t> samples = {}) {
        if (samples.empty()) samples.assign(static_cast<std::size_t>(rows * columns), 200);
        write(cv::Mat(rows, columns, CV_8UC1, samples.data()));
    }
    explicit OnePicture(const cv::Mat& content) { write(content); }

    Tensor read(const std::vector<std::string>& steps, std::optional<std::int64_t> channels = 1,
                DataType type = DataType::float32) const {
        const InputSpec input{"x", type, {1, channels, open, open}, true};
        return SampleReader({input}, steps_of(steps)).read({1, {file_}}).at(0);
    }
    Values values(const std::vector<std::string>& steps, std::int64_t channels = 1,
                  DataType type = DataType::float32) const {
        return numbers_of(read(steps, channels, type).view());
    }
    // Height and width.
    Shape size(const std::vector<std::string>& steps) const {
        const Shape shape = read(steps).shape();
        return {shape[2], shape[3]};
    }
    std::string error(const std::vector<std::string>& steps, DataType type = DataType::float32) const {
        const std::string message = error_of([&] { read(steps, 1, type); });
        const std::string prefix = file_.string() + ": ";
        return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
    }

  private:
    void write(const cv::Mat& content) {
        file_ = folder_.path() / "p.png";
        REQUIRE(cv::imwrite(file_.string(), content));
    }

    SampleFolder folder_;
    std::filesystem::path file_;
};

}  // namespace

TEST_CASE("Each step reads back from the parameters it is written as") {
    const std::vector<std::string> texts = {
        "resize: {size: 320x240, interpolation: pillow-bicubic}",
        "resize: {shorter: 256, rounding: nearest}",
        "resize: {longer-at-most: 960, multiple: 32, interpolation: area}",
        "resize: {height: 48, width-at-most: 320, rounding: up}",
        "letterbox: {size: 640, fill: [1, 2.5, 3], place: corner, enlarge: false}",
        "crop: {size: 224, rounding: nearest}",
        "pad: {size: 64x32, fill: 7, place: centre}",
        "pad: {multiple: 32}",
        "color: {order: bgr}",
        "scale: {multiply: 1/127.5}",
        "normalize: {mean: [0.485, 0.456, 0.406], std: 0.5}",
        "layout: {pictures: nhwc, data: nhwc}",
        "dtype: {integers: truncate, clamp: true}"};
    for (const std::string& text : texts) {
        CAPTURE(text);
        const PictureStep step = step_of(text);
        CHECK(parse_step({std::string(name_of(step)), parameters_of(step)}, "again") == step);
    }
}

TEST_CASE("Every step and preset is documented, and the defaults named there are those there are") {
    for (const StepInfo& info : preprocessing_steps()) {
        CAPTURE(info.name);
        CHECK(info.summary.ends_with('.'));
        StepText plain{info.name, {}};
        StepText spelt{info.name, {}};
        for (const StepParameterInfo& parameter : info.parameters) {
            CHECK(!parameter.description.empty());
            CHECK(!parameter.values.empty());
            if (!parameter.default_value.empty()) spelt.parameters[parameter.name] = parameter.default_value;
        }
        if (info.parameters.front().name == "size") {
            plain.parameters["size"] = spelt.parameters["size"] = "8x9";
        }
        CHECK(parse_step(plain, "p") == parse_step(spelt, "p"));
    }
    for (const StepInfo& info : preprocessing_presets()) {
        CAPTURE(info.name);
        StepText spelt{info.name, {}};
        for (const StepParameterInfo& parameter : info.parameters) {
            if (!parameter.default_value.empty()) spelt.parameters[parameter.name] = parameter.default_value;
        }
        CHECK(parse_preset({info.name, {}}, "p") == parse_preset(spelt, "p"));
    }
}

TEST_CASE("What is wrong with a step is said with the nearest right name") {
    CHECK(step_error("resise: {size: 8}") == "--preprocess: no step 'resise' (did you mean 'resize'?)");
    CHECK(step_error("blur").starts_with("--preprocess: no step 'blur'; there are resize, letterbox, "));
    CHECK(step_error("resize: {shortr: 8}") ==
          "--preprocess: step resize has no parameter 'shortr' (did you mean 'shorter'?)");
    CHECK(step_error("resize: {size: 8, interpolation: pilow-bilinear}") ==
          "--preprocess: interpolation: expected nearest or bilinear or bicubic or area or lanczos or "
          "pillow-nearest or pillow-box or pillow-bilinear or pillow-hamming or pillow-bicubic or "
          "pillow-lanczos, found 'pilow-bilinear' (did you mean 'pillow-bilinear'?)");
    CHECK(step_error("resize: {shorter: 8, longer: 9}") ==
          "--preprocess: expected just one of size, shorter, longer, width, height, longer-at-most, "
          "shorter-at-least, found shorter and longer");
    CHECK(step_error("resize: {longer: 8, width-at-most: 4}") ==
          "--preprocess: width-at-most: expected together with height");
    CHECK(step_error("crop") == "--preprocess: expected size, which has no default");
    CHECK(step_error("crop: {size: 0}") ==
          "--preprocess: size: expected sides of 1 to 65535 pixels, found 0");
    CHECK(step_error("crop: {size: big}") ==
          "--preprocess: size: expected WIDTHxHEIGHT such as 640x480, found 'big'");
    CHECK(step_error("scale: {multiply: 1/0}") ==
          "--preprocess: multiply: expected finite numbers, found inf");
    CHECK(step_error("normalize: {std: [1, 0, 1]}") ==
          "--preprocess: std: expected numbers other than 0, found 0");
    CHECK(step_error("normalize: {mean: [1, 2]}") ==
          "--preprocess: mean: expected one number or one for each of 3 or 4 channels, found 2 numbers");
    CHECK(step_error("letterbox: {size: 8, enlarge: yes}") ==
          "--preprocess: enlarge: expected true or false, found 'yes'");
    CHECK(step_error("[1, 2]") ==
          "--preprocess: expected NAME or 'NAME: {parameter: value, ...}', found '[1, 2]'");
    CHECK(step_error("crop: {size: 8").starts_with("--preprocess:1:"));
    CHECK(preset_error("torchvison") == "--preprocess: no preset 'torchvison' (did you mean 'torchvision'?)");
    CHECK(preset_error("torchvision: {size: 200}") ==
          "--preprocess: crop: expected sides of 200 pixels at the most, the size, found 224x224");
    CHECK(preset_error("keras: {mode: tensorflow}") ==
          "--preprocess: mode: expected tf or caffe or torch, found 'tensorflow'");
}

TEST_CASE("All faults of a step are handed over, each with its parameter") {
    std::vector<std::string> parameters;
    const StepText text{"letterbox", {{"size", "wide"}, {"fil", "3"}, {"place", "middle"}}};
    CHECK(!parse_step(
        text, [&](const std::string& parameter, const std::string&) { parameters.push_back(parameter); }));
    CHECK(parameters == std::vector<std::string>{"fil", "size", "place"});
}

TEST_CASE("The flags are a short way to say steps") {
    PictureFlags flags;
    flags.resize = PictureSize{256, 240};
    flags.crop = PictureSize{224, 200};
    flags.color = ColorOrder::bgr;
    flags.mean = {0.5};
    const Preprocessing by_steps = steps_of({"resize: {size: 256x240}", "crop: {size: 224x200}",
                                             "color: {order: bgr}", "scale", "normalize: {mean: 0.5}"});
    CHECK(Preprocessing(flags) == by_steps);
    CHECK(canonical(flags) == canonical(by_steps));
}

TEST_CASE("Steps that do nothing are not in the canonical text") {
    CHECK(canonical(steps_of({"color", "scale: {multiply: 1}", "normalize", "layout", "dtype"})) ==
          "step=none");
    CHECK(canonical(steps_of({"color: {order: grey}", "color: {order: bgr}"})) ==
          "step=color: {order: grey}");
    CHECK(canonical(steps_of({"dtype: {clamp: true}", "crop: {size: 4}"})) ==
          "step=crop: {size: 4x4}\nstep=dtype: {clamp: true}");
}

TEST_CASE("A preset is described as its steps") {
    CHECK(describe(preset("torchvision")) ==
          "decode, resize the shorter side to 256, the other one by the ratio, rounded down (Pillow's "
          "bilinear, "
          "antialiased), crop the centre 224x224 (halves to even), times 1/255, minus [0.485, 0.456, 0.406], "
          "divided by [0.229, 0.224, 0.225]; integer inputs: rounded");
    CHECK(canonical(preset("yolo: {size: 320}")) ==
          "step=letterbox: {size: 320x320}\nstep=scale: {multiply: 0.00392156862745098}");
    CHECK(canonical(preset("keras: {mode: caffe, size: 299}")) ==
          "step=resize: {interpolation: pillow-nearest, size: 299x299}\nstep=color: {order: bgr}\n"
          "step=normalize: {mean: [103.939, 116.779, 123.68]}");
}

TEST_CASE("A side that follows from the ratio is rounded as asked") {
    const OnePicture picture(10, 33);
    CHECK(picture.size({"resize: {shorter: 5}"}) == Shape{5, 16});
    CHECK(picture.size({"resize: {shorter: 5, rounding: up}"}) == Shape{5, 17});
    CHECK(picture.size({"resize: {shorter: 5, rounding: nearest}"}) == Shape{5, 16});  // 16.5, ties to even
    CHECK(picture.size({"resize: {longer: 66}"}) == Shape{20, 66});
    CHECK(picture.size({"resize: {width: 11}"}) == Shape{3, 11});
    CHECK(picture.size({"resize: {height: 20}"}) == Shape{20, 66});
    CHECK(picture.size({"resize: {height: 20, width-at-most: 40}"}) == Shape{20, 40});
    CHECK(picture.size({"resize: {width: 1}"}) == Shape{1, 1});
}

TEST_CASE("A limited side leaves pictures that keep to it, and multiples are the nearest") {
    const OnePicture picture(100, 330);
    CHECK(picture.size({"resize: {longer-at-most: 330}"}) == Shape{100, 330});
    CHECK(picture.size({"resize: {longer-at-most: 165}"}) == Shape{50, 165});
    CHECK(picture.size({"resize: {shorter-at-least: 100}"}) == Shape{100, 330});
    CHECK(picture.size({"resize: {shorter-at-least: 200}"}) == Shape{200, 660});
    CHECK(picture.size({"resize: {longer-at-most: 960, multiple: 32}"}) == Shape{96, 320});
    CHECK(picture.size({"resize: {size: 16x48, multiple: 32}"}) ==
          Shape{64, 32});  // 1.5: to 2; 0.5: 1 at least
}

TEST_CASE("A letterbox keeps the ratio and fills the rest around the picture or behind it") {
    const OnePicture picture(2, 4);
    const double f = 114;
    CHECK(picture.values({"letterbox: {size: 4x5}"}) ==
          Values{f, f, f, f, 200, 200, 200, 200, 200, 200, 200, 200, f, f, f, f, f, f, f, f});
    CHECK(picture.values({"letterbox: {size: 4x4, place: corner, fill: 9}"}) ==
          Values{200, 200, 200, 200, 200, 200, 200, 200, 9, 9, 9, 9, 9, 9, 9, 9});
    CHECK(picture.values({"letterbox: {size: 6x3, enlarge: false, fill: 0}"}) ==
          Values{0, 200, 200, 200, 200, 0, 0, 200, 200, 200, 200, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("Padding after a step on values is in those values") {
    const OnePicture picture(1, 2, {51, 255});
    CHECK(picture.values({"scale", "normalize: {mean: 0.5, std: 0.5}", "pad: {size: 4x1}"}) ==
          Values{static_cast<double>(static_cast<float>((51 * (1.0 / 255) - 0.5) / 0.5)), 1, 0, 0});
    CHECK(picture.values({"pad: {size: 4x1, fill: 102}", "scale"}) ==
          Values{static_cast<double>(static_cast<float>(51 * (1.0 / 255))), 1,
                 static_cast<double>(static_cast<float>(102 * (1.0 / 255))),
                 static_cast<double>(static_cast<float>(102 * (1.0 / 255)))});
    CHECK(picture.size({"pad: {multiple: 3}"}) == Shape{3, 3});
    CHECK(picture.error({"pad: {size: 1x1}"}) == "expected a picture of 1x1 at the most for pad, found 2x1");
}

TEST_CASE("A resize after a step on values is done on values, without rounding") {
    const OnePicture picture(1, 2, {0, 1});
    CHECK(picture.values({"resize: {size: 1x1}"}) == Values{1});  // 0.5 of 8 bits
    CHECK(picture.values({"scale: {multiply: 2}", "resize: {size: 1x1}"}) == Values{1});
    CHECK(picture.values({"scale: {multiply: 0.5}", "resize: {size: 1x1}"}) == Values{0.25});
    CHECK(picture.values({"scale: {multiply: 0.5}", "resize: {size: 1x1, interpolation: pillow-bilinear}"}) ==
          Values{0.25});
}

TEST_CASE("The crop's offset may be rounded to even, as torchvision's") {
    const OnePicture picture(1, 4, {10, 20, 30, 40});
    CHECK(picture.values({"crop: {size: 1x1}"}) == Values{20});                     // from 1.5 down to 1
    CHECK(picture.values({"crop: {size: 1x1, rounding: nearest}"}) == Values{30});  // to 2
}

TEST_CASE("Numbers for channels count in the order the channels have at that step") {
    const std::vector<std::uint8_t> bgr{1, 2, 3};
    const OnePicture picture(cv::Mat(1, 1, CV_8UC3, const_cast<std::uint8_t*>(bgr.data())));
    CHECK(picture.values({}, 3) == Values{3, 2, 1});
    const std::string mean = "normalize: {mean: [100, 200, 300]}";
    CHECK(picture.values({mean}, 3) == Values{-97, -198, -299});
    CHECK(picture.values({mean, "color: {order: bgr}"}, 3) == Values{-299, -198, -97});
    CHECK(picture.values({"color: {order: bgr}", mean}, 3) == Values{-99, -198, -297});
    CHECK(picture.values({mean, "resize: {size: 1x2}", "color: {order: bgr}"}, 3) ==
          Values{-299, -299, -198, -198, -97, -97});
    CHECK(picture.values({"pad: {size: 2x1, fill: [7, 8, 9]}"}, 3) == Values{3, 7, 2, 8, 1, 9});
    CHECK(picture.values({"color: {order: bgr}", "pad: {size: 2x1, fill: [7, 8, 9]}"}, 3) ==
          Values{1, 7, 2, 8, 3, 9});
}

TEST_CASE("Grey is a step of its own place, for inputs of 1 and 3 channels") {
    const std::vector<std::uint8_t> bgr{10, 20, 250};
    const OnePicture picture(cv::Mat(1, 1, CV_8UC3, const_cast<std::uint8_t*>(bgr.data())));
    const double grey = 88;  // 0.114 * 10 + 0.587 * 20 + 0.299 * 250 = 87.63
    CHECK(picture.values({"color: {order: grey}"}, 3) == Values{grey, grey, grey});
    CHECK(picture.values({"color: {order: grey}"}, 1) == Values{grey});
    CHECK(picture.values({}, 1) == Values{grey});
    CHECK(picture.values({"scale: {multiply: 1/2}", "color: {order: grey}"}, 1)[0] ==
          doctest::Approx(87.63 / 2).epsilon(1e-6));
    const OnePicture one(1, 1, {5});
    CHECK(one.values({"normalize: {mean: [1, 2, 3]}", "resize: {size: 1x1}"}, 3) == Values{4, 3, 2});
}

TEST_CASE("Integer inputs get values rounded to even, cut off, or clamped") {
    const OnePicture picture(1, 3, {3, 5, 200});
    const std::vector<std::string> half{"scale: {multiply: 0.5}"};
    CHECK(picture.values(half, 1, DataType::uint8) == Values{2, 2, 100});
    CHECK(picture.values({"scale: {multiply: 0.5}", "dtype: {integers: truncate}"}, 1, DataType::uint8) ==
          Values{1, 2, 100});
    CHECK(picture.values({"scale"}, 1, DataType::uint8) == Values{3, 5, 200});
    CHECK(picture.error({}, DataType::int8)
              .starts_with("pixels become 0 to 255, which type int8 of input 'x'"));
    CHECK(picture.values({"dtype: {clamp: true}"}, 1, DataType::int8) == Values{3, 5, 127});
}

TEST_CASE("The layout step says which axis of an input has the channels") {
    const OnePicture picture(cv::Mat(3, 2, CV_8UC3, cv::Scalar(1, 2, 3)));
    const InputSpec either{"x", DataType::float32, {1, 3, open, 3}, true};
    const auto shape = [&](const std::string& axes) {
        SampleFolder folder;
        const auto file = folder.path() / "p.png";
        REQUIRE(cv::imwrite(file.string(), cv::Mat(3, 2, CV_8UC3, cv::Scalar(1, 2, 3))));
        return SampleReader({either}, steps_of({"layout: {pictures: " + axes + "}"}))
            .read({1, {file}})
            .at(0)
            .shape();
    };
    CHECK(shape("nhwc") == Shape{1, 3, 2, 3});
    CHECK_THROWS_AS(shape("nchw"), Error);
}

TEST_CASE("A side beyond what a picture may have is refused") {
    const OnePicture picture(1, 300);
    CHECK(picture.error({"resize: {shorter: 60000}"}) ==
          "resize of a picture of 300x1 gives a side of 18000000 pixels, more than 65535");
}
