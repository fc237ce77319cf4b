#include "dataset/preprocessing.h"

#include <algorithm>

#include "base/text.h"
#include "dataset/step_reader.h"

namespace qcalib {

namespace {

bool all_equal_to(const std::vector<double>& values, double wanted) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return value == wanted; });
}

std::string factor_text(double factor) {
    return factor == 1.0 / 255 ? "1/255" : factor == 1 / 127.5 ? "1/127.5" : fmt::format("{}", factor);
}

std::string_view about(Interpolation interpolation) {
    switch (interpolation) {
        case Interpolation::nearest:
            return "nearest, from the top left";
        case Interpolation::area:
            return "area, the mean of what a pixel covers";
        case Interpolation::bilinear:
            return "bilinear, half-pixel centres, no antialiasing";
        case Interpolation::bicubic:
            return "bicubic with a = -0.75, half-pixel centres, no antialiasing";
        case Interpolation::lanczos:
            return "Lanczos of 8 taps, half-pixel centres, no antialiasing";
        case Interpolation::pillow_nearest:
            return "Pillow's nearest, half-pixel centres";
        case Interpolation::pillow_box:
            return "Pillow's box";
        case Interpolation::pillow_bilinear:
            return "Pillow's bilinear, antialiased";
        case Interpolation::pillow_hamming:
            return "Pillow's Hamming, antialiased";
        case Interpolation::pillow_bicubic:
            return "Pillow's bicubic with a = -0.5, antialiased";
        case Interpolation::pillow_lanczos:
            return "Pillow's Lanczos of 6 taps, antialiased";
    }
    return "";
}

std::string_view about(SideRounding rounding) {
    switch (rounding) {
        case SideRounding::down:
            return "down";
        case SideRounding::nearest:
            return "to the nearest";
        case SideRounding::up:
            return "up";
    }
    return "";
}

std::string_view about(Place place) {
    return place == Place::corner ? "top left" : "in the centre";
}

std::string about_side(const ResizeStep& step) {
    switch (step.form) {
        case ResizeStep::Form::size:
            return "to " + size_text(step.size);
        case ResizeStep::Form::shorter:
            return fmt::format("the shorter side to {}", step.side);
        case ResizeStep::Form::longer:
            return fmt::format("the longer side to {}", step.side);
        case ResizeStep::Form::width:
            return fmt::format("the width to {}", step.side);
        case ResizeStep::Form::height:
            return fmt::format("the height to {}", step.side);
        case ResizeStep::Form::longer_at_most:
            return fmt::format("the longer side to {} at the most", step.side);
        case ResizeStep::Form::shorter_at_least:
            return fmt::format("the shorter side to {} at the least", step.side);
    }
    return "";
}

struct Describe {
    std::string operator()(const ResizeStep& step) const {
        std::string text = "resize " + about_side(step);
        if (step.form != ResizeStep::Form::size) {
            text += fmt::format(", the other one by the ratio, rounded {}", about(step.rounding));
        }
        if (step.width_at_most != 0) text += fmt::format(", {} wide at the most", step.width_at_most);
        if (step.multiple != 1) text += fmt::format(", both to the nearest multiple of {}", step.multiple);
        return fmt::format("{} ({})", text, about(step.interpolation));
    }
    std::string operator()(const LetterboxStep& step) const {
        return fmt::format("fit into {}, {}{}, filled with {} ({})", size_text(step.size), about(step.place),
                           step.enlarge ? "" : ", never enlarged", numbers_text(step.fill),
                           about(step.interpolation));
    }
    std::string operator()(const CropStep& step) const {
        return fmt::format("crop the centre {}{}", size_text(step.size),
                           step.rounding == SideRounding::nearest ? " (halves to even)" : "");
    }
    std::string operator()(const PadStep& step) const {
        const std::string size =
            step.size ? size_text(*step.size) : fmt::format("multiples of {}", step.multiple);
        return fmt::format("pad to {} with {}, the picture {}", size, numbers_text(step.fill),
                           about(step.place));
    }
    std::string operator()(const ColorStep& step) const {
        return color_names()[static_cast<std::size_t>(step.order)];
    }
    std::string operator()(const ScaleStep& step) const { return "times " + factor_text(step.multiply); }
    std::string operator()(const NormalizeStep& step) const {
        return fmt::format("minus {}, divided by {}", numbers_text(step.mean), numbers_text(step.std));
    }
    std::string operator()(const LayoutStep&) const { return ""; }
    std::string operator()(const DtypeStep&) const { return ""; }
};

bool changes_values(const PictureStep& step) {
    if (const auto* scale = std::get_if<ScaleStep>(&step)) return scale->multiply != 1;
    const auto* normalize = std::get_if<NormalizeStep>(&step);
    return normalize != nullptr && !(all_equal_to(normalize->mean, 0) && all_equal_to(normalize->std, 1));
}

// The steps that do something, those whose place does not matter at the end.
std::vector<PictureStep> effective_steps(const Preprocessing& preprocessing) {
    std::vector<PictureStep> steps;
    auto order = ColorStep::Order::rgb;
    for (const PictureStep& step : preprocessing.steps) {
        if (std::holds_alternative<LayoutStep>(step) || std::holds_alternative<DtypeStep>(step)) continue;
        const bool on_values =
            std::holds_alternative<ScaleStep>(step) || std::holds_alternative<NormalizeStep>(step);
        if (on_values && !changes_values(step)) continue;
        if (const auto* color = std::get_if<ColorStep>(&step)) {
            if (order == color->order || order == ColorStep::Order::grey) continue;
            order = color->order;
        }
        steps.push_back(step);
    }
    if (preprocessing.layout() != LayoutStep{}) steps.emplace_back(preprocessing.layout());
    if (preprocessing.dtype() != DtypeStep{}) steps.emplace_back(preprocessing.dtype());
    return steps;
}

template <typename T>
T last_of(const std::vector<PictureStep>& steps) {
    T result;
    for (const PictureStep& step : steps) {
        if (const auto* found = std::get_if<T>(&step)) result = *found;
    }
    return result;
}

}  // namespace

Preprocessing::Preprocessing(const PictureFlags& flags) {
    if (flags.resize) {
        ResizeStep step;
        step.size = *flags.resize;
        steps.emplace_back(step);
    }
    if (flags.crop) steps.emplace_back(CropStep{*flags.crop, SideRounding::down});
    steps.emplace_back(
        ColorStep{flags.color == ColorOrder::bgr ? ColorStep::Order::bgr : ColorStep::Order::rgb});
    steps.emplace_back(ScaleStep{flags.multiply});
    NormalizeStep normalize;
    if (!flags.mean.empty()) normalize.mean = flags.mean;
    if (!flags.std.empty()) normalize.std = flags.std;
    if (changes_values(normalize)) steps.emplace_back(std::move(normalize));
    if (flags.layout != DataLayout::as_model) {
        steps.emplace_back(LayoutStep{LayoutStep::Axes::as_model, flags.layout});
    }
}

bool Preprocessing::default_scaling() const {
    std::vector<PictureStep> on_values;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(on_values), changes_values);
    return on_values.size() == 1 && on_values.front() == PictureStep(ScaleStep{});
}

LayoutStep Preprocessing::layout() const {
    return last_of<LayoutStep>(steps);
}

DtypeStep Preprocessing::dtype() const {
    return last_of<DtypeStep>(steps);
}

std::string describe(const Preprocessing& preprocessing) {
    std::vector<std::string> parts{"decode"};
    for (const PictureStep& step : preprocessing.steps) {
        std::string text = std::visit(Describe{}, step);
        if (!text.empty()) parts.push_back(std::move(text));
    }
    std::string text = join(parts, ", ");
    const DtypeStep dtype = preprocessing.dtype();
    text += preprocessing.default_scaling()                   ? "; integer inputs: the pixels as they are"
            : dtype.integers == DtypeStep::Integers::truncate ? "; integer inputs: rounded towards 0"
                                                              : "; integer inputs: rounded";
    if (dtype.clamp) text += ", clamped to the type";
    const LayoutStep layout = preprocessing.layout();
    if (layout.pictures != LayoutStep::Axes::as_model) {
        text += fmt::format("; pictures fill inputs as {}",
                            layout.pictures == LayoutStep::Axes::nchw ? "NCHW" : "NHWC");
    }
    if (layout.data == DataLayout::nhwc) {
        text += "; arrays and raw data: NHWC, permuted to the model's NCHW";
    } else if (layout.data == DataLayout::nchw) {
        text += "; arrays and raw data: NCHW, permuted to the model's NHWC";
    }
    return text;
}

std::string canonical(const Preprocessing& preprocessing) {
    std::vector<std::string> texts;
    for (const PictureStep& step : effective_steps(preprocessing)) {
        std::vector<std::string> parameters;
        for (const auto& [name, value] : parameters_of(step)) parameters.push_back(name + ": " + value);
        texts.push_back(fmt::format("step={}: {{{}}}", name_of(step), join(parameters, ", ")));
    }
    return texts.empty() ? "step=none" : join(texts, "\n");
}

}  // namespace qcalib
