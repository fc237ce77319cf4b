#include "cli/pipeline_draft.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "dataset/input_names.h"
#include "dataset/picture_axes.h"
#include "engine/model_inputs.h"
#include "pipeline/node.h"
#include "pipeline/schema.h"
#include "target/assignment.h"
#include "target/target.h"

namespace qcalib {

namespace {

constexpr std::size_t line_width = 110;
constexpr std::int64_t usual_side = 640;
constexpr std::int64_t usual_rate = 16000;
constexpr std::int64_t most_channels = 4;

std::string yaml_scalar(const std::string& text) {
    PipelineNode node;
    node.kind = PipelineNode::Kind::scalar;
    node.scalar = text;
    return std::string(trim(to_yaml(node)));
}

// The text as comment lines, broken at blanks.
std::string comment(const std::string& text, const std::string& indent = "") {
    std::string result;
    std::string line;
    for (const std::string& word : split(text, ' ')) {
        if (!line.empty() && indent.size() + line.size() + word.size() + 3 > line_width) {
            result += indent + "# " + line + "\n";
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
    }
    return result + indent + "# " + line + "\n";
}

// What an input seems to be, by its type, shape and name.
struct Guess {
    enum class Kind { picture, state, rate, tokens, sound, other };
    Kind kind = Kind::other;
    std::string says;     // for the reader
    std::string carried;  // of a state: the output that is fed back
};

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

bool same_shape(const Value& output, const InputSpec& input) {
    if (!output.declared_shape || output.declared_shape->size() != input.shape.size()) return false;
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
        const std::optional<std::int64_t> size = (*output.declared_shape)[axis].size;
        if (size && input.shape[axis] && *size != *input.shape[axis]) return false;
    }
    return true;
}

// The output that looks like the next state of an input: of its shape, its name beginning or ending alike.
std::string next_state(const Graph& graph, const InputSpec& input) {
    if (!is_floating(input.type) || input.shape.size() < 2) return "";
    const std::string name = lower(input.name);
    for (const ValueId id : graph.outputs) {
        const Value& output = graph.values[id];
        const std::string other = lower(output.name);
        const bool alike =
            other.starts_with(name) || name.starts_with(other) ||
            (other.size() == name.size() + 3 && other.ends_with("out") && name.ends_with("in"));
        if (alike && same_shape(output, input)) return output.name;
    }
    return "";
}

bool is_picture_shape(const InputSpec& input) {
    if (input.shape.size() != 4 && input.shape.size() != 3) return false;
    const std::optional<PictureAxes> axes = picture_axes(input);
    if (!axes) return false;
    const auto side = [&](std::size_t axis) { return input.shape[axis].value_or(usual_side); };
    return input.shape[axes->channel].value_or(3) <= most_channels && side(axes->height) >= 8 &&
           side(axes->width) >= 8;
}

bool names_a_rate(const std::string& name) {
    constexpr std::array rates = {"sr", "rate", "sample_rate", "sampling_rate", "samplerate"};
    return std::find(rates.begin(), rates.end(), lower(name)) != rates.end();
}

Guess guess(const Graph& graph, const InputSpec& input) {
    using enum Guess::Kind;
    const std::string next = next_state(graph, input);
    const bool floats = is_floating(input.type);
    if (!next.empty())
        return {state, "state that output '" + printable(next) + "' leaves for the next step", next};
    if (names_a_rate(input.name) && input.shape.size() <= 1) return {rate, "a sample rate", ""};
    if (is_picture_shape(input) && (floats || input.type == DataType::uint8))
        return {picture, "pictures", ""};
    if (!floats && input.shape.size() == 2)
        return {tokens, "tokens or a mask: whole numbers, from .npy or .npz", ""};
    if (floats && input.shape.size() <= 2) {
        return {sound, "a signal or features: raw float32 or .npy files", ""};
    }
    return {other, "numbers: raw files or .npy", ""};
}

struct GuessedInput {
    InputSpec spec;
    Guess guess;
};

std::string data_section(const std::vector<GuessedInput>& inputs, const std::string& list) {
    std::string text = "data:\n  list: " + yaml_scalar(list) + "\n";
    text += comment("or one of: folder, glob, npz, hdf5", "  ");
    const bool open = std::any_of(inputs.begin(), inputs.end(), [](const GuessedInput& input) {
        return std::count(input.spec.shape.begin(), input.spec.shape.end(), std::nullopt) > 0;
    });
    if (open) {
        text +=
            comment("Dimensions the model leaves open are those of the samples, or are given here:", "  ");
        text += "  # shapes:\n";
        for (const auto& [spec, guess] : inputs) {
            const auto axes =
                guess.kind == Guess::Kind::picture ? picture_axes(spec) : std::optional<PictureAxes>();
            std::vector<std::string> sizes;
            for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
                const bool side = axes && (axis == axes->height || axis == axes->width);
                const std::int64_t usual = side ? usual_side : axes && axis == axes->channel ? 3 : 1;
                sizes.push_back(std::to_string(spec.shape[axis].value_or(usual)));
            }
            if (spec.rank_known && std::count(spec.shape.begin(), spec.shape.end(), std::nullopt) > 0) {
                text += fmt::format("  #   {}: [{}]\n", yaml_scalar(spec.name), join(sizes, ", "));
            }
        }
    }
    std::string values;
    std::string carries;
    for (const auto& [spec, guess] : inputs) {
        if (guess.kind == Guess::Kind::rate) {
            values += fmt::format("    {}: {}\n", yaml_scalar(spec.name), usual_rate);
        }
        if (guess.kind == Guess::Kind::state) {
            carries += fmt::format("    {}: {}\n", yaml_scalar(guess.carried), yaml_scalar(spec.name));
        }
    }
    text += values.empty() ? "  # values:               # of inputs that the list does not give\n  #   x: 1\n"
                           : "  values:                 # of inputs that the list does not give\n" + values;
    text += carries.empty() ? "  # carry:                # output: input that it is fed back to\n"
                            : "  carry:                  # output: input that it is fed back to\n" + carries;
    return text;
}

std::string preprocessing(const std::vector<GuessedInput>& inputs) {
    const auto found = std::find_if(inputs.begin(), inputs.end(), [](const GuessedInput& input) {
        return input.guess.kind == Guess::Kind::picture;
    });
    std::vector<std::string> presets;
    for (const StepInfo& preset : preprocessing_presets()) presets.push_back(preset.name);
    std::string text = comment(
        "From a picture to the input. It must be what the model was trained with: see 'qcalib list "
        "preprocessing' for all steps and the presets " +
            join(presets, ", ") + ".",
        "  ");
    if (found == inputs.end()) return text + "  # preprocessing: torchvision\n";
    const PictureAxes axes = *picture_axes(found->spec);
    const auto& height = found->spec.shape[axes.height];
    const auto& width = found->spec.shape[axes.width];
    const std::string size =
        height && width ? fmt::format("{}x{}", *width, *height) : fmt::format("{0}x{0}", usual_side);
    const bool grey = found->spec.shape[axes.channel].value_or(3) == 1;
    text += "  preprocessing:\n";
    text += fmt::format("    - resize: {{size: {}}}          # {}\n", size,
                        height && width ? "the model's size" : "the model leaves it open");
    text += fmt::format("    - color: {{order: {}}}\n", grey ? "grey" : "rgb");
    text += "    - scale: {multiply: 1/255}\n";
    if (!grey) text += "    # - normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}\n";
    return text;
}

std::string commented_section(const PipelineSection& section) {
    std::string text = section.name + ":\n";
    for (const PipelineKey& key : section.keys) {
        const std::string value = key.example.empty() ? key.otherwise : key.example;
        text += comment(fmt::format("{} Default: {}.", key.description, key.otherwise), "  ");
        text += fmt::format("  # {}: {}\n", key.name, value);
    }
    return text;
}

// Whether the target's rules are for models of the graph's kind.
bool takes(const std::string& target, const Graph& graph) {
    try {
        check_form(graph, load_target(target));
        return true;
    } catch (const Error&) {
        return false;
    }
}

// The first choice is the model's usual one; the others are comments.
std::string targets_section(const Graph& graph) {
    std::string text = comment(pipeline_section("pipeline").find("targets")->description);
    text += "targets:\n";
    bool first = true;
    for (const std::string& name : builtin_target_names()) {
        if (!takes(name, graph)) continue;
        text += fmt::format("  {}- {}\n", first ? "" : "# ", name);
        first = false;
    }
    return text + "  # - {name: snpe, config: my-snpe.yaml}    # rules of your own\n";
}

}  // namespace

std::string draft_pipeline(const Graph& graph, const std::string& model, const std::string& list) {
    std::vector<GuessedInput> inputs;
    for (InputSpec& spec : input_specs(graph)) {
        const Guess guessed = guess(graph, spec);
        inputs.push_back({std::move(spec), guessed});
    }
    std::string text = comment(
                           "A pipeline for 'qcalib run'; 'qcalib run FILE --dry-run' checks it, 'qcalib list "
                           "pipeline' documents "
                           "its keys.") +
                       "\nmodel: " + yaml_scalar(model) + "\n\n" + comment("The model's inputs:");
    for (const auto& [spec, guess] : inputs) {
        text +=
            comment(fmt::format("  {} {}: looks like {}", describe(spec), name_of(spec.type), guess.says));
    }
    if (inputs.size() > 1) {
        text += comment(
            "A line of the list names a file for each input without a value here: name:=file name:=file");
    }
    text += data_section(inputs, list) + preprocessing(inputs);
    for (const char* name : {"selection", "calibration", "encodings"}) {
        text +=
            "\n" + comment(pipeline_section(name).description) + commented_section(pipeline_section(name));
    }
    text += "\n" + targets_section(graph);
    text += "\n" + comment(pipeline_section("report").description) +
            commented_section(pipeline_section("report"));
    const PipelineKey& output = *pipeline_section("pipeline").find("output");
    return text + "\n" + comment(output.description) + "output: " + output.otherwise + "\n";
}

}  // namespace qcalib
