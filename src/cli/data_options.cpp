#include "cli/data_options.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "dataset/sample_source.h"
#include "engine/model_inputs.h"

namespace qcalib {

namespace {

std::vector<double> parse_reals(const std::string& text, std::string_view what) {
    std::vector<double> values;
    if (text.empty()) return values;
    for (const std::string& part : split(text, ',')) values.push_back(parse_real(part, what));
    return values;
}

// One of `choices`, else an Error that names the option and offers the nearest.
std::size_t parse_choice(const std::string& text, std::string_view option,
                         std::span<const std::string> choices) {
    for (std::size_t i = 0; i < choices.size(); ++i) {
        if (choices[i] == text) return i;
    }
    fail("{}: expected {}, found '{}'{}", option, join(choices, " or "), printable(text),
         did_you_mean(text, choices));
}

bool is_preset(const std::string& name) {
    const std::span<const StepInfo> presets = preprocessing_presets();
    return std::any_of(presets.begin(), presets.end(), [&](const StepInfo& one) { return one.name == name; });
}

const std::vector<std::string> colors = {"rgb", "bgr"};
const std::vector<std::string> layouts = {"model", "nhwc", "nchw"};

}  // namespace

void DataOptions::add_to(CLI::App& app) {
    const std::string group = "Data";
    app.add_option(
           "--data", settings_.list,
           "The samples: a list (a file a line, or name:=file for each input), a folder, a pattern with * "
           "and ?, or a .npz, .npy or HDF5 file")
        ->required()
        ->group(group);
    app.add_option("--shape", settings_.shapes, "Shape of an input, as x=1,3,640,640")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option(
           "--input", settings_.values,
           "Value of an input that the list does not give, as sr=16000: one number, or one an element")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option(
           "--carry", settings_.carries,
           "OUTPUT=INPUT: feed an output back as an input. Each line is then a sequence: files longer "
           "than their input are cut into steps along their first axis; its first state is zero unless "
           "the line or --input gives it. Each step has a row, numbered sequence * 2^32 + step")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option("--resize", settings_.resize,
                   "WxH: resize pictures (bilinear, half-pixel centres, no antialiasing)")
        ->group(group);
    app.add_option("--crop", settings_.crop, "WxH: cut the centre out of pictures, after the resize")
        ->group(group);
    app.add_option("--color", settings_.color, "Order of a picture's channels: rgb or bgr")
        ->group(group)
        ->capture_default_str();
    app.add_option("--multiply", settings_.multiply, "Factor on pixels (default 1/255)")->group(group);
    app.add_option("--mean", settings_.mean,
                   "Subtracted after the multiplication: one number, or one a channel (a,b,c)")
        ->group(group);
    app.add_option("--std", settings_.std, "Divided by at last: one number, or one a channel (a,b,c)")
        ->group(group);
    app.add_option(
           "--preprocess", settings_.steps,
           "A step from a picture to the input, as 'crop: {size: 224x224}', or a preset, as torchvision, "
           "in place of the flags above and --data-layout; given again, the steps in their order "
           "(qcalib list preprocessing)")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option("--data-layout", settings_.layout,
                   "Layout of raw data and arrays: model (as the model's), nhwc or nchw; arrays whose shape "
                   "fits in the other layout alone are permuted without it")
        ->group(group)
        ->capture_default_str();
    app.add_option("--shuffle", settings_.shuffle, "Shuffle the list with this seed, before --limit")
        ->group(group);
    app.add_option("--limit", settings_.limit, "Take this many samples or sequences at the most")
        ->group(group);
    app.add_option("--shard", settings_.shard,
                   "i/n: only every n-th sample or sequence, from the i-th (1-based); see qcalib merge")
        ->group(group);
}

bool DataOptions::inputs(const Graph& graph, std::vector<InputSpec>& inputs, Checks& checks) const {
    inputs = input_specs(graph);
    bool good = true;
    for (const std::string& shape : settings_.shapes) {
        good = checks.passed([&] { apply_shape(inputs, shape); }) && good;
    }
    for (const std::string& value : settings_.values) {
        good = checks.passed([&] { apply_value(inputs, value); }) && good;
    }
    return good;
}

std::vector<Carry> DataOptions::carries(const Graph& graph, std::vector<InputSpec>& inputs,
                                        Remarks& remarks) const {
    return parse_carries(graph, settings_.carries, inputs, remarks);
}

Preprocessing DataOptions::preprocessing() const {
    if (settings_.preprocessing) return *settings_.preprocessing;
    PictureFlags flags;
    if (!settings_.resize.empty()) flags.resize = parse_picture_size(settings_.resize, "--resize");
    if (!settings_.crop.empty()) flags.crop = parse_picture_size(settings_.crop, "--crop");
    flags.color = parse_choice(settings_.color, "--color", colors) == 0 ? ColorOrder::rgb : ColorOrder::bgr;
    if (settings_.multiply) flags.multiply = *settings_.multiply;
    flags.mean = parse_reals(settings_.mean, "--mean");
    flags.std = parse_reals(settings_.std, "--std");
    flags.layout = static_cast<DataLayout>(parse_choice(settings_.layout, "--data-layout", layouts));
    if (settings_.steps.empty()) return Preprocessing(flags);
    check_no_picture_flags();
    std::vector<PictureStep> steps;
    for (const std::string& text : settings_.steps) {
        const StepText step = parse_step_text(text, "--preprocess");
        if (is_preset(step.name)) {
            const std::vector<PictureStep> preset = parse_preset(step, "--preprocess");
            steps.insert(steps.end(), preset.begin(), preset.end());
        } else {
            steps.push_back(parse_step(step, "--preprocess"));
        }
    }
    return Preprocessing(std::move(steps));
}

// Steps say all that the flags for the default order would say.
void DataOptions::check_no_picture_flags() const {
    const DataSettings none;
    const auto refuse = [](std::string_view flag) {
        fail("{}: expected either this flag or --preprocess, found both: say it as a step", flag);
    };
    if (!settings_.resize.empty()) refuse("--resize");
    if (!settings_.crop.empty()) refuse("--crop");
    if (settings_.color != none.color) refuse("--color");
    if (settings_.multiply) refuse("--multiply");
    if (!settings_.mean.empty()) refuse("--mean");
    if (!settings_.std.empty()) refuse("--std");
    if (settings_.layout != none.layout) refuse("--data-layout");
}

Selection DataOptions::selection() const {
    Selection selection;
    selection.shuffle_seed = settings_.shuffle;
    selection.limit = settings_.limit;
    if (!settings_.shard.empty()) parse_shard(settings_.shard, selection);
    return selection;
}

SelectedSamples DataOptions::samples(const std::vector<InputSpec>& inputs, std::size_t& group,
                                     Remarks& remarks) const {
    std::vector<ListEntry> entries = read_sample_source(settings_.list, inputs, remarks);
    if (!entries.empty()) remark_on_moved(entries.front(), inputs, preprocessing(), remarks);
    Selection chosen = selection();
    chosen.group = group = settings_.carries.empty() ? group_size(entries, inputs) : 1;
    SelectedSamples samples = select_samples(std::move(entries), chosen);
    if (samples.selected == 0) {
        fail("{}: expected at least {} lines, the model's batch, found {}", printable(settings_.list), group,
             samples.dropped);
    }
    if (samples.dropped > 0) {
        remarks.add(fmt::format("{}: the last {} lines do not fill a batch of {} and are left out",
                                printable(settings_.list), samples.dropped, group));
    }
    return samples;
}

std::string DataOptions::canonical_text(std::size_t group) const {
    std::string text = canonical(preprocessing());
    for (const std::string& shape : settings_.shapes) text += "\nshape=" + shape;
    for (const std::string& value : settings_.values) text += "\ninput=" + value;
    for (const std::string& carry : settings_.carries) text += "\ncarry=" + carry;
    if (settings_.shuffle) text += fmt::format("\nshuffle={}", *settings_.shuffle);
    if (settings_.limit) text += fmt::format("\nlimit={}", *settings_.limit);
    if (group > 1) text += fmt::format("\nbatch={}", group);
    return text;
}

}  // namespace qcalib
