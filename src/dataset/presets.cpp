// Preprocessing of well-known families as lists of steps.
#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "dataset/step_reader.h"

namespace qcalib {

namespace {

const std::vector<double> imagenet_mean = {0.485, 0.456, 0.406};
const std::vector<double> imagenet_std = {0.229, 0.224, 0.225};
const std::vector<double> imagenet_bgr_mean = {103.939, 116.779, 123.68};  // of pixels of 0 to 255

const std::vector<std::string> keras_modes = {"tf", "caffe", "torch"};
const std::vector<std::string> limit_sides = {"longer", "shorter"};
const std::vector<std::string> keras_interpolations = {"pillow-nearest", "pillow-bilinear", "pillow-bicubic",
                                                       "pillow-box",     "pillow-hamming",  "pillow-lanczos"};
const std::vector<std::string> torchvision_interpolations = {"pillow-bilinear", "pillow-bicubic"};

Interpolation interpolation_named(const std::string& name) {
    const auto names = interpolation_names();
    return static_cast<Interpolation>(std::find(names.begin(), names.end(), name) - names.begin());
}

Interpolation chosen_interpolation(StepReader& reader, std::span<const std::string> names) {
    return interpolation_named(names[reader.choice("interpolation", names, 0)]);
}

ResizeStep resize_to(PictureSize size, Interpolation interpolation) {
    ResizeStep step;
    step.size = size;
    step.interpolation = interpolation;
    return step;
}

ResizeStep resize_by(ResizeStep::Form form, int side, Interpolation interpolation) {
    ResizeStep step;
    step.form = form;
    step.side = side;
    step.interpolation = interpolation;
    return step;
}

const StepInfo torchvision_info = {
    "torchvision",
    "ImageNet classifiers of torchvision: shorter side, centre crop, ImageNet mean and std.",
    {
        {"size", "N", "256", "The shorter side after the resize"},
        {"crop", "WxH or N", "224", "What is cut out of the centre"},
        {"interpolation", join(torchvision_interpolations, " or "), "pillow-bilinear", "Of the resize"},
    }};

std::vector<PictureStep> torchvision(StepReader& reader) {
    const int side = reader.side("size", 256);
    const PictureSize crop = reader.size("crop", {224, 224});
    if (std::min(crop.width, crop.height) > side) {
        reader.fault("crop", fmt::format("crop: expected sides of {} pixels at the most, the size, found {}",
                                         side, size_text(crop)));
    }
    return {
        resize_by(ResizeStep::Form::shorter, side, chosen_interpolation(reader, torchvision_interpolations)),
        CropStep{crop, SideRounding::nearest}, ScaleStep{}, NormalizeStep{imagenet_mean, imagenet_std}};
}

const StepInfo keras_info = {
    "keras",
    "keras.applications: resized as load_img does, scaled as preprocess_input does.",
    {
        {"mode", join(keras_modes, " or "), "tf",
         "tf: x / 127.5 - 1; caffe: bgr, the ImageNet mean subtracted; torch: x / 255, ImageNet mean and "
         "std"},
        {"size", "WxH or N", "224", "The input's size"},
        {"interpolation", join(keras_interpolations, " or "), "pillow-nearest", "Of the resize"},
    }};

std::vector<PictureStep> keras(StepReader& reader) {
    const PictureSize size = reader.size("size", {224, 224});
    std::vector<PictureStep> steps{resize_to(size, chosen_interpolation(reader, keras_interpolations))};
    switch (reader.choice("mode", keras_modes, 0)) {
        case 0:
            steps.insert(steps.end(), {ScaleStep{1 / 127.5}, NormalizeStep{{1}, {1}}});
            break;
        case 1:
            steps.insert(steps.end(),
                         {ColorStep{ColorStep::Order::bgr}, NormalizeStep{imagenet_bgr_mean, {1}}});
            break;
        default:
            steps.insert(steps.end(), {ScaleStep{}, NormalizeStep{imagenet_mean, imagenet_std}});
    }
    return steps;
}

const StepInfo paddleocr_det_info = {
    "paddleocr-det",
    "PaddleOCR's text detectors: a limited side, multiples of 32, bgr with the ImageNet mean and std.",
    {
        {"limit", "N", "960", "What the side is limited to"},
        {"side", join(limit_sides, " or "), "longer",
         "longer: at most the limit (limit_type max); shorter: at least (limit_type min)"},
        {"size", "WxH or N", "", "A fixed size instead of the limit, the ratio not kept"},
    }};

std::vector<PictureStep> paddleocr_det(StepReader& reader) {
    const int limit = reader.side("limit", 960);
    const bool shorter = reader.choice("side", limit_sides, 0) == 1;
    ResizeStep resize =
        resize_by(shorter ? ResizeStep::Form::shorter_at_least : ResizeStep::Form::longer_at_most, limit,
                  Interpolation::bilinear);
    resize.multiple = 32;
    if (reader.has("size")) {
        if (reader.has("limit")) reader.fault("size", "expected just one of size, limit, found both");
        resize = resize_to(reader.size("size"), Interpolation::bilinear);
    }
    return {resize, ColorStep{ColorStep::Order::bgr}, ScaleStep{},
            NormalizeStep{imagenet_mean, imagenet_std}};
}

const StepInfo paddleocr_rec_info = {
    "paddleocr-rec",
    "PaddleOCR's text recognizers: a fixed height, the ratio kept, (x / 255 - 0.5) / 0.5, padded with 0.",
    {
        {"height", "N", "48", "The input's height"},
        {"width", "N", "320",
         "The input's width: wider lines are squeezed, narrower ones padded at the right"},
    }};

std::vector<PictureStep> paddleocr_rec(StepReader& reader) {
    const int height = reader.side("height", 48);
    const int width = reader.side("width", 320);
    ResizeStep resize = resize_by(ResizeStep::Form::height, height, Interpolation::bilinear);
    resize.rounding = SideRounding::up;
    resize.width_at_most = width;
    return {resize, ColorStep{ColorStep::Order::bgr}, ScaleStep{}, NormalizeStep{{0.5}, {0.5}},
            PadStep{PictureSize{width, height}, 1, {0}, Place::corner}};
}

const StepInfo yolo_info = {
    "yolo",
    "Ultralytics' YOLO: a letterbox filled with 114, x / 255, rgb.",
    {{"size", "WxH or N", "640", "The input's size"},
     {"place", "corner or centre", "centre", "Where the picture lies in the letterbox"}}};

std::vector<PictureStep> yolo(StepReader& reader) {
    static const std::vector<std::string> places = {"corner", "centre"};
    LetterboxStep letterbox;
    letterbox.size = reader.size("size", {640, 640});
    letterbox.place = static_cast<Place>(reader.choice("place", places, 1));
    return {letterbox, ScaleStep{}};
}

using MakeSteps = std::vector<PictureStep> (*)(StepReader& reader);
constexpr std::array<MakeSteps, 5> makers = {torchvision, keras, paddleocr_det, paddleocr_rec, yolo};

}  // namespace

std::span<const StepInfo> preprocessing_presets() {
    static const std::array<StepInfo, makers.size()> all = {torchvision_info, keras_info, paddleocr_det_info,
                                                            paddleocr_rec_info, yolo_info};
    return all;
}

std::optional<std::vector<PictureStep>> parse_preset(const StepText& text, const StepFault& fault) {
    const auto presets = preprocessing_presets();
    for (std::size_t i = 0; i < presets.size(); ++i) {
        if (presets[i].name != text.name) continue;
        StepReader reader(text, presets[i], "preset", fault);
        std::vector<PictureStep> steps = makers[i](reader);
        return reader.ok() ? std::optional(std::move(steps)) : std::nullopt;
    }
    std::vector<std::string> names;
    for (const StepInfo& preset : presets) names.push_back(preset.name);
    const std::string hint = did_you_mean(text.name, names);
    fault("", fmt::format("no preset '{}'{}", printable(text.name),
                          hint.empty() ? "; there are " + join(names, ", ") : hint));
    return std::nullopt;
}

std::vector<PictureStep> parse_preset(const StepText& text, std::string_view what) {
    return *parse_preset(
        text, [&](const std::string&, const std::string& fault_text) { fail("{}: {}", what, fault_text); });
}

}  // namespace qcalib
