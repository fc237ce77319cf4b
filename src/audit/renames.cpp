#include "audit/renames.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/digest.h"
#include "base/text.h"

namespace qcalib {

namespace {

std::set<std::string> names_of(const EncodingFile& file) {
    std::set<std::string> names;
    for (const FileEntry& entry : file.entries) names.insert(entry.encoding.tensor);
    return names;
}

// All numbers of the entry as text: equal for equal weights.
std::string signature(const TensorEncoding& encoding) {
    std::string text;
    for (const Encoding& one : encoding.encodings)
        text += fmt::format("{} {:a} {:a};", one.bits, one.min, one.max);
    return text;
}

// The weights that the file alone has, by signature; two with the same are told apart by nothing.
std::map<std::string, std::vector<std::string>> own_weights(const EncodingFile& file,
                                                            const std::set<std::string>& others) {
    std::map<std::string, std::vector<std::string>> weights;
    for (const FileEntry& entry : file.entries) {
        if (entry.section == Section::activation || others.contains(entry.encoding.tensor)) continue;
        if (!entry.encoding.encodings.empty())
            weights[signature(entry.encoding)].push_back(entry.encoding.tensor);
    }
    return weights;
}

std::string digest_of(const Tensor& tensor) {
    Sha256 sha;
    sha.update(tensor.view().bytes());
    return fmt::format("{} {} {}", name_of(tensor.type()), to_string(tensor.shape()), to_hex(sha.finish()));
}

// The place of each value of `other` among those of `given`, as far as it is known.
class Correspondence {
  public:
    Correspondence(const Graph& given, const Graph& other)
        : given_(given), other_(other), place_(other.values.size(), no_value) {
        match_inputs();
        match_initializers();
        match_nodes();
    }

    Renames renames() const {
        Renames renames;
        for (ValueId value = 0; value < place_.size(); ++value) {
            if (place_[value] == no_value) continue;
            const std::string& from = other_.values[value].name;
            const std::string& to = given_.values[place_[value]].name;
            if (from != to) renames.emplace(from, to);
        }
        return renames;
    }

  private:
    void match_inputs() {
        const bool as_many = given_.inputs.size() == other_.inputs.size();
        for (std::size_t i = 0; i < other_.inputs.size(); ++i) {
            const ValueId same_name = given_.find(other_.values[other_.inputs[i]].name);
            place_[other_.inputs[i]] = same_name != no_value ? same_name
                                       : as_many             ? given_.inputs[i]
                                                             : no_value;
        }
    }

    void match_initializers() {
        std::unordered_map<std::string, std::vector<ValueId>> by_digest;
        for (ValueId value = 0; value < given_.values.size(); ++value) {
            if (given_.values[value].initializer)
                by_digest[digest_of(*given_.values[value].initializer)].push_back(value);
        }
        for (ValueId value = 0; value < other_.values.size(); ++value) {
            if (!other_.values[value].initializer) continue;
            const auto found = by_digest.find(digest_of(*other_.values[value].initializer));
            if (found == by_digest.end()) continue;
            const ValueId same_name = given_.find(other_.values[value].name);
            const std::vector<ValueId>& candidates = found->second;
            const bool named = std::find(candidates.begin(), candidates.end(), same_name) != candidates.end();
            place_[value] = named ? same_name : candidates.front();
            data_[value] = found->first;
        }
        for (auto& [digest, values] : by_digest) {
            for (const ValueId value : values) given_data_[value] = digest;
        }
    }

    // The node with its operands, equal for nodes that compute alike; "" where an operand is not known.
    std::string key_of(const Node& node, bool other) const {
        std::string key = node.domain + " " + node.op_type;
        for (const ValueId input : node.inputs) {
            if (input == no_value) {
                key += " -";
                continue;
            }
            const auto& data = other ? data_ : given_data_;
            if (const auto constant = data.find(input); constant != data.end()) {
                key += " #" + constant->second;
                continue;
            }
            const ValueId place = other ? place_[input] : input;
            if (place == no_value) return "";
            key += fmt::format(" {}", place);
        }
        return key;
    }

    void match_nodes() {
        std::unordered_map<std::string, std::vector<const Node*>> nodes;
        for (const Node& node : given_.nodes) nodes[key_of(node, false)].push_back(&node);
        std::unordered_map<std::string, std::size_t> taken;
        for (const Node& node : other_.nodes) {
            const std::string key = key_of(node, true);
            const auto found = key.empty() ? nodes.end() : nodes.find(key);
            if (found == nodes.end()) continue;
            std::size_t& next = taken[key];
            if (next >= found->second.size()) continue;
            const Node& same = *found->second[next++];
            for (std::size_t i = 0; i < std::min(node.outputs.size(), same.outputs.size()); ++i) {
                if (node.outputs[i] != no_value) place_[node.outputs[i]] = same.outputs[i];
            }
        }
    }

    const Graph& given_;
    const Graph& other_;
    std::vector<ValueId> place_;
    std::unordered_map<ValueId, std::string> data_;
    std::unordered_map<ValueId, std::string> given_data_;
};

}  // namespace

Renames renamed_weights(const EncodingFile& given, const EncodingFile& other) {
    const auto mine = own_weights(given, names_of(other));
    const auto theirs = own_weights(other, names_of(given));
    Renames renames;
    for (const auto& [text, names] : theirs) {
        const auto same = mine.find(text);
        if (same == mine.end() || same->second.size() != 1 || names.size() != 1) continue;
        renames.emplace(names.front(), same->second.front());
    }
    return renames;
}

Renames renamed_tensors(const Graph& given, const Graph& other) {
    return Correspondence(given, other).renames();
}

void rename(ConverterReport& other, const EncodingFile& given, const Renames& renames) {
    std::set<std::string> there;
    for (const FoundTensor& tensor : other.tensors) there.insert(tensor.name);
    const std::set<std::string> wanted = names_of(given);
    for (FoundTensor& tensor : other.tensors) {
        const auto found = renames.find(tensor.name);
        if (found == renames.end() || wanted.contains(tensor.name)) continue;
        if (!wanted.contains(found->second) || there.contains(found->second)) continue;
        tensor.renamed_from = std::exchange(tensor.name, found->second);
    }
}

}  // namespace qcalib
