#include "runtime/kernels/recurrent_form.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

using Function = RecurrentFunction;

// A function of the operators' list; alpha and beta are what it has where the node gives none, nothing where
// it does not take the number, NaN where the node must give it.
struct FunctionEntry {
    const char* name;
    Function function;
    std::optional<float> alpha;
    std::optional<float> beta;
};

constexpr float required = std::numeric_limits<float>::quiet_NaN();

constexpr std::array functions{
    FunctionEntry{"Relu", Function::relu, {}, {}},
    FunctionEntry{"Tanh", Function::tanh, {}, {}},
    FunctionEntry{"Sigmoid", Function::sigmoid, {}, {}},
    FunctionEntry{"Affine", Function::affine, 1.0F, 0.0F},
    FunctionEntry{"LeakyRelu", Function::leaky_relu, 0.01F, {}},
    FunctionEntry{"ThresholdedRelu", Function::thresholded_relu, 1.0F, {}},
    FunctionEntry{"ScaledTanh", Function::scaled_tanh, required, required},
    FunctionEntry{"HardSigmoid", Function::hard_sigmoid, 0.2F, 0.5F},
    FunctionEntry{"Elu", Function::elu, 1.0F, {}},
    FunctionEntry{"Softsign", Function::softsign, {}, {}},
    FunctionEntry{"Softplus", Function::softplus, {}, {}},
};

std::string lower(std::string text) {
    for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return text;
}

// Writers disagree about capitals, so they do not count.
const FunctionEntry& function_named(const NodeContext& context, const std::string& name) {
    std::vector<std::string> known;
    for (const FunctionEntry& entry : functions) {
        if (lower(entry.name) == lower(name)) return entry;
        known.emplace_back(entry.name);
    }
    context.refuse(fmt::format("attribute 'activations' names a function that is not there: '{}'{}",
                               printable(name), did_you_mean(name, known)));
}

// activation_alpha or activation_beta, handed out in the order of the functions that take a number.
class Numbers {
  public:
    Numbers(const NodeContext& context, const char* attribute)
        : context_(context),
          attribute_(attribute),
          values_(context.node.attribute<std::vector<float>>(attribute, {})) {}

    float next(const FunctionEntry& entry, std::optional<float> otherwise) {
        if (!otherwise) return 0;
        if (used_ < values_.size()) return values_[used_++];
        if (*otherwise != *otherwise) {
            context_.refuse(
                fmt::format("activation {} needs a number in attribute '{}'", entry.name, attribute_));
        }
        return *otherwise;
    }

    void finish() const {
        if (used_ == values_.size()) return;
        context_.refuse(fmt::format("attribute '{}' has {} numbers, but the activations take {}", attribute_,
                                    values_.size(), used_));
    }

  private:
    const NodeContext& context_;
    const char* attribute_;
    std::vector<float> values_;
    std::size_t used_ = 0;
};

void read_activations(const NodeContext& context, RecurrentForm& form) {
    std::vector<std::string> one{"Tanh"};
    if (form.cell == RecurrentCell::gru) one = {"Sigmoid", "Tanh"};
    if (form.cell == RecurrentCell::lstm) one = {"Sigmoid", "Tanh", "Tanh"};
    const std::size_t each = one.size();
    const std::size_t count = each * static_cast<std::size_t>(form.directions);
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < form.directions; ++i) names.insert(names.end(), one.begin(), one.end());
    names = context.node.attribute("activations", names);
    if (names.size() != count) {
        context.refuse(
            fmt::format("attribute 'activations' should name {} functions, {} for each direction, "
                        "found {}",
                        count, each, names.size()));
    }
    Numbers alphas(context, "activation_alpha");
    Numbers betas(context, "activation_beta");
    for (std::size_t i = 0; i < count; ++i) {
        const FunctionEntry& entry = function_named(context, names[i]);
        const float alpha = alphas.next(entry, entry.alpha);
        form.activations.at(i / each).at(i % each) = {entry.function, alpha, betas.next(entry, entry.beta)};
    }
    alphas.finish();
    betas.finish();
}

void read_direction(const NodeContext& context, RecurrentForm& form) {
    const std::vector<std::string> known{"forward", "reverse", "bidirectional"};
    const std::string direction = context.node.attribute<std::string>("direction", known[0]);
    if (std::find(known.begin(), known.end(), direction) == known.end()) {
        context.refuse(fmt::format("attribute 'direction' should be {}, found '{}'{}", join(known, " or "),
                                   printable(direction), did_you_mean(direction, known)));
    }
    form.reversed = direction == known[1];
    form.directions = direction == known[2] ? 2 : 1;
}

void read_attributes(const NodeContext& context, RecurrentForm& form) {
    read_direction(context, form);
    read_activations(context, form);
    const auto layout = context.node.attribute<std::int64_t>("layout", 0);
    if (layout != 0 && layout != 1) {
        context.refuse(fmt::format("attribute 'layout' should be 0 or 1, found {}", layout));
    }
    form.batch_first = layout == 1;
    form.clip = context.node.attribute("clip", form.clip);
    if (!(form.clip > 0)) {
        context.refuse(fmt::format("attribute 'clip' should be above 0, found {}", form.clip));
    }
    form.couples_gates = context.node.attribute<std::int64_t>("input_forget", 0) != 0;
    form.linear_before_reset = context.node.attribute<std::int64_t>("linear_before_reset", 0) != 0;
}

// A float input must have just this shape and the type of X.
void require_input(const NodeContext& context, const RecurrentForm& form, std::size_t input, const char* name,
                   const Shape& shape) {
    if (!context.has_input(input)) return;
    const TensorDescriptor& found = context.input(input);
    if (found.shape == shape && found.type == form.type) return;
    context.refuse(fmt::format("expected {} {} as input {}, found {} {}", name_of(form.type),
                               to_string(shape), name, name_of(found.type), to_string(found.shape)));
}

void read_sizes(const NodeContext& context, RecurrentForm& form) {
    for (const std::size_t input : {RecurrentInput::x, RecurrentInput::w, RecurrentInput::r}) {
        if (!context.has_input(input)) context.refuse("inputs X, W and R should be there");
        if (context.input(input).rank() == 3) continue;
        context.refuse(fmt::format("inputs X, W and R should have 3 dimensions, found shape {} as input {}",
                                   to_string(context.input(input).shape), input));
    }
    const Shape& x = context.input(RecurrentInput::x).shape;
    form.type = context.input(RecurrentInput::x).type;
    if (form.type != DataType::float32 && form.type != DataType::float64) {
        context.refuse(fmt::format("input X should be float32, found {}", name_of(form.type)));
    }
    form.steps = x[form.batch_first ? 1 : 0];
    form.batch = x[form.batch_first ? 0 : 1];
    form.inputs = x[2];
    form.hidden = context.input(RecurrentInput::r).shape[2];
    const std::int64_t declared = context.node.attribute("hidden_size", form.hidden);
    if (declared != form.hidden) {
        context.refuse(fmt::format("attribute 'hidden_size' is {}, but input R has shape {}", declared,
                                   to_string(context.input(RecurrentInput::r).shape)));
    }
}

void check_inputs(const NodeContext& context, const RecurrentForm& form) {
    const std::int64_t rows = form.gates() * form.hidden;
    require_input(context, form, RecurrentInput::w, "W", {form.directions, rows, form.inputs});
    require_input(context, form, RecurrentInput::r, "R", {form.directions, rows, form.hidden});
    require_input(context, form, RecurrentInput::bias, "B", {form.directions, 2 * rows});
    Shape state{form.directions, form.batch, form.hidden};
    if (form.batch_first) std::swap(state[0], state[1]);
    require_input(context, form, RecurrentInput::hidden, "initial_h", state);
    if (form.cell == RecurrentCell::lstm) {
        require_input(context, form, RecurrentInput::cell, "initial_c", state);
        require_input(context, form, RecurrentInput::peepholes, "P", {form.directions, 3 * form.hidden});
    }
    if (!context.has_input(RecurrentInput::lengths)) return;
    const TensorDescriptor& lengths = context.input(RecurrentInput::lengths);
    if (lengths.type != DataType::int32 || lengths.shape != Shape{form.batch}) {
        context.refuse(fmt::format("expected int32 [{}] as input sequence_lens, found {} {}", form.batch,
                                   name_of(lengths.type), to_string(lengths.shape)));
    }
}

}  // namespace

std::vector<TensorDescriptor> RecurrentForm::outputs(std::size_t count) const {
    const Shape all =
        batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
    const Shape last = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
    std::vector<TensorDescriptor> descriptors;
    for (std::size_t i = 0; i < count; ++i) {
        descriptors.push_back({type, i == 0 ? all : last, MemoryOrder::row_major});
    }
    return descriptors;
}

RecurrentForm read_recurrent_form(const NodeContext& context, RecurrentCell cell) {
    const bool lstm = cell == RecurrentCell::lstm;
    const std::size_t most_inputs = lstm ? 8 : 6;
    const std::size_t most_outputs = lstm ? 3 : 2;
    if (context.input_count() > most_inputs || context.node.outputs.size() > most_outputs) {
        context.refuse(fmt::format("expected at most {} inputs and {} outputs, found {} and {}", most_inputs,
                                   most_outputs, context.input_count(), context.node.outputs.size()));
    }
    RecurrentForm form;
    form.cell = cell;
    read_attributes(context, form);
    read_sizes(context, form);
    check_inputs(context, form);
    return form;
}

std::int64_t recurrent_length(const RecurrentForm& form, std::span<const TensorView> inputs,
                              std::int64_t sequence) {
    if (inputs.size() <= RecurrentInput::lengths || !inputs[RecurrentInput::lengths].present())
        return form.steps;
    const std::int32_t length =
        inputs[RecurrentInput::lengths].as<std::int32_t>()[static_cast<std::size_t>(sequence)];
    if (length < 0 || length > form.steps) {
        fail("sequence_lens should be from 0 to the {} steps of X, found {} for sequence {}", form.steps,
             length, sequence);
    }
    return length;
}

}  // namespace qcalib
