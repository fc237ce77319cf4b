#include "cli/data_options.h"

#include "base/error.h"
#include "base/text.h"
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

const std::vector<std::string> colors = {"rgb", "bgr"};
const std::vector<std::string> layouts = {"model", "nhwc"};

}  // namespace

void DataOptions::add_to(CLI::App& app) {
    const std::string group = "Data";
    app.add_option("--data", list_, "List of samples: a file a line, or name:=file for each input")
        ->required()
        ->group(group);
    app.add_option("--shape", shapes_, "Shape of an input, as x=1,3,640,640")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option(
           "--input", values_,
           "Value of an input that the list does not give, as sr=16000: one number, or one an element")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option(
           "--carry", carries_,
           "OUTPUT=INPUT: feed an output back as an input. Each line is then a sequence: files longer "
           "than their input are cut into steps along their first axis; its first state is zero unless "
           "the line or --input gives it. Each step has a row, numbered sequence * 2^32 + step")
        ->group(group)
        ->allow_extra_args(false);
    app.add_option("--resize", resize_,
                   "WxH: resize pictures (bilinear, half-pixel centres, no antialiasing)")
        ->group(group);
    app.add_option("--crop", crop_, "WxH: cut the centre out of pictures, after the resize")->group(group);
    app.add_option("--color", color_, "Order of a picture's channels: rgb or bgr")
        ->group(group)
        ->capture_default_str();
    app.add_option("--multiply", multiply_, "Factor on pixels (default 1/255)")->group(group);
    app.add_option("--mean", mean_,
                   "Subtracted after the multiplication: one number, or one a channel (a,b,c)")
        ->group(group);
    app.add_option("--std", std_, "Divided by at last: one number, or one a channel (a,b,c)")->group(group);
    app.add_option("--data-layout", layout_, "Layout of raw and .npy data: model (as the model's) or nhwc")
        ->group(group)
        ->capture_default_str();
    app.add_option("--shuffle", shuffle_, "Shuffle the list with this seed, before --limit")->group(group);
    app.add_option("--limit", limit_, "Take this many samples or sequences at the most")->group(group);
    app.add_option("--shard", shard_,
                   "i/n: only every n-th sample or sequence, from the i-th (1-based); see qcalib merge")
        ->group(group);
}

std::vector<InputSpec> DataOptions::inputs(const Graph& graph) const {
    std::vector<InputSpec> specs = input_specs(graph);
    for (const std::string& shape : shapes_) apply_shape(specs, shape);
    for (const std::string& value : values_) apply_value(specs, value);
    return specs;
}

std::vector<Carry> DataOptions::carries(const Graph& graph, std::vector<InputSpec>& inputs,
                                        Remarks& remarks) const {
    return parse_carries(graph, carries_, inputs, remarks);
}

Preprocessing DataOptions::preprocessing() const {
    Preprocessing preprocessing;
    if (!resize_.empty()) preprocessing.resize = parse_picture_size(resize_, "--resize");
    if (!crop_.empty()) preprocessing.crop = parse_picture_size(crop_, "--crop");
    preprocessing.color = parse_choice(color_, "--color", colors) == 0 ? ColorOrder::rgb : ColorOrder::bgr;
    if (multiply_) preprocessing.multiply = *multiply_;
    preprocessing.mean = parse_reals(mean_, "--mean");
    preprocessing.std = parse_reals(std_, "--std");
    preprocessing.layout =
        parse_choice(layout_, "--data-layout", layouts) == 0 ? DataLayout::as_model : DataLayout::nhwc;
    return preprocessing;
}

Selection DataOptions::selection() const {
    Selection selection;
    selection.shuffle_seed = shuffle_;
    selection.limit = limit_;
    if (!shard_.empty()) parse_shard(shard_, selection);
    return selection;
}

SelectedSamples DataOptions::samples(const std::vector<InputSpec>& inputs, std::size_t& group,
                                     Remarks& remarks) const {
    std::vector<ListEntry> entries = read_sample_list(list_, inputs, remarks);
    Selection chosen = selection();
    chosen.group = group = carries_.empty() ? group_size(entries, inputs) : 1;
    SelectedSamples samples = select_samples(std::move(entries), chosen);
    if (samples.selected == 0) {
        fail("{}: expected at least {} lines, the model's batch, found {}", printable(list_), group,
             samples.dropped);
    }
    if (samples.dropped > 0) {
        remarks.add(fmt::format("{}: the last {} lines do not fill a batch of {} and are left out",
                                printable(list_), samples.dropped, group));
    }
    return samples;
}

std::string DataOptions::canonical_text(std::size_t group) const {
    std::string text = canonical(preprocessing());
    for (const std::string& shape : shapes_) text += "\nshape=" + shape;
    for (const std::string& value : values_) text += "\ninput=" + value;
    for (const std::string& carry : carries_) text += "\ncarry=" + carry;
    if (shuffle_) text += fmt::format("\nshuffle={}", *shuffle_);
    if (limit_) text += fmt::format("\nlimit={}", *limit_);
    if (group > 1) text += fmt::format("\nbatch={}", group);
    return text;
}

}  // namespace qcalib
