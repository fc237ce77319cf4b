#include "mapping/input_binding.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

using OpenShape = std::vector<std::optional<std::int64_t>>;

std::string shape_text(const OpenShape& shape) {
    std::vector<std::string> sizes;
    for (const auto& size : shape) sizes.push_back(size ? std::to_string(*size) : "?");
    return "[" + join(sizes, ",") + "]";
}

// Both shapes with their open sizes bound, and how the data may lie. None where they do not fit.
struct ShapeFit {
    Shape circle;
    Shape onnx;
    std::vector<AxisMap> maps;
};

bool is_layout(const AxisMap& map) {
    const std::vector<std::vector<std::size_t>> layouts = {
        {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {0, 2, 3, 4, 1}, {0, 4, 1, 2, 3}};
    return map.form == AxisMap::Form::axes &&
           (map.identity() || std::find(layouts.begin(), layouts.end(), map.axes) != layouts.end());
}

// The sizes of `shape` permuted as `axes` say.
OpenShape permuted_shape(const OpenShape& shape, std::span<const std::size_t> axes) {
    OpenShape permuted;
    for (const std::size_t axis : axes) permuted.push_back(shape[axis]);
    return permuted;
}

// Whether two open shapes agree axis by axis; binds each open size to the other's, else to 1.
bool unite(OpenShape& a, OpenShape& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] && b[i] && *a[i] != *b[i]) return false;
        const std::int64_t size = a[i] ? *a[i] : b[i].value_or(1);
        a[i] = b[i] = size;
    }
    return true;
}

Shape closed(const OpenShape& shape) {
    Shape sizes;
    for (const auto& size : shape) sizes.push_back(size.value_or(1));
    return sizes;
}

std::vector<std::vector<std::size_t>> layout_axes(std::size_t rank) {
    std::vector<std::size_t> same;
    for (std::size_t i = 0; i < rank; ++i) same.push_back(i);
    std::vector<std::vector<std::size_t>> all = {same};
    if (rank == 3) all.insert(all.end(), {{0, 2, 1}, {1, 2, 0}, {2, 0, 1}});
    if (rank == 4) all.insert(all.end(), {{0, 3, 1, 2}, {0, 2, 3, 1}});
    if (rank == 5) all.insert(all.end(), {{0, 4, 1, 2, 3}, {0, 2, 3, 4, 1}});
    return all;
}

std::optional<ShapeFit> fit_shapes(const OpenShape& circle, const OpenShape& onnx) {
    for (const auto& axes : layout_axes(circle.size())) {
        if (circle.size() != onnx.size()) break;
        OpenShape there = permuted_shape(circle, axes);
        OpenShape wanted = onnx;
        if (!unite(there, wanted)) continue;
        ShapeFit fit;
        fit.onnx = closed(wanted);
        fit.circle.resize(circle.size());
        for (std::size_t i = 0; i < axes.size(); ++i) fit.circle[axes[i]] = fit.onnx[i];
        for (AxisMap& map : possible_maps(fit.circle, fit.onnx)) {
            if (is_layout(map)) fit.maps.push_back(std::move(map));
        }
        if (!fit.maps.empty()) return fit;
    }
    // The same elements in a shape of other axes of 1.
    ShapeFit fit{closed(circle), closed(onnx), {}};
    const auto above_one = [](Shape shape) {
        std::erase(shape, 1);
        return shape;
    };
    if (circle.size() == onnx.size() || above_one(fit.circle) != above_one(fit.onnx)) return std::nullopt;
    fit.maps.push_back(possible_maps(fit.circle, fit.onnx).front());
    return fit;
}

bool same_kind(const Value& a, const Value& b) {
    return is_floating(a.declared_type) == is_floating(b.declared_type) &&
           (a.declared_type == DataType::boolean) == (b.declared_type == DataType::boolean);
}

// Finds partners one kind of evidence after the other.
class InputBinder {
  public:
    InputBinder(const Graph& circle, const Graph& onnx, const BindingRequest& request)
        : circle_(circle), onnx_(onnx), request_(request), bound_(circle.inputs.size()) {}

    std::vector<BoundInput> bind() {
        bind_given();
        bind_by_name();
        bind_by_shape();
        std::vector<BoundInput> all;
        for (std::size_t i = 0; i < bound_.size(); ++i) all.push_back(std::move(*bound_[i]));
        return all;
    }

  private:
    const Value& circle_value(std::size_t i) const { return circle_.values[circle_.inputs[i]]; }
    const Value& onnx_value(std::size_t i) const { return onnx_.values[onnx_.inputs[i]]; }
    std::string circle_text(std::size_t i) const {
        return fmt::format("'{}' {}", printable(circle_value(i).name), shape_text(request_.circle_shapes[i]));
    }
    std::string onnx_text(std::size_t i) const {
        return fmt::format("'{}' {}", printable(onnx_value(i).name), shape_text(request_.onnx_shapes[i]));
    }
    bool is_taken(std::size_t onnx) const {
        return std::any_of(bound_.begin(), bound_.end(),
                           [&](const auto& one) { return one && one->onnx == onnx; });
    }

    std::optional<ShapeFit> fit(std::size_t circle, std::size_t onnx) const {
        if (!same_kind(circle_value(circle), onnx_value(onnx))) return std::nullopt;
        return fit_shapes(request_.circle_shapes[circle], request_.onnx_shapes[onnx]);
    }

    void take(std::size_t circle, std::size_t onnx, ShapeFit fit, std::string evidence) {
        bound_[circle] = BoundInput{circle,
                                    onnx,
                                    std::move(evidence),
                                    std::move(fit.circle),
                                    std::move(fit.onnx),
                                    std::move(fit.maps)};
    }

    static std::size_t find_input(const Graph& graph, const std::string& name, const std::string& label) {
        std::vector<std::string> names;
        for (const ValueId input : graph.inputs) names.push_back(graph.values[input].name);
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end()) {
            fail("--bind: {} has no input '{}'{}; its inputs are {}", label, printable(name),
                 did_you_mean(name, names), join(names, ", "));
        }
        return static_cast<std::size_t>(found - names.begin());
    }

    void bind_given() {
        for (const auto& [circle_name, onnx_name] : request_.given) {
            const std::size_t circle = find_input(circle_, circle_name, request_.circle_label);
            const std::size_t onnx = find_input(onnx_, onnx_name, request_.onnx_label);
            if (bound_[circle] || is_taken(onnx)) {
                fail("--bind: expected each input once, found {}={} again", printable(circle_name),
                     printable(onnx_name));
            }
            auto fitted = fit(circle, onnx);
            if (!fitted) fail_to_fit("--bind", circle, onnx);
            take(circle, onnx, std::move(*fitted), "given");
        }
    }

    [[noreturn]] void fail_to_fit(std::string_view what, std::size_t circle, std::size_t onnx) const {
        fail(
            "{}: input {} ({}) of {} does not fit input {} ({}) of {}: no layout leads from one to the "
            "other",
            what, circle_text(circle), name_of(circle_value(circle).declared_type), request_.circle_label,
            onnx_text(onnx), name_of(onnx_value(onnx).declared_type), request_.onnx_label);
    }

    void bind_by_name() {
        for (std::size_t circle = 0; circle < bound_.size(); ++circle) {
            if (bound_[circle]) continue;
            std::vector<std::size_t> found;
            for (std::size_t onnx = 0; onnx < onnx_.inputs.size(); ++onnx) {
                if (is_taken(onnx)) continue;
                if (onnx_value(onnx).name == circle_value(circle).name) {
                    found = {onnx};
                    break;
                }
                if (bare_name(onnx_value(onnx).name) == bare_name(circle_value(circle).name))
                    found.push_back(onnx);
            }
            if (found.size() != 1) continue;
            auto fitted = fit(circle, found.front());
            if (!fitted) fail_to_fit("inputs", circle, found.front());
            take(circle, found.front(), std::move(*fitted), "name");
        }
    }

    void bind_by_shape() {
        bool changed = true;
        while (changed) {
            changed = false;
            for (std::size_t circle = 0; circle < bound_.size(); ++circle) {
                if (bound_[circle]) continue;
                const std::vector<std::size_t> fitting = onnx_inputs_for(circle);
                if (fitting.size() != 1 || circle_inputs_for(fitting.front()) != 1) continue;
                take(circle, fitting.front(), *fit(circle, fitting.front()), "shape");
                changed = true;
            }
        }
        for (std::size_t circle = 0; circle < bound_.size(); ++circle) {
            if (!bound_[circle]) fail_to_bind(circle);
        }
    }

    std::vector<std::size_t> onnx_inputs_for(std::size_t circle) const {
        std::vector<std::size_t> fitting;
        for (std::size_t onnx = 0; onnx < onnx_.inputs.size(); ++onnx) {
            if (!is_taken(onnx) && fit(circle, onnx)) fitting.push_back(onnx);
        }
        return fitting;
    }

    std::size_t circle_inputs_for(std::size_t onnx) const {
        std::size_t count = 0;
        for (std::size_t circle = 0; circle < bound_.size(); ++circle)
            count += !bound_[circle] && fit(circle, onnx) ? 1 : 0;
        return count;
    }

    [[noreturn]] void fail_to_bind(std::size_t circle) const {
        const std::vector<std::size_t> fitting = onnx_inputs_for(circle);
        std::vector<std::string> texts;
        if (fitting.empty()) {
            for (std::size_t onnx = 0; onnx < onnx_.inputs.size(); ++onnx) texts.push_back(onnx_text(onnx));
            fail("{}: no input of {} has the name or the shape of input {}; its inputs are {}",
                 request_.circle_label, request_.onnx_label, circle_text(circle), join(texts, ", "));
        }
        for (const std::size_t onnx : fitting) texts.push_back(onnx_text(onnx));
        fail(
            "{}: several inputs of {} may be input {}: {}; no name tells which, and their order may differ: "
            "give --bind {}=NAME",
            request_.circle_label, request_.onnx_label, circle_text(circle), join(texts, ", "),
            printable(circle_value(circle).name));
    }

    const Graph& circle_;
    const Graph& onnx_;
    const BindingRequest& request_;
    std::vector<std::optional<BoundInput>> bound_;
};

}  // namespace

std::string bare_name(const std::string& name) {
    std::string_view bare = name;
    for (const std::string_view prefix :
         {"serving_default_", "PartitionedCall/", "StatefulPartitionedCall/"}) {
        if (bare.starts_with(prefix)) bare.remove_prefix(prefix.size());
    }
    const std::size_t colon = bare.rfind(':');
    if (colon != std::string_view::npos && colon > 0 &&
        bare.find_first_not_of("0123456789", colon + 1) == std::string_view::npos)
        bare = bare.substr(0, colon);
    return std::string(bare);
}

InputShapes declared_input_shapes(const Graph& graph, const std::string& label) {
    InputShapes shapes;
    for (const ValueId input : graph.inputs) {
        const Value& value = graph.values[input];
        if (!value.declared_shape) {
            fail("{}: input '{}' has no shape; give it with --shape {}=...", label, printable(value.name),
                 printable(value.name));
        }
        OpenShape& shape = shapes.emplace_back();
        for (const Dimension& dimension : *value.declared_shape) shape.push_back(dimension.size);
    }
    return shapes;
}

std::vector<BoundInput> bind_inputs(const Graph& circle, const Graph& onnx, const BindingRequest& request) {
    return InputBinder(circle, onnx, request).bind();
}

}  // namespace qcalib
