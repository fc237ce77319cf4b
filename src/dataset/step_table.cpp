// Every step of preprocessing: its documentation and how its parameters become a value and text again.
#include <algorithm>
#include <array>
#include <cassert>

#include "base/text.h"
#include "dataset/step_reader.h"

namespace qcalib {

namespace {

const std::vector<std::string> interpolations = {
    "nearest",    "bilinear",        "bicubic",        "area",           "lanczos",       "pillow-nearest",
    "pillow-box", "pillow-bilinear", "pillow-hamming", "pillow-bicubic", "pillow-lanczos"};
const std::vector<std::string> roundings = {"down", "nearest", "up"};
const std::vector<std::string> places = {"corner", "centre"};
const std::vector<std::string> colors = {"rgb", "bgr", "grey"};
const std::vector<std::string> axes = {"model", "nchw", "nhwc"};
const std::vector<std::string> data_layouts = {"model", "nhwc", "nchw"};
const std::vector<std::string> integers = {"nearest", "truncate"};

// The names of ResizeStep::Form, in its order.
const std::vector<std::string> resize_forms = {"size",   "shorter",        "longer",          "width",
                                               "height", "longer-at-most", "shorter-at-least"};

std::string either(std::span<const std::string> names) {
    return join(names, " or ");
}

StepParameterInfo interpolation_info() {
    return {"interpolation", either(interpolations), "bilinear",
            "The first five as cv2's INTER_*; pillow-*: antialiased, in Pillow's arithmetic, as torchvision"};
}

const StepInfo resize_info = {
    "resize",
    "Resizes the picture; just one of the first seven says to what.",
    {
        {"size", "WxH or N", "", "Both sides, whatever the ratio"},
        {"shorter", "N", "", "The shorter side; the other keeps the ratio (torchvision's Resize(N))"},
        {"longer", "N", "", "The longer side; the other keeps the ratio"},
        {"width", "N", "", "The width; the height keeps the ratio"},
        {"height", "N", "", "The height; the width keeps the ratio"},
        {"longer-at-most", "N", "", "Smaller, so that the longer side is N; a smaller picture stays"},
        {"shorter-at-least", "N", "", "Larger, so that the shorter side is N; a larger picture stays"},
        {"multiple", "N", "1", "Both sides to the nearest multiple (ties to the even one), N at the least"},
        {"width-at-most", "N", "", "Cuts the width that follows from the ratio; the height stays"},
        {"rounding", either(roundings), "down",
         "Of a side that follows from the ratio; nearest: ties to even"},
        interpolation_info(),
    }};

const StepInfo letterbox_info = {
    "letterbox",
    "Resizes the picture to fit into a size, its ratio kept, and fills what is left (YOLO).",
    {
        {"size", "WxH or N", "", "What it fits into"},
        {"fill", "a number or one a channel", "114", "The filling, in the values pixels have there"},
        {"place", either(places), "centre", "Where the picture lies: the top left corner, or the centre"},
        {"enlarge", "true or false", "true", "Whether smaller pictures are made larger"},
        interpolation_info(),
    }};

const StepInfo crop_info = {
    "crop",
    "Cuts out the centre.",
    {
        {"size", "WxH or N", "", "What is cut out"},
        {"rounding", "down or nearest", "down",
         "Of half of what is left over; nearest: ties to even, as torchvision's CenterCrop"},
    }};

const StepInfo pad_info = {
    "pad",
    "Adds a border up to a size or a multiple; just one of the first two says to what.",
    {
        {"size", "WxH or N", "", "The size with the border"},
        {"multiple", "N", "", "Both sides up to the next multiple"},
        {"fill", "a number or one a channel", "0", "The border, in the values pixels have there"},
        {"place", either(places), "corner", "Where the picture lies: the top left corner, or the centre"},
    }};

const StepInfo color_info = {
    "color",
    "Puts the channels in an order, or makes them grey; pictures begin as rgb.",
    {
        {"order", either(colors), "rgb", "grey: 0.299 R + 0.587 G + 0.114 B, repeated where more are wanted"},
    }};

const StepInfo scale_info = {"scale",
                             "Multiplies the values; pixels begin as 0 to 255.",
                             {{"multiply", "a number, as 0.5 or 1/255", "1/255", "The factor"}}};

const StepInfo normalize_info = {
    "normalize",
    "Subtracts the mean and divides by the standard deviation.",
    {
        {"mean", "a number or one a channel", "0", "Subtracted, in the order of the channels there"},
        {"std", "a number or one a channel", "1", "Divided by, in the order of the channels there"},
    }};

const StepInfo layout_info = {
    "layout",
    "Says which axes are which; its place in the list does not matter.",
    {
        {"pictures", either(axes), "model",
         "The input's axes that pictures fill; model: told from its shape"},
        {"data", either(data_layouts), "model", "Of arrays and raw data of rank 4, permuted to the input's"},
    }};

const StepInfo dtype_info = {
    "dtype",
    "Says how values become an input's type; its place in the list does not matter.",
    {
        {"integers", either(integers), "nearest", "How fractions go: to the nearest (ties to even), or to 0"},
        {"clamp", "true or false", "false", "Whether values beyond the type become its ends, or an error"},
    }};

template <typename Enumeration>
Enumeration chosen(StepReader& reader, const std::string& parameter, std::span<const std::string> names,
                   Enumeration absent) {
    return static_cast<Enumeration>(reader.choice(parameter, names, static_cast<std::size_t>(absent)));
}

// The one of the parameters that is given; a fault where there is not just one.
std::optional<std::size_t> only_one(StepReader& reader, std::span<const std::string> parameters) {
    std::vector<std::string> given;
    for (const std::string& parameter : parameters) {
        if (reader.has(parameter)) given.push_back(parameter);
    }
    if (given.size() == 1) {
        return std::find(parameters.begin(), parameters.end(), given.front()) - parameters.begin();
    }
    reader.fault(given.size() > 1 ? given[1] : "",
                 fmt::format("expected just one of {}, found {}", join(parameters, ", "),
                             given.empty() ? "none" : join(given, " and ")));
    return std::nullopt;
}

void require(StepReader& reader, const std::string& parameter) {
    if (!reader.has(parameter)) reader.fault("", fmt::format("expected {}, which has no default", parameter));
}

PictureStep parse_resize(StepReader& reader) {
    ResizeStep step;
    if (const auto form = only_one(reader, resize_forms)) {
        step.form = static_cast<ResizeStep::Form>(*form);
        if (step.form == ResizeStep::Form::size) {
            step.size = reader.size("size");
        } else {
            step.side = reader.side(resize_forms[*form]);
        }
    }
    step.multiple = reader.side("multiple", step.multiple);
    step.width_at_most = reader.side("width-at-most", step.width_at_most);
    if (step.width_at_most != 0 && step.form != ResizeStep::Form::height && reader.ok()) {
        reader.fault("width-at-most", "width-at-most: expected together with height");
    }
    step.rounding = chosen(reader, "rounding", roundings, step.rounding);
    step.interpolation = chosen(reader, "interpolation", interpolations, step.interpolation);
    return step;
}

PictureStep parse_letterbox(StepReader& reader) {
    LetterboxStep step;
    require(reader, "size");
    step.size = reader.size("size");
    step.fill = reader.reals("fill", step.fill);
    step.place = chosen(reader, "place", places, step.place);
    step.enlarge = reader.boolean("enlarge", step.enlarge);
    step.interpolation = chosen(reader, "interpolation", interpolations, step.interpolation);
    return step;
}

PictureStep parse_crop(StepReader& reader) {
    CropStep step;
    require(reader, "size");
    step.size = reader.size("size");
    step.rounding = chosen(reader, "rounding", std::span(roundings).first(2), step.rounding);
    return step;
}

PictureStep parse_pad(StepReader& reader) {
    PadStep step;
    static const std::vector<std::string> forms = {"size", "multiple"};
    only_one(reader, forms);
    if (reader.has("size")) step.size = reader.size("size");
    step.multiple = reader.side("multiple", step.multiple);
    step.fill = reader.reals("fill", step.fill);
    step.place = chosen(reader, "place", places, step.place);
    return step;
}

PictureStep parse_color(StepReader& reader) {
    return ColorStep{chosen(reader, "order", colors, ColorStep::Order::rgb)};
}

PictureStep parse_scale(StepReader& reader) {
    return ScaleStep{reader.real("multiply", ScaleStep{}.multiply)};
}

PictureStep parse_normalize(StepReader& reader) {
    NormalizeStep step;
    step.mean = reader.reals("mean", step.mean);
    step.std = reader.reals("std", step.std);
    if (std::find(step.std.begin(), step.std.end(), 0.0) != step.std.end()) {
        reader.fault("std", "std: expected numbers other than 0, found 0");
    }
    return step;
}

PictureStep parse_layout(StepReader& reader) {
    LayoutStep step;
    step.pictures = chosen(reader, "pictures", axes, step.pictures);
    step.data = chosen(reader, "data", data_layouts, step.data);
    return step;
}

PictureStep parse_dtype(StepReader& reader) {
    DtypeStep step;
    step.integers = chosen(reader, "integers", integers, step.integers);
    step.clamp = reader.boolean("clamp", step.clamp);
    return step;
}

// Gathers the parameters that differ from their defaults.
class ParameterWriter {
  public:
    template <typename T>
    ParameterWriter& add(const std::string& name, const T& value, const T& absent, const std::string& text) {
        if (!(value == absent)) parameters_[name] = text;
        return *this;
    }
    ParameterWriter& side(const std::string& name, int value, int absent) {
        return add(name, value, absent, fmt::format("{}", value));
    }
    template <typename Enumeration>
    ParameterWriter& choice(const std::string& name, Enumeration value, Enumeration absent,
                            std::span<const std::string> names) {
        return add(name, value, absent, names[static_cast<std::size_t>(value)]);
    }
    ParameterWriter& numbers(const std::string& name, const std::vector<double>& value,
                             const std::vector<double>& absent) {
        const std::string text = numbers_text(value);
        return add(name, text, numbers_text(absent), text);
    }
    StepParameters take() { return std::move(parameters_); }

  private:
    StepParameters parameters_;
};

struct WriteParameters {
    StepParameters operator()(const ResizeStep& step) const {
        const ResizeStep absent;
        ParameterWriter writer;
        const std::string text =
            step.form == ResizeStep::Form::size ? size_text(step.size) : fmt::format("{}", step.side);
        writer.add(resize_forms[static_cast<std::size_t>(step.form)], text, std::string(), text);
        writer.side("multiple", step.multiple, absent.multiple);
        writer.side("width-at-most", step.width_at_most, absent.width_at_most);
        writer.choice("rounding", step.rounding, absent.rounding, roundings);
        return writer.choice("interpolation", step.interpolation, absent.interpolation, interpolations)
            .take();
    }
    StepParameters operator()(const LetterboxStep& step) const {
        const LetterboxStep absent;
        ParameterWriter writer;
        writer.add("size", step.size, absent.size, size_text(step.size));
        writer.numbers("fill", step.fill, absent.fill);
        writer.choice("place", step.place, absent.place, places);
        writer.add("enlarge", step.enlarge, absent.enlarge, step.enlarge ? "true" : "false");
        return writer.choice("interpolation", step.interpolation, absent.interpolation, interpolations)
            .take();
    }
    StepParameters operator()(const CropStep& step) const {
        const CropStep absent;
        ParameterWriter writer;
        writer.add("size", step.size, absent.size, size_text(step.size));
        return writer.choice("rounding", step.rounding, absent.rounding, roundings).take();
    }
    StepParameters operator()(const PadStep& step) const {
        const PadStep absent;
        ParameterWriter writer;
        if (step.size) writer.add("size", *step.size, PictureSize{}, size_text(*step.size));
        if (!step.size) writer.side("multiple", step.multiple, 0);
        writer.numbers("fill", step.fill, absent.fill);
        return writer.choice("place", step.place, absent.place, places).take();
    }
    StepParameters operator()(const ColorStep& step) const {
        return ParameterWriter().choice("order", step.order, ColorStep::Order{3}, colors).take();
    }
    StepParameters operator()(const ScaleStep& step) const {
        return ParameterWriter().add("multiply", true, false, numbers_text({{step.multiply}})).take();
    }
    StepParameters operator()(const NormalizeStep& step) const {
        const NormalizeStep absent;
        ParameterWriter writer;
        writer.numbers("mean", step.mean, absent.mean);
        return writer.numbers("std", step.std, absent.std).take();
    }
    StepParameters operator()(const LayoutStep& step) const {
        const LayoutStep absent;
        ParameterWriter writer;
        writer.choice("pictures", step.pictures, absent.pictures, axes);
        return writer.choice("data", step.data, absent.data, data_layouts).take();
    }
    StepParameters operator()(const DtypeStep& step) const {
        const DtypeStep absent;
        ParameterWriter writer;
        writer.choice("integers", step.integers, absent.integers, integers);
        return writer.add("clamp", step.clamp, absent.clamp, step.clamp ? "true" : "false").take();
    }
};

using ParseStep = PictureStep (*)(StepReader& reader);

// In the order of the alternatives of PictureStep.
const std::array<ParseStep, std::variant_size_v<PictureStep>> parsers = {
    parse_resize, parse_letterbox, parse_crop,   parse_pad,  parse_color,
    parse_scale,  parse_normalize, parse_layout, parse_dtype};

}  // namespace

std::span<const StepInfo> preprocessing_steps() {
    static const std::array<StepInfo, std::variant_size_v<PictureStep>> all = {
        resize_info, letterbox_info, crop_info,   pad_info,  color_info,
        scale_info,  normalize_info, layout_info, dtype_info};
    return all;
}

std::optional<PictureStep> parse_step(const StepText& text, const StepFault& fault) {
    const auto steps = preprocessing_steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].name != text.name) continue;
        StepReader reader(text, steps[i], "step", fault);
        const PictureStep step = parsers[i](reader);
        return reader.ok() ? std::optional(step) : std::nullopt;
    }
    std::vector<std::string> names;
    for (const StepInfo& step : steps) names.push_back(step.name);
    const std::string hint = did_you_mean(text.name, names);
    fault("", fmt::format("no step '{}'{}", printable(text.name),
                          hint.empty() ? "; there are " + join(names, ", ") : hint));
    return std::nullopt;
}

PictureStep parse_step(const StepText& text, std::string_view what) {
    return *parse_step(
        text, [&](const std::string&, const std::string& fault_text) { fail("{}: {}", what, fault_text); });
}

std::string_view name_of(const PictureStep& step) {
    return preprocessing_steps()[step.index()].name;
}

StepParameters parameters_of(const PictureStep& step) {
    return std::visit(WriteParameters{}, step);
}

std::span<const std::string> interpolation_names() {
    return interpolations;
}

std::span<const std::string> color_names() {
    return colors;
}

std::string size_text(const PictureSize& size) {
    return fmt::format("{}x{}", size.width, size.height);
}

std::string numbers_text(std::span<const double> numbers) {
    const auto shown = [](double value) { return fmt::format("{}", value == 0 ? 0.0 : value); };  // -0 is 0
    if (std::all_of(numbers.begin(), numbers.end(), [&](double n) { return n == numbers.front(); })) {
        return shown(numbers.front());
    }
    std::vector<std::string> parts;
    for (const double number : numbers) parts.push_back(shown(number));
    return "[" + join(parts, ", ") + "]";
}

}  // namespace qcalib
