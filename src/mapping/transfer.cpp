#include "mapping/transfer.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr std::size_t most_named = 8;

bool is_pattern(std::string_view name) {
    return name.find_first_of("*?") != std::string_view::npos;
}

bool any_fits(const Graph& graph, const std::string& pattern) {
    return std::any_of(graph.values.begin(), graph.values.end(),
                       [&](const Value& value) { return glob_match(pattern, value.name); });
}

std::string named(const Graph& graph, ValueId value) {
    return fmt::format("'{}'", printable(graph.values[value].name));
}

// Why an ONNX tensor has no partner, and what takes its place.
std::string reason_without_partner(const TensorMapping& mapping, ValueId onnx) {
    const LoneTensor* lone = mapping.lone_onnx(onnx);
    if (lone == nullptr) return "it is no float tensor";
    return lone->reason;
}

// The Circle tensor that an ONNX name stands for in `copy`; the name itself where it is none.
std::string copy_source(const TensorMapping& mapping, const std::string& name, const std::string& what) {
    if (mapping.circle->find(name) != no_value) return name;
    const ValueId onnx = mapping.onnx->find(name);
    if (onnx == no_value) return name;
    const auto pairs = mapping.of_onnx(onnx);
    if (pairs.empty()) {
        fail("{}: copy: no tensor of {} is '{}' of {}: {}", what, mapping.circle_label, printable(name),
             mapping.onnx_label, reason_without_partner(mapping, onnx));
    }
    return mapping.circle->values[pairs.front()->circle].name;
}

// Overrides of one run on their way to the Circle model.
class OverrideTransfer {
  public:
    OverrideTransfer(const TensorMapping& mapping, std::span<const Override> overrides, Remarks& remarks)
        : mapping_(mapping), remarks_(remarks) {
        for (const Override& one : overrides) (is_to_be_carried(one) ? carried_ : kept_).push_back(one);
        for (Override& one : kept_) {
            if (one.copy) one.copy = copy_source(mapping_, *one.copy, label_of(one));
        }
    }

    std::vector<Override> all(std::span<const OverrideTarget> targets) {
        if (carried_.empty()) return std::move(kept_);
        for (const OverrideTarget& target : targets) carry_for(target);
        remark_on_left_out();
        return std::move(kept_);
    }

  private:
    struct Carried {
        TensorOverride settings;
        ValueId onnx = no_value;
        std::string label;
    };

    static std::string label_of(const Override& one) {
        return fmt::format("{} '{}'", one.place, printable(one.pattern));
    }

    bool is_to_be_carried(const Override& one) {
        if (mapping_.circle->find(one.pattern) != no_value) return false;
        if (mapping_.onnx->find(one.pattern) != no_value) return true;
        if (!is_pattern(one.pattern) || !any_fits(*mapping_.onnx, one.pattern)) return false;
        if (!any_fits(*mapping_.circle, one.pattern)) return true;
        remarks_.add(fmt::format("{}: fits names of both models and is taken for those of {}", label_of(one),
                                 mapping_.circle_label));
        return false;
    }

    void carry_for(const OverrideTarget& target) {
        const OverrideTable table(carried_, target.name, target.scale_is_multiplier);
        std::map<ValueId, Carried> by_circle;
        std::vector<std::pair<Carried, const Override*>> direct;
        for (ValueId onnx = 0; onnx < mapping_.onnx->values.size(); ++onnx) {
            const TensorOverride settings = table.of(mapping_.onnx->values[onnx].name);
            if (settings.empty()) continue;
            const Override& strongest = table.at(settings.from.front());
            const bool by_name = strongest.pattern == mapping_.onnx->values[onnx].name;
            const Carried carried{settings, onnx, table.label(settings.from.front())};
            const std::string refused = carry_one(carried, strongest, target, by_circle);
            if (refused.empty()) direct.emplace_back(carried, &strongest);
            if (refused.empty()) continue;
            if (by_name) fail("{}: {}", carried.label, refused);
            left_out_.emplace(onnx, refused);
        }
        carry_to_equals(direct, target, by_circle);
    }

    // Tensors of the same values that have no settings of their own, where those of their equals are alike.
    void carry_to_equals(const std::vector<std::pair<Carried, const Override*>>& direct,
                         const OverrideTarget& target, const std::map<ValueId, Carried>& by_circle) {
        std::map<ValueId, std::vector<const std::pair<Carried, const Override*>*>> offers;
        for (const auto& one : direct) {
            for (const TensorPair* pair : mapping_.of_equals(one.first.onnx)) {
                if (!by_circle.contains(pair->circle)) offers[pair->circle].push_back(&one);
            }
        }
        for (const auto& [circle, all] : offers) {
            const auto& [carried, strongest] = *all.front();
            const bool alike = std::all_of(all.begin(), all.end(), [&](const auto* one) {
                return same_settings(one->first.settings, carried.settings);
            });
            if (alike) kept_.push_back(override_for(carried, *strongest, target, circle));
        }
    }

    static bool same_settings(const TensorOverride& a, const TensorOverride& b) {
        const bool same_range = a.range.has_value() == b.range.has_value() &&
                                (!a.range || (a.range->min == b.range->min && a.range->max == b.range->max));
        return same_range && a.step == b.step && a.bits == b.bits && a.symmetric == b.symmetric &&
               a.skip == b.skip && a.copy == b.copy;
    }

    // What keeps an override from being carried, or "".
    std::string carry_one(const Carried& carried, const Override& strongest, const OverrideTarget& target,
                          std::map<ValueId, Carried>& by_circle) {
        const auto pairs = mapping_.of_onnx(carried.onnx);
        if (pairs.empty()) {
            return fmt::format("no tensor of {} is {} of {}: {}", mapping_.circle_label,
                               named(*mapping_.onnx, carried.onnx), mapping_.onnx_label,
                               reason_without_partner(mapping_, carried.onnx));
        }
        const bool numbers = carried.settings.range || carried.settings.step;
        for (const TensorPair* pair : pairs) {
            if (pair->evidence == PairEvidence::derived && numbers) {
                return fmt::format(
                    "{} of {} became {} with other values ({}); give a range or step by that name",
                    named(*mapping_.onnx, carried.onnx), mapping_.onnx_label,
                    named(*mapping_.circle, pair->circle), pair->how);
            }
        }
        for (const TensorPair* pair : pairs) {
            const auto [found, added] = by_circle.emplace(pair->circle, carried);
            if (!added) {
                check_same(found->second, carried, pair->circle);
                continue;
            }
            kept_.push_back(override_for(carried, strongest, target, pair->circle));
        }
        return "";
    }

    void check_same(const Carried& first, const Carried& second, ValueId circle) const {
        if (same_settings(first.settings, second.settings)) return;
        fail("{} and {}: {} and {} of {} are one tensor of {}, {}, and cannot have different settings",
             first.label, second.label, named(*mapping_.onnx, first.onnx), named(*mapping_.onnx, second.onnx),
             mapping_.onnx_label, mapping_.circle_label, named(*mapping_.circle, circle));
    }

    Override override_for(const Carried& carried, const Override& strongest, const OverrideTarget& target,
                          ValueId circle) const {
        Override one;
        one.pattern = mapping_.circle->values[circle].name;
        one.target = target.name;
        one.range = carried.settings.range;
        one.step = carried.settings.step;
        one.bits = carried.settings.bits;
        one.symmetric = carried.settings.symmetric;
        if (carried.settings.skip) one.skip = true;
        if (carried.settings.copy) one.copy = copy_source(mapping_, *carried.settings.copy, carried.label);
        one.source = strongest.source;
        one.place = carried.label + " as";
        return one;
    }

    void remark_on_left_out() {
        std::size_t shown = 0;
        for (const auto& [onnx, reason] : left_out_) {
            if (shown++ == most_named) {
                remarks_.add(
                    fmt::format("patterns of overrides leave out {} more tensors that have no partner",
                                left_out_.size() - most_named));
                return;
            }
            remarks_.add(fmt::format("a pattern of an override leaves out {}: {}",
                                     named(*mapping_.onnx, onnx), reason));
        }
    }

    const TensorMapping& mapping_;
    Remarks& remarks_;
    std::vector<Override> carried_;
    std::vector<Override> kept_;
    std::map<ValueId, std::string> left_out_;
};

// An encoding under the Circle tensor's name; why not, where it cannot be.
class EncodingTransfer {
  public:
    EncodingTransfer(const TensorMapping& mapping, std::string label)
        : mapping_(mapping), label_(std::move(label)) {}

    // The Circle tensors' encodings of one ONNX encoding.
    std::vector<std::pair<TensorEncoding, const TensorPair*>> carry(const TensorEncoding& given) {
        std::vector<std::pair<TensorEncoding, const TensorPair*>> carried;
        const ValueId onnx = mapping_.onnx->find(given.tensor);
        if (onnx == no_value) return {{given, nullptr}};
        const auto pairs = mapping_.of_onnx(onnx);
        if (pairs.empty()) leave_out(given.tensor, reason_without_partner(mapping_, onnx));
        for (const TensorPair* pair : pairs) {
            std::optional<TensorEncoding> moved = moved_encoding(given, *pair);
            if (!moved) continue;
            const auto [found, added] = taken_.emplace(pair->circle, *moved);
            if (added) {
                from_[pair->circle] = given.tensor;
                carried.emplace_back(std::move(*moved), pair);
            } else if (!(found->second.encodings == moved->encodings && found->second.axis == moved->axis)) {
                leave_out(
                    given.tensor,
                    fmt::format("{} has another encoding already, that of '{}', which is the same tensor",
                                named(*mapping_.circle, pair->circle), printable(from_[pair->circle])));
            }
        }
        return carried;
    }

    // What was carried, for tensors of the same values that got nothing: encodings of whole tensors alone.
    std::vector<TensorEncoding> carry_to_equals(const std::vector<TensorEncoding>& given) {
        std::vector<TensorEncoding> added;
        for (const TensorEncoding& one : given) {
            const ValueId onnx = mapping_.onnx->find(one.tensor);
            if (onnx == no_value || one.axis || one.block_axis) continue;
            for (const TensorPair* pair : mapping_.of_equals(onnx)) {
                if (pair->evidence == PairEvidence::derived) continue;
                TensorEncoding moved = one;
                moved.tensor = mapping_.circle->values[pair->circle].name;
                if (taken_.emplace(pair->circle, moved).second) added.push_back(std::move(moved));
            }
        }
        return added;
    }

    void add_remarks(Remarks& remarks) const {
        for (std::size_t i = 0; i < left_out_.size(); ++i) {
            if (i == most_named) {
                remarks.add(fmt::format("{}: {} more entries are left out", label_, left_out_.size() - i));
                return;
            }
            remarks.add(left_out_[i]);
        }
    }

  private:
    void leave_out(const std::string& tensor, const std::string& reason) {
        left_out_.push_back(
            fmt::format("{}: the entry of '{}' is left out: {}", label_, printable(tensor), reason));
    }

    // The axis in the Circle tensor, or false after a remark.
    bool move_axis(std::optional<int>& axis, const TensorEncoding& given, const TensorPair& pair) {
        if (!axis) return true;
        const auto moved = moved_axis(pair.axes, *axis, pair.onnx_shape, pair.circle_shape);
        if (moved) {
            axis = static_cast<int>(*moved);
            return true;
        }
        leave_out(given.tensor,
                  fmt::format("its channels lie along axis {} of {}, and {} {} has no one axis for "
                              "them ({})",
                              *axis, to_string(pair.onnx_shape), named(*mapping_.circle, pair.circle),
                              to_string(pair.circle_shape), to_string(pair.axes)));
        return false;
    }

    std::optional<TensorEncoding> moved_encoding(const TensorEncoding& given, const TensorPair& pair) {
        if (pair.evidence == PairEvidence::derived && !given.encodings.empty()) {
            leave_out(given.tensor, fmt::format("{} has other values ({})",
                                                named(*mapping_.circle, pair.circle), pair.how));
            return std::nullopt;
        }
        TensorEncoding moved = given;
        moved.tensor = mapping_.circle->values[pair.circle].name;
        if (!move_axis(moved.axis, given, pair) || !move_axis(moved.block_axis, given, pair))
            return std::nullopt;
        return moved;
    }

    const TensorMapping& mapping_;
    std::string label_;
    std::unordered_map<ValueId, TensorEncoding> taken_;
    std::unordered_map<ValueId, std::string> from_;
    std::vector<std::string> left_out_;
};

}  // namespace

std::vector<Override> carry_overrides(const TensorMapping& mapping, std::span<const Override> overrides,
                                      std::span<const OverrideTarget> targets, Remarks& remarks) {
    return OverrideTransfer(mapping, overrides, remarks).all(targets);
}

EncodingSet carry_encodings(const TensorMapping& mapping, const EncodingSet& encodings,
                            const std::string& label, Remarks& remarks) {
    EncodingTransfer transfer(mapping, label);
    EncodingSet carried;
    for (const TensorEncoding& one : encodings.activations) {
        for (auto& [moved, pair] : transfer.carry(one)) carried.activations.push_back(std::move(moved));
    }
    for (const TensorEncoding& one : encodings.parameters) {
        for (auto& [moved, pair] : transfer.carry(one)) carried.parameters.push_back(std::move(moved));
    }
    for (TensorEncoding& one : transfer.carry_to_equals(encodings.activations))
        carried.activations.push_back(std::move(one));
    transfer.add_remarks(remarks);
    return carried;
}

EncodingFile carry_encodings(const TensorMapping& mapping, const EncodingFile& file, Remarks& remarks) {
    EncodingTransfer transfer(mapping, printable(file.path.string()));
    EncodingFile carried = file;
    carried.entries.clear();
    for (const FileEntry& entry : file.entries) {
        for (auto& [moved, pair] : transfer.carry(entry.encoding)) {
            FileEntry& added = carried.entries.emplace_back(entry);
            added.encoding = std::move(moved);
            if (pair == nullptr || pair->axes.identity()) continue;
            Shape nesting;
            if (pair->axes.form == AxisMap::Form::axes && entry.nesting.size() == pair->axes.axes.size()) {
                for (const std::size_t axis : pair->axes.axes) nesting.push_back(entry.nesting[axis]);
            }
            added.nesting = std::move(nesting);
        }
    }
    for (const FileEntry& entry : file.entries) {
        if (entry.section == Section::parameter) continue;
        for (TensorEncoding& moved : transfer.carry_to_equals({entry.encoding})) {
            FileEntry& added = carried.entries.emplace_back(entry);
            added.encoding = std::move(moved);
            added.nesting.clear();
        }
    }
    transfer.add_remarks(remarks);
    return carried;
}

}  // namespace qcalib
