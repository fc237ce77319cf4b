#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/kernels/all.h"
#include "runtime/kernels/recurrent_cell.h"
#include "runtime/kernels/recurrent_reference.h"
#include "runtime/onednn.h"

namespace qcalib {

namespace {

constexpr std::int64_t oldest_opset = 7;

const float* floats_of(std::span<const TensorView> inputs, std::size_t input) {
    return input < inputs.size() && inputs[input].present() ? inputs[input].as<float>().data() : nullptr;
}

float* floats_of(std::span<const MutableTensorView> outputs, std::size_t output) {
    return output < outputs.size() && outputs[output].data != nullptr ? outputs[output].as<float>().data()
                                                                      : nullptr;
}

// A part of R that is multiplied at once: gates of one direction.
struct RecurrentPart {
    std::size_t first_row = 0;  // of R, its directions one after the other
    std::size_t columns = 0;    // of its transpose
    std::size_t offset = 0;     // floats before its panels
};

// GRU multiplies the state of its last gate apart from that of the others.
std::vector<RecurrentPart> parts_of(const RecurrentForm& form, std::size_t panel_columns) {
    const auto hidden = static_cast<std::size_t>(form.hidden);
    std::vector<std::size_t> columns{static_cast<std::size_t>(form.gates()) * hidden};
    if (form.cell == RecurrentCell::gru) columns = {2 * hidden, hidden};
    std::vector<RecurrentPart> parts;
    std::size_t row = 0;
    std::size_t offset = 0;
    for (std::int64_t direction = 0; direction < form.directions; ++direction) {
        for (const std::size_t count : columns) {
            parts.push_back({row, count, offset});
            row += count;
            offset += panel_floats(hidden, count, panel_columns);
        }
    }
    return parts;
}

// X W^T of all steps and directions in one product of oneDNN's; then, step by step, the state's product with
// R in panels and the gates of each sequence. Other types than float32, and what is empty, as the reference.
class Recurrent : public RecurrentReference {
  public:
    explicit Recurrent(RecurrentCell cell) : RecurrentReference(cell) {}

    Prepared prepare(const NodeContext& context) override;
    std::unique_ptr<KernelState> make_state() const override {
        return projection_ == nullptr ? nullptr : projection_->make_state();
    }
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override;

  private:
    // The scratch memory of a run. Rows are sequences.
    struct Buffers {
        float* projection = nullptr;  // [x_row, direction, gate, unit]
        float* bias = nullptr;        // [direction, gate, unit]
        float* gates = nullptr;       // [sequence, gate, unit]
        float* hidden = nullptr;      // [sequence, unit]
        float* cell = nullptr;        // [sequence, unit]
        float* reset = nullptr;       // [sequence, unit]
        float* panels = nullptr;      // R, where it is no constant
        std::size_t bytes = 0;
    };
    // What the steps of one direction work on.
    struct Direction {
        std::int64_t index = 0;
        const float* panels = nullptr;
        const float* peepholes = nullptr;
        const float* state_bias = nullptr;  // Rb of GRU's last gate
    };

    Buffers buffers(std::byte* scratch) const;
    void pack(const std::byte* r, float* panels) const;
    void project(std::span<const TensorView> inputs, const Buffers& buffers, Workspace& workspace) const;
    void add_biases(const float* bias, float* sums) const;
    void run_direction(const Direction& direction, std::span<const TensorView> inputs,
                       std::span<const MutableTensorView> outputs, const Buffers& buffers) const;
    void sum_gates(const Direction& direction, const FloatRows& start, const Buffers& buffers) const;
    void update(const Direction& direction, std::size_t sequence, const Buffers& buffers) const;
    PanelMatrix part(const Direction& direction, std::size_t index) const;

    std::size_t hidden() const { return static_cast<std::size_t>(form().hidden); }
    std::size_t batch() const { return static_cast<std::size_t>(form().batch); }
    std::size_t gate_columns() const { return static_cast<std::size_t>(form().gates()) * hidden(); }
    std::size_t projected_columns() const {
        return static_cast<std::size_t>(form().directions) * gate_columns();
    }

    std::unique_ptr<onednn::Primitive> projection_;
    RecurrentFunctions functions_;
    std::vector<RecurrentCellRows> cells_;  // one a direction
    std::vector<RecurrentPart> parts_;      // the same number for each direction
    std::size_t panel_count_ = 0;           // floats of all panels
    std::shared_ptr<const HugeBuffer> packed_;
};

Prepared Recurrent::prepare(const NodeContext& context) {
    Prepared prepared = RecurrentReference::prepare(context);
    projection_.reset();
    packed_.reset();
    const std::int64_t rows = form().steps * form().batch;
    if (form().type != DataType::float32 || rows == 0 || form().inputs == 0 || form().hidden == 0)
        return prepared;
    const auto columns = static_cast<std::int64_t>(projected_columns());
    onednn::MatMulShape shape;
    shape.first = {rows, form().inputs};
    shape.second = {columns, form().inputs};
    shape.output = {rows, columns};
    shape.second_transposed = true;
    shape.bias = context.has_input(RecurrentInput::bias);
    projection_ = onednn::make_matmul(shape, {context.inputs[RecurrentInput::w], context.weights});
    if (projection_ == nullptr) return prepared;
    if (projection_->has_packed_weights()) prepared.packed.push_back(RecurrentInput::w);

    functions_ = fast_recurrent();
    cells_.clear();
    for (std::int64_t i = 0; i < form().directions; ++i) cells_.emplace_back(form(), i, functions_);
    parts_ = parts_of(form(), functions_.panel_columns);
    panel_count_ =
        parts_.back().offset + panel_floats(hidden(), parts_.back().columns, functions_.panel_columns);
    const InputInfo& r = context.inputs[RecurrentInput::r];
    if (r.constant) {
        const std::size_t bytes = panel_count_ * sizeof(float);
        const auto fill = [&](std::byte* to) { pack(r.constant->data(), reinterpret_cast<float*>(to)); };
        if (r.weight) {
            const std::string layout = fmt::format("recurrent panels of {}, {} a direction",
                                                   functions_.panel_columns, parts_.size() / cells_.size());
            packed_ = context.weights.get(*r.constant, layout, bytes, fill);
        } else {
            auto own = std::make_shared<HugeBuffer>(bytes);
            fill(own->data());
            packed_ = std::move(own);
        }
        prepared.packed.push_back(RecurrentInput::r);
    }
    prepared.scratch_bytes = buffers(nullptr).bytes;
    return prepared;
}

// The library's own memory comes first.
Recurrent::Buffers Recurrent::buffers(std::byte* scratch) const {
    Buffers buffers;
    constexpr std::size_t alignment = 64;
    std::size_t used = 0;
    const auto take_bytes = [&](std::size_t bytes) {
        const std::size_t at = used;
        used += (bytes + alignment - 1) / alignment * alignment;
        return at;
    };
    const auto take = [&](std::size_t floats) {
        const std::size_t at = take_bytes(floats * sizeof(float));
        return scratch == nullptr ? nullptr : reinterpret_cast<float*>(scratch + at);
    };
    take_bytes(projection_->scratch_bytes());
    buffers.projection = take(static_cast<std::size_t>(form().steps) * batch() * projected_columns());
    buffers.bias = take(projected_columns());
    buffers.gates = take(batch() * gate_columns());
    buffers.hidden = take(batch() * hidden());
    buffers.cell = take(batch() * hidden());
    buffers.reset = take(batch() * hidden());
    buffers.panels = take(packed_ == nullptr ? panel_count_ : 0);
    buffers.bytes = used;
    return buffers;
}

void Recurrent::pack(const std::byte* r, float* panels) const {
    for (const RecurrentPart& part : parts_) {
        pack_panels(r + part.first_row * hidden() * sizeof(float), hidden(), part.columns,
                    functions_.panel_columns, panels + part.offset);
    }
}

void Recurrent::run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
                    Workspace& workspace) const {
    if (projection_ == nullptr) return RecurrentReference::run(inputs, outputs, workspace);
    const Buffers all = buffers(workspace.scratch.data());
    project(inputs, all, workspace);
    if (packed_ == nullptr) pack(inputs[RecurrentInput::r].data, all.panels);
    const float* bias = floats_of(inputs, RecurrentInput::bias);
    const float* peepholes = floats_of(inputs, RecurrentInput::peepholes);
    for (std::int64_t i = 0; i < form().directions; ++i) {
        const auto index = static_cast<std::size_t>(i);
        Direction direction;
        direction.index = i;
        direction.panels = packed_ == nullptr ? all.panels : reinterpret_cast<const float*>(packed_->data());
        if (peepholes != nullptr) direction.peepholes = peepholes + index * 3 * hidden();
        if (bias != nullptr) direction.state_bias = bias + (index + 1) * 2 * gate_columns() - hidden();
        run_direction(direction, inputs, outputs, all);
    }
}

void Recurrent::project(std::span<const TensorView> inputs, const Buffers& buffers,
                        Workspace& workspace) const {
    const float* bias = floats_of(inputs, RecurrentInput::bias);
    if (bias != nullptr) add_biases(bias, buffers.bias);
    onednn::Operands operands;
    operands.source = inputs[RecurrentInput::x].data;
    operands.weights = inputs[RecurrentInput::w].data;
    operands.bias = bias == nullptr ? nullptr : reinterpret_cast<const std::byte*>(buffers.bias);
    operands.target = reinterpret_cast<std::byte*>(buffers.projection);
    projection_->execute(operands, workspace);
}

// Wb + Rb; but Wb alone for a gate of GRU whose state is multiplied by the reset gate with its Rb.
void Recurrent::add_biases(const float* bias, float* sums) const {
    const std::size_t count = gate_columns();
    const std::size_t both =
        form().cell == RecurrentCell::gru && form().linear_before_reset ? count - hidden() : count;
    for (std::int64_t direction = 0; direction < form().directions; ++direction) {
        for (std::size_t j = 0; j < count; ++j) sums[j] = j < both ? bias[j] + bias[count + j] : bias[j];
        bias += 2 * count;
        sums += count;
    }
}

void Recurrent::run_direction(const Direction& direction, std::span<const TensorView> inputs,
                              std::span<const MutableTensorView> outputs, const Buffers& buffers) const {
    const auto offset = [&](std::int64_t sequence) { return form().state_offset(direction.index, sequence); };
    const auto start = [&](const float* from, float* to) {
        for (std::int64_t i = 0; i < form().batch; ++i, to += hidden()) {
            if (from == nullptr)
                std::fill_n(to, hidden(), 0.0F);
            else
                std::copy_n(from + offset(i), hidden(), to);
        }
    };
    const auto finish = [&](const float* from, float* to) {
        if (to == nullptr) return;
        for (std::int64_t i = 0; i < form().batch; ++i, from += hidden()) {
            std::copy_n(from, hidden(), to + offset(i));
        }
    };
    start(floats_of(inputs, RecurrentInput::hidden), buffers.hidden);
    start(floats_of(inputs, RecurrentInput::cell), buffers.cell);
    float* y = floats_of(outputs, 0);
    for (std::int64_t i = 0; i < form().steps; ++i) {
        const std::int64_t step = form().is_reversed(direction.index) ? form().steps - 1 - i : i;
        const std::size_t row = static_cast<std::size_t>(form().x_row(step, 0)) * projected_columns();
        const std::size_t row_step = static_cast<std::size_t>(form().batch_first ? form().steps : 1);
        sum_gates(direction,
                  {buffers.projection + row + static_cast<std::size_t>(direction.index) * gate_columns(),
                   row_step * projected_columns()},
                  buffers);
        for (std::int64_t sequence = 0; sequence < form().batch; ++sequence) {
            const bool runs = step < recurrent_length(form(), inputs, sequence);
            const std::size_t at = static_cast<std::size_t>(sequence);
            if (runs) update(direction, at, buffers);
            if (y == nullptr) continue;
            float* to = y + form().y_offset(step, direction.index, sequence);
            if (runs)
                std::copy_n(buffers.hidden + at * hidden(), hidden(), to);
            else
                std::fill_n(to, hidden(), 0.0F);
        }
    }
    finish(buffers.hidden, floats_of(outputs, 1));
    finish(buffers.cell, floats_of(outputs, 2));
}

PanelMatrix Recurrent::part(const Direction& direction, std::size_t index) const {
    const std::size_t each = parts_.size() / cells_.size();
    const RecurrentPart& part = parts_[static_cast<std::size_t>(direction.index) * each + index];
    return {direction.panels + part.offset, hidden(), part.columns};
}

// The sums of all gates and sequences of a step; `start` are those of X.
void Recurrent::sum_gates(const Direction& direction, const FloatRows& start, const Buffers& buffers) const {
    const std::size_t columns = gate_columns();
    const FloatRows state{buffers.hidden, hidden()};
    functions_.multiply_add(state, part(direction, 0), start, batch(), buffers.gates, columns);
    if (form().cell != RecurrentCell::gru) return;
    const RecurrentCellRows& cell = cells_[static_cast<std::size_t>(direction.index)];
    float* reset = buffers.gates + hidden();
    float* candidate = reset + hidden();
    const FloatRows candidate_start{start.data + 2 * hidden(), start.step};
    if (form().linear_before_reset) {
        functions_.multiply_add(state, part(direction, 1), {direction.state_bias, 0}, batch(), candidate,
                                columns);
        for (std::size_t i = 0; i < batch(); ++i) {
            float* sum = candidate + i * columns;
            cell.gated(reset + i * columns, sum, candidate_start.data + i * start.step, sum);
        }
    } else {
        for (std::size_t i = 0; i < batch(); ++i) {
            cell.gated(reset + i * columns, buffers.hidden + i * hidden(), nullptr,
                       buffers.reset + i * hidden());
        }
        functions_.multiply_add({buffers.reset, hidden()}, part(direction, 1), candidate_start, batch(),
                                candidate, columns);
    }
}

// The new state of a sequence from its sums.
void Recurrent::update(const Direction& direction, std::size_t sequence, const Buffers& buffers) const {
    const RecurrentCellRows& cell = cells_[static_cast<std::size_t>(direction.index)];
    float* gates = buffers.gates + sequence * gate_columns();
    float* state = buffers.hidden + sequence * hidden();
    switch (form().cell) {
        case RecurrentCell::rnn:
            return cell.rnn(gates, state);
        case RecurrentCell::gru:
            return cell.gru(gates, gates + 2 * hidden(), state);
        case RecurrentCell::lstm:
            return cell.lstm(gates, direction.peepholes, buffers.cell + sequence * hidden(), state);
    }
}

template <RecurrentCell cell>
class FastCell : public Recurrent {
  public:
    FastCell() : Recurrent(cell) {}
};

template <RecurrentCell cell>
class ReferenceCell : public RecurrentReference {
  public:
    ReferenceCell() : RecurrentReference(cell) {}
};

template <RecurrentCell cell>
OperatorEntry entry(const char* op_type, const char* summary) {
    OperatorEntry entry;
    entry.op_type = op_type;
    entry.since = oldest_opset;
    entry.summary = summary;
    entry.make = make_kernel<FastCell<cell>>;
    entry.make_reference = make_kernel<ReferenceCell<cell>>;
    return entry;
}

}  // namespace

void register_recurrent(KernelRegistry& registry) {
    registry.add(
        entry<RecurrentCell::rnn>("RNN", "a recurrent layer of one gate, in one or both directions"));
    registry.add(entry<RecurrentCell::gru>("GRU", "gated recurrent units, in one or both directions"));
    registry.add(entry<RecurrentCell::lstm>("LSTM", "long short-term memory, in one or both directions"));
}

}  // namespace qcalib
