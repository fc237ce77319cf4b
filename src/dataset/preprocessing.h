#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace qcalib {

struct PictureSize {
    int width = 0;
    int height = 0;
    bool operator==(const PictureSize&) const = default;
};

enum class ColorOrder { rgb, bgr };
enum class DataLayout { as_model, nhwc, nchw };

// The first five are cv2's INTER_*; the pillow_* are Pillow's (and so torchvision's), antialiased: 8-bit
// pictures in its fixed-point arithmetic, each of the two passes rounded to 8 bits, others in double.
enum class Interpolation {
    nearest,
    bilinear,
    bicubic,
    area,
    lanczos,
    pillow_nearest,
    pillow_box,
    pillow_bilinear,
    pillow_hamming,
    pillow_bicubic,
    pillow_lanczos,
};

enum class SideRounding { down, nearest, up };  // nearest: ties to even (Rounding is that of tensor/grid.h)
enum class Place { corner, centre };            // corner: the picture lies at the top left

struct ResizeStep {
    // What `side` says; `size` alone does not keep the ratio of the sides.
    enum class Form { size, shorter, longer, width, height, longer_at_most, shorter_at_least };
    Form form = Form::size;
    PictureSize size;       // of Form::size
    int side = 0;           // of all other forms
    int multiple = 1;       // both sides, to the nearest multiple (ties to the even one), one at the least
    int width_at_most = 0;  // the width is cut to it, the height stays; 0: open
    SideRounding rounding = SideRounding::down;  // of a side that follows from the ratio
    Interpolation interpolation = Interpolation::bilinear;
    bool operator==(const ResizeStep&) const = default;
};

struct LetterboxStep {
    PictureSize size;
    std::vector<double> fill = {114};
    Place place = Place::centre;
    Interpolation interpolation = Interpolation::bilinear;
    bool enlarge = true;
    bool operator==(const LetterboxStep&) const = default;
};

struct CropStep {
    PictureSize size;
    SideRounding rounding = SideRounding::down;  // of half of what is left over
    bool operator==(const CropStep&) const = default;
};

struct PadStep {
    std::optional<PictureSize> size;  // or
    int multiple = 1;                 // of both sides
    std::vector<double> fill = {0};
    Place place = Place::corner;
    bool operator==(const PadStep&) const = default;
};

struct ColorStep {
    enum class Order { rgb, bgr, grey };
    Order order = Order::rgb;
    bool operator==(const ColorStep&) const = default;
};

struct ScaleStep {
    double multiply = 1.0 / 255;
    bool operator==(const ScaleStep&) const = default;
};

struct NormalizeStep {
    std::vector<double> mean = {0};  // one number, or one for each channel in the order of the colours there
    std::vector<double> std = {1};
    bool operator==(const NormalizeStep&) const = default;
};

struct LayoutStep {
    enum class Axes { as_model, nchw, nhwc };
    Axes pictures = Axes::as_model;          // which axes of the input a picture fills
    DataLayout data = DataLayout::as_model;  // of arrays and raw data of rank 4, permuted to the input's
    bool operator==(const LayoutStep&) const = default;
};

struct DtypeStep {
    enum class Integers { nearest, truncate };
    Integers integers = Integers::nearest;  // how an integer input gets a fraction; nearest: ties to even
    bool clamp = false;                     // values the type does not hold; false: refused
    bool operator==(const DtypeStep&) const = default;
};

using PictureStep = std::variant<ResizeStep, LetterboxStep, CropStep, PadStep, ColorStep, ScaleStep,
                                 NormalizeStep, LayoutStep, DtypeStep>;

// The default order, as --resize, --crop, --color, --multiply, --mean, --std and --data-layout say it:
// bilinear resize, centre crop, colour order, value = (pixel * multiply - mean[c]) / std[c].
struct PictureFlags {
    std::optional<PictureSize> resize;
    std::optional<PictureSize> crop;
    ColorOrder color = ColorOrder::rgb;
    double multiply = 1.0 / 255;
    std::vector<double> mean;  // empty: 0
    std::vector<double> std;   // empty: 1
    DataLayout layout = DataLayout::as_model;
};

// How a picture becomes a tensor: decoded to rgb pixels of 0 to 255, then the steps in their order, then
// laid out as the input asks. Without steps the pixels are taken as they are. Integer inputs: where the one
// step on values is the scale 1/255 they get the pixels as they are, else values rounded as DtypeStep says.
// What happens in detail is said in picture_reader.cpp.
struct Preprocessing {
    std::vector<PictureStep> steps;

    Preprocessing() : Preprocessing(PictureFlags{}) {}
    explicit Preprocessing(std::vector<PictureStep> list) : steps(std::move(list)) {}
    Preprocessing(const PictureFlags& flags);  // NOLINT(google-explicit-constructor): a shorter way to say it

    // The steps on values amount to the factor 1/255.
    bool default_scaling() const;
    LayoutStep layout() const;  // the defaults where no step says otherwise
    DtypeStep dtype() const;
    bool operator==(const Preprocessing&) const = default;
};

// "320x240" of an option named `what`.
PictureSize parse_picture_size(const std::string& text, std::string_view what);

// One line that says what is done to a picture, in order, with all numbers.
std::string describe(const Preprocessing& preprocessing);

// The canonical text of all that can change a value, for StatisticsHeader::settings: a line for each step,
// those that do nothing left out.
std::string canonical(const Preprocessing& preprocessing);

// Steps as text: a name, and the parameters of its map with their values ("a,b,c" or "[a, b, c]" for lists).
using StepParameters = std::map<std::string, std::string>;
struct StepText {
    std::string name;
    StepParameters parameters;
};

// Takes what is wrong with a step or preset: the parameter at fault ("" for the whole), and a sentence of
// what was expected and found.
using StepFault = std::function<void(const std::string& parameter, const std::string& text)>;

// The step or steps that a text says; nothing where `fault` was called. Every fault of it is handed over.
std::optional<PictureStep> parse_step(const StepText& text, const StepFault& fault);
std::optional<std::vector<PictureStep>> parse_preset(const StepText& text, const StepFault& fault);
// The same, throwing Error "<what>: ..." for the first fault.
PictureStep parse_step(const StepText& text, std::string_view what);
std::vector<PictureStep> parse_preset(const StepText& text, std::string_view what);
// "crop: {size: 224x224}" or "yolo" of an option named `what`: the name and its parameters.
StepText parse_step_text(const std::string& text, std::string_view what);

// Their documentation, for lists and schemas.
struct StepParameterInfo {
    std::string name;
    std::string values;         // what it takes: "WxH", "rgb or bgr", "a number"
    std::string default_value;  // "" where there is none
    std::string description;
};
struct StepInfo {
    std::string name;
    std::string summary;
    std::vector<StepParameterInfo> parameters;
};
std::span<const StepInfo> preprocessing_steps();
std::span<const StepInfo> preprocessing_presets();

// The name of a step, as in preprocessing_steps().
std::string_view name_of(const PictureStep& step);
// The parameters of a step that differ from their defaults, as parse_step() reads them.
StepParameters parameters_of(const PictureStep& step);

}  // namespace qcalib
