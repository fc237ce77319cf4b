#include "target/tensor_encoder.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "target/step_grid.h"

namespace qcalib {

namespace {

Range range_of(const Encoding& encoding) {
    return {encoding.min, encoding.max};
}

// The range that full steps make such a grid of: its end has no code.
Range full_range_of(const Encoding& encoding) {
    const double end = encoding.symmetric ? encoding.max + encoding.scale : encoding.max;
    return {encoding.min, std::max(end, encoding.max)};
}

// Why the codes of an encoding are none for TIDL's symmetric grids; "" where they can be.
std::string fault_of_codes(const Encoding& encoding, const GridRules& grid, const Target& target) {
    if (!grid.full_steps || grid.scheme == Scheme::asymmetric) return "";
    const std::int64_t middle = -(std::int64_t{1} << (encoding.bits - 1));
    const bool from_zero = grid.scheme == Scheme::from_zero;
    if (encoding.offset == (from_zero ? 0 : middle)) return "";
    return fmt::format("target '{}' has {} codes for it", target.name,
                       from_zero ? "unsigned" : "signed, symmetric");
}

// Why a base's encoding cannot stay as it is; "" where it can.
std::string fault_of(const Encoding& encoding, const TensorEncoding& entry, const GridRules& grid,
                     const std::vector<int>& widths, const Target& target) {
    if (std::find(widths.begin(), widths.end(), encoding.bits) == widths.end())
        return fmt::format("target '{}' takes {} bits, not {}", target.name, fmt::join(widths, ", "),
                           encoding.bits);
    if (grid.power_of_two && !is_power_of_two(encoding.scale))
        return fmt::format("target '{}' takes steps that are powers of two, not {}", target.name,
                           encoding.scale);
    if (entry.per_channel() && target.weights.per_channel_symmetric && !encoding.symmetric)
        return fmt::format("target '{}' takes channels only symmetric", target.name);
    if (std::string codes = fault_of_codes(encoding, grid, target); !codes.empty()) return codes;
    if (grid.include_zero && (encoding.min > encoding.scale / 2 || encoding.max < -encoding.scale / 2))
        return fmt::format("the range of target '{}' has to contain 0", target.name);
    if (encoding.max - encoding.min < grid.least_range * (1 - 1e-9))
        return fmt::format("it is narrower than the least range, {}", grid.least_range);
    return "";
}

std::string share_text(double share) {
    return share < 1e-4 ? fmt::format("{:.2g} %", 100 * share) : fmt::format("{:.2f} %", 100 * share);
}

}  // namespace

std::vector<std::string> TensorEncoder::labels(const TensorOverride& given) const {
    std::vector<std::string> labels;
    for (const std::size_t index : given.from) labels.push_back(overrides_.label(index));
    return labels;
}

std::string TensorEncoder::label_of(const TensorOverride& given, bool (*has)(const Override&)) const {
    for (const std::size_t index : given.from) {
        if (has(overrides_.at(index))) return overrides_.label(index);
    }
    return "override";
}

GridRules TensorEncoder::grid(const TensorOverride& given, GridRules grid, const std::vector<int>& widths,
                              const std::string& tensor) const {
    if (given.bits && std::find(widths.begin(), widths.end(), *given.bits) == widths.end()) {
        fail("{}: bits: expected one of {}, which target '{}' takes for '{}', found {}",
             label_of(given, [](const Override& one) { return one.bits.has_value(); }),
             fmt::join(widths, ", "), target_.name, printable(tensor), *given.bits);
    }
    grid.bits = given.bits.value_or(grid.bits);
    if (given.symmetric) {
        const bool keeps_unsigned = *given.symmetric && (grid.scheme == Scheme::unsigned_symmetric ||
                                                         grid.scheme == Scheme::from_zero);
        if (!keeps_unsigned) grid.scheme = *given.symmetric ? Scheme::symmetric : Scheme::asymmetric;
    }
    return grid;
}

void TensorEncoder::check_step(const TensorOverride& given, const GridRules& grid,
                               const std::string& tensor) const {
    const double step = *given.step;
    if (!grid.power_of_two || is_power_of_two(step)) return;
    const double above = power_of_two_above(step);
    const double below = above / 2;
    fail(
        "{}: step: expected a power of two, which target '{}' asks for, found {} for '{}': the nearest are "
        "{} and "
        "{}",
        label_of(given, [](const Override& one) { return one.step.has_value(); }), target_.name, step,
        printable(tensor), below, above);
}

void TensorEncoder::note_clipping(const TensorTask& task, const Encoding& encoding, bool remarked,
                                  Decision& decision, Remarks& remarks) const {
    if (task.statistics == nullptr || !task.statistics->extremes) return;
    const Range data = *task.statistics->extremes;
    const double half = encoding.scale / 2;
    if (data.min >= encoding.min - half && data.max <= encoding.max + half) return;
    const std::optional<double> share = clipped_share(*task.statistics, encoding);
    const std::string text = fmt::format(
        "its range {:.7g} to {:.7g} clips {}data, which reach from {:.7g} to {:.7g}", encoding.min,
        encoding.max, share ? share_text(*share) + " of the " : "", data.min, data.max);
    decision.notes.push_back(text);
    if (!remarked) return;
    remarks.add(fmt::format("'{}': step {} of {}: {}", printable(task.name), encoding.scale,
                            decision.overrides.front(), text));
}

Encoding TensorEncoder::explicit_encoding(const TensorTask& task, const TensorOverride& given,
                                          std::optional<Range> data, const GridRules& grid,
                                          Decision& decision, Remarks& remarks) const {
    decision.method = "override";
    decision.origin = "override";
    Encoding encoding;
    if (given.range) {
        decision.ranges = {*given.range};
        encoding = qcalib::encode(*given.range, grid);
        if (grid.scheme == Scheme::from_zero && given.range->min < 0) {
            remarks.add(
                fmt::format("'{}': range {} to {} of {}: target '{}' has unsigned codes for it, so that "
                            "it starts at 0",
                            printable(task.name), given.range->min, given.range->max,
                            decision.overrides.front(), target_.name));
        }
    } else {
        check_step(given, grid, task.name);
        encoding = encode_with_step(*given.step, data, grid);
        decision.ranges = {grid.full_steps ? full_range_of(encoding) : range_of(encoding)};
        decision.by_rules = false;
        if (encoding.max - encoding.min < grid.least_range) {
            remarks.add(
                fmt::format("'{}': step {} of {} gives a range narrower than the least range {}, to which "
                            "target '{}' widens it",
                            printable(task.name), *given.step, decision.overrides.front(), grid.least_range,
                            target_.name));
        }
    }
    note_clipping(task, encoding, given.step.has_value(), decision, remarks);
    return encoding;
}

TensorEncoding TensorEncoder::kept(const TensorEncoding& base, const GridRules& grid,
                                   const std::vector<int>& widths, Decision& decision,
                                   Remarks& remarks) const {
    TensorEncoding entry = base;
    entry.origin = "base";
    decision.method = "base";
    decision.origin = entry.origin;
    if (!base.origin.empty()) decision.notes.push_back("from " + base.origin);
    decision.by_rules = false;
    decision.rules.bits = base.width();
    std::string fault;
    for (Encoding& encoding : entry.encodings) {
        decision.ranges.push_back(range_of(encoding));
        if (base.per_block()) continue;
        const std::string found = fault_of(encoding, base, grid, widths, target_);
        if (found.empty()) continue;
        fault = found;
        GridRules rules = grid;
        if (std::find(widths.begin(), widths.end(), encoding.bits) != widths.end())
            rules.bits = encoding.bits;
        if (base.per_channel() && target_.weights.per_channel_symmetric) rules.scheme = Scheme::symmetric;
        encoding = qcalib::encode(grid.full_steps ? full_range_of(encoding) : range_of(encoding), rules);
    }
    if (fault.empty()) return entry;
    decision.notes.push_back("coded anew: " + fault);
    remarks.add(fmt::format("'{}': the base's encoding is coded anew: {}", printable(base.tensor), fault));
    return entry;
}

std::optional<Encoding> TensorEncoder::fixed_encoding(const TensorTask& task, const GridRules& grid,
                                                      Decision& decision, Remarks& remarks) const {
    if (task.fixed == nullptr) return std::nullopt;
    const FixedRule::Grid* fixed = task.fixed->grid(grid.bits, grid.scheme != Scheme::asymmetric);
    if (fixed == nullptr) return std::nullopt;
    Encoding encoding;
    encoding.bits = fixed->bits;
    encoding.scale = fixed->step;
    encoding.offset = fixed->offset;
    encoding.min = static_cast<double>(fixed->offset) * fixed->step;
    encoding.max = encoding.min + fixed->step * (std::exp2(fixed->bits) - 1);
    encoding.symmetric = fixed->symmetric;
    decision.notes.push_back(fmt::format("target '{}' fixes {}: {}", target_.name, task.fixed->op_type,
                                         task.fixed->evidence.source));
    if (task.statistics == nullptr || !task.statistics->extremes) return encoding;
    const double greatest = std::max(task.statistics->extremes->max, -task.statistics->extremes->min);
    if (greatest > 0 && greatest < 2 * fixed->step) {
        remarks.add(
            fmt::format("'{}': its greatest value {:.3g} is {:.2f} codes of the encoding that target '{}' "
                        "fixes for {}: nearly all of it becomes 0 in {} bits",
                        printable(task.name), greatest, greatest / fixed->step, target_.name,
                        task.fixed->op_type, fixed->bits));
    }
    return encoding;
}

std::optional<int> base_width(const TensorEncoding* base, const std::vector<int>& widths) {
    if (base == nullptr || base->type != CodeType::integer) return std::nullopt;
    if (std::find(widths.begin(), widths.end(), base->width()) == widths.end()) return std::nullopt;
    return base->width();
}

Encoded TensorEncoder::encode(const TensorTask& task, const TensorOverride& given, Remarks& remarks) const {
    Encoded result;
    Decision& decision = result.decision;
    decision.tensor = task.name;
    decision.kind = task.kind;
    decision.overrides = labels(given);
    if (given.skip) {
        decision.no_encoding = "skipped by " + decision.overrides.front();
        return result;
    }
    const TensorEncoding* base = task.base;
    // A base that gives a width alone leaves the range to the method.
    const bool ranged = base != nullptr && (!base->encodings.empty() || base->type == CodeType::floating);
    const std::optional<Range> base_range = base != nullptr && !base->encodings.empty()
                                                ? std::optional(range_of(base->encodings.front()))
                                                : std::nullopt;
    GridRules run_grid = task.grid;
    if (!given.bits && !task.base_range_alone)
        run_grid.bits = base_width(base, task.widths).value_or(run_grid.bits);
    const GridRules grid = this->grid(given, run_grid, task.widths, task.name);
    decision.rules = grid;
    const auto put = [&](const Encoding& encoding) {
        result.entry = TensorEncoding{task.name, {encoding}, {}, decision.origin};
    };
    const std::optional<Encoding> fixed = fixed_encoding(task, grid, decision, remarks);
    if (given.range || given.step) {
        std::optional<Range> data;
        if (given.step) data = base_range ? base_range : task.choose(grid);
        put(explicit_encoding(task, given, data, grid, decision, remarks));
        if (fixed && *fixed != result.entry->encodings.front()) {
            remarks.add(fmt::format(
                "'{}': {} asks for another encoding than target '{}' fixes for {}, which may "
                "not heed it",
                printable(task.name), decision.overrides.front(), target_.name, task.fixed->op_type));
        }
        return result;
    }
    if (fixed) {
        decision.method = decision.origin = "fixed";
        decision.ranges = {range_of(*fixed)};
        decision.by_rules = false;
        if (base_range && *base_range != range_of(*fixed)) {
            remarks.add(fmt::format(
                "'{}': the base's range {:.7g} to {:.7g} gives way to the encoding that target "
                "'{}' fixes for {}",
                printable(task.name), base_range->min, base_range->max, target_.name, task.fixed->op_type));
        }
        put(*fixed);
        return result;
    }
    const bool regridded = given.bits || given.symmetric;
    if (ranged && !((regridded || task.base_range_alone) && base_range)) {
        result.entry = kept(*base, grid, task.widths, decision, remarks);
        return result;
    }
    const std::optional<Range> range = base_range ? base_range : task.choose(grid);
    decision.method = base_range ? "base" : task.method;
    if (!range) {
        decision.no_encoding = task.without;
        return result;
    }
    decision.ranges = {*range};
    decision.origin = regridded ? "override" : base_range ? "base" : task.origin;
    if (base_range && !base->origin.empty()) decision.notes.push_back("from " + base->origin);
    put(qcalib::encode(*range, grid));
    return result;
}

}  // namespace qcalib
