#include "pipeline/pipeline.h"

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "pipeline/schema.h"

namespace qcalib {

namespace {

using Kind = PipelineNode::Kind;

// Adds the defaults that the schema writes out, in the order of its keys.
void add_defaults(PipelineNode& map, const PipelineSection& section) {
    PipelineNode filled;
    for (const PipelineKey& key : section.keys) {
        PipelineNode* given = map.find(key.name);
        const bool nested = key.type == PipelineType::section && key.count == PipelineCount::one;
        if (given != nullptr) {
            if (nested) {
                given->kind = Kind::map;
                add_defaults(*given, pipeline_section(key.section));
            }
            filled.add(key.name, given->place, *given);
        } else if (nested && !key.required) {
            PipelineNode inner;
            inner.kind = Kind::map;
            add_defaults(inner, pipeline_section(key.section));
            if (!inner.entries.empty()) filled.add(key.name, {}, std::move(inner));
        } else if (key.is_literal) {
            PipelineNode value;
            value.kind = Kind::scalar;
            value.scalar = key.otherwise;
            filled.add(key.name, {}, std::move(value));
        }
    }
    map.entries = std::move(filled.entries);
}

}  // namespace

Environment process_environment() {
    return [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
}

std::optional<double> parse_fraction(std::string_view text) {
    const std::size_t slash = text.find('/');
    try {
        if (slash == std::string_view::npos) {
            const double value = parse_real(text, "");
            return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
        }
        const double above = parse_real(text.substr(0, slash), "");
        const double below = parse_real(text.substr(slash + 1), "");
        const double value = above / below;
        return below != 0 && std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;
    }
}

const PipelineNode* Pipeline::find(std::string_view path) const {
    const PipelineNode* node = &root_;
    for (const std::string& key : split(path, '.')) {
        node = node->find(key);
        if (node == nullptr) return nullptr;
    }
    return node;
}

PipelinePlace Pipeline::place(std::string_view path) const {
    const PipelineNode* node = find(path);
    return node == nullptr ? root_.place : node->place;
}

std::string Pipeline::text(std::string_view path, const std::string& otherwise) const {
    const PipelineNode* node = find(path);
    return node == nullptr ? otherwise : node->scalar;
}

bool Pipeline::boolean(std::string_view path, bool otherwise) const {
    const PipelineNode* node = find(path);
    return node == nullptr ? otherwise : node->scalar == "true";
}

std::optional<std::int64_t> Pipeline::integer(std::string_view path) const {
    const PipelineNode* node = find(path);
    if (node == nullptr) return std::nullopt;
    return parse_integer(node->scalar, path);
}

std::optional<double> Pipeline::real(std::string_view path) const {
    const PipelineNode* node = find(path);
    return node == nullptr ? std::nullopt : parse_fraction(node->scalar);
}

std::vector<const PipelineNode*> Pipeline::items(std::string_view path) const {
    const PipelineNode* node = find(path);
    std::vector<const PipelineNode*> items;
    if (node == nullptr) return items;
    if (node->kind != Kind::list) return {node};
    for (const PipelineNode& item : node->items) items.push_back(&item);
    return items;
}

std::vector<std::string> Pipeline::texts(std::string_view path) const {
    std::vector<std::string> texts;
    for (const PipelineNode* item : items(path)) texts.push_back(item->scalar);
    return texts;
}

std::string Pipeline::yaml() const {
    PipelineNode filled = root_;
    add_defaults(filled, pipeline_schema().front());
    return to_yaml(filled);
}

}  // namespace qcalib
