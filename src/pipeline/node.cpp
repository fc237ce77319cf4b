#include "pipeline/node.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

PipelinePlace place_of(const YAML::Mark& mark, const PipelinePlace& source) {
    if (source.line == 0) return source;
    return {source.source, source.rank, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
}

void add_entry(PipelineNode& map, const YAML::Node& key, PipelineNode value, PipelineFaults& faults) {
    const PipelinePlace place = place_of(key.Mark(), map.place);
    if (!key.IsScalar()) {
        faults.add(place, "expected a key, found a list or a map");
        return;
    }
    if (map.find(key.Scalar()) != nullptr) {
        faults.add(place, fmt::format("key '{}' is given twice", printable(key.Scalar())));
        return;
    }
    if (value.kind == PipelineNode::Kind::nothing) value.place = place;
    map.add(key.Scalar(), place, std::move(value));
    map.entries.back().yaml = key;
}

}  // namespace

std::string PipelinePlace::text() const {
    return line == 0 ? printable(source) : fmt::format("{}:{}:{}", printable(source), line, column);
}

const PipelineNode* PipelineNode::find(std::string_view key) const {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.key == key; });
    return found == entries.end() ? nullptr : &found->value;
}

PipelineNode* PipelineNode::find(std::string_view key) {
    return const_cast<PipelineNode*>(std::as_const(*this).find(key));
}

PipelineNode& PipelineNode::add(const std::string& key, const PipelinePlace& place, PipelineNode value) {
    kind = Kind::map;
    Entry& entry = entries.emplace_back();
    entry.key = key;
    entry.place = place;
    entry.value = std::move(value);
    return entry.value;
}

std::string PipelineNode::shown() const {
    constexpr std::size_t most = 40;
    switch (kind) {
        case Kind::nothing:
            return "nothing";
        case Kind::list:
            return items.empty() ? "an empty list" : "a list";
        case Kind::map:
            return "a map";
        default:
            return fmt::format("{0}{1}{0}", quoted ? '"' : '\'',
                               printable(scalar.size() > most ? scalar.substr(0, most) + "..." : scalar));
    }
}

void PipelineFaults::add(const PipelinePlace& place, const std::string& text) {
    faults_.emplace_back(place, text);
}

void PipelineFaults::throw_if_any() const {
    if (faults_.empty()) return;
    std::vector<std::pair<PipelinePlace, std::string>> sorted = faults_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return std::tie(a.first.rank, a.first.line, a.first.column) <
               std::tie(b.first.rank, b.first.line, b.first.column);
    });
    std::vector<std::string> lines;
    for (const auto& [place, text] : sorted) {
        std::string line = fmt::format("{}: {}", place.text(), text);
        if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    }
    throw Error(join(lines, "\n"));
}

PipelineNode to_pipeline_node(const YAML::Node& node, const PipelinePlace& source, PipelineFaults& faults) {
    PipelineNode result;
    result.place = place_of(node.Mark(), source);
    result.yaml = node;
    if (node.IsScalar()) {
        result.kind = PipelineNode::Kind::scalar;
        result.scalar = node.Scalar();
        result.quoted = node.Tag() == "!";
    } else if (node.IsSequence()) {
        result.kind = PipelineNode::Kind::list;
        for (const YAML::Node& item : node) {
            result.items.push_back(to_pipeline_node(item, source, faults));
        }
    } else if (node.IsMap()) {
        result.kind = PipelineNode::Kind::map;
        for (const auto& entry : node) {
            add_entry(result, entry.first, to_pipeline_node(entry.second, source, faults), faults);
        }
    }
    return result;
}

namespace {

void emit(YAML::Emitter& out, const PipelineNode& node) {
    const auto is_flat = [](const PipelineNode& item) { return item.kind == PipelineNode::Kind::scalar; };
    switch (node.kind) {
        case PipelineNode::Kind::nothing:
            out << YAML::Null;
            return;
        case PipelineNode::Kind::scalar:
            if (node.quoted) out << YAML::DoubleQuoted;
            out << node.scalar;
            return;
        case PipelineNode::Kind::list:
            if (std::all_of(node.items.begin(), node.items.end(), is_flat)) out << YAML::Flow;
            out << YAML::BeginSeq;
            for (const PipelineNode& item : node.items) emit(out, item);
            out << YAML::EndSeq;
            return;
        default:
            out << YAML::BeginMap;
            for (const PipelineNode::Entry& entry : node.entries) {
                out << YAML::Key << entry.key << YAML::Value;
                emit(out, entry.value);
            }
            out << YAML::EndMap;
    }
}

}  // namespace

YAML::Node to_yaml_node(const PipelineNode& node) {
    if (!node.changed) return node.yaml;
    YAML::Node result(node.kind == PipelineNode::Kind::list ? YAML::NodeType::Sequence : YAML::NodeType::Map);
    for (const PipelineNode& item : node.items) result.push_back(to_yaml_node(item));
    for (const PipelineNode::Entry& entry : node.entries) {
        const YAML::Node key = entry.yaml.IsScalar() ? entry.yaml : YAML::Node(entry.key);
        result.force_insert(key, to_yaml_node(entry.value));
    }
    return result;
}

std::string to_yaml(const PipelineNode& node) {
    YAML::Emitter out;
    emit(out, node);
    return std::string(out.c_str()) + "\n";
}

}  // namespace qcalib
