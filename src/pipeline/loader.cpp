#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/yaml_reader.h"
#include "pipeline/pipeline.h"
#include "pipeline/schema.h"
#include "pipeline/validation.h"

namespace qcalib {

namespace {

using Kind = PipelineNode::Kind;
namespace fs = std::filesystem;

constexpr std::size_t most_files = 100;

// Puts variables into the scalars of a document. "$${" stands for "${".
class Substitution {
  public:
    Substitution(const Environment& environment, PipelineFaults& faults)
        : environment_(environment), faults_(faults) {}

    void apply(PipelineNode& node) {
        if (node.kind == Kind::scalar && node.scalar.find("${") != std::string::npos) {
            const std::string text = node.scalar;
            node.scalar.clear();
            node.faulty = !substituted(text, node.place, node.scalar);
            node.yaml = node.scalar;  // keeps its mark
            if (node.scalar.empty() && !node.quoted) node.kind = Kind::nothing;
        }
        for (PipelineNode& item : node.items) apply(item);
        for (PipelineNode::Entry& entry : node.entries) apply(entry.value);
    }

  private:
    // Whether all variables are known.
    bool substituted(const std::string& text, const PipelinePlace& place, std::string& result) {
        bool good = true;
        std::size_t at = 0;
        while (at < text.size()) {
            const std::size_t start = text.find("${", at);
            if (start == std::string::npos) break;
            result += text.substr(at, start - at);
            if (start > 0 && text[start - 1] == '$') {
                result += "{";
                at = start + 2;
                continue;
            }
            const std::size_t end = text.find('}', start);
            if (end == std::string::npos) {
                faults_.add(place, fmt::format("expected '}}' after '${{', found '{}'", printable(text)));
                return false;
            }
            good = variable(text.substr(start + 2, end - start - 2), place, result) && good;
            at = end + 1;
        }
        result += text.substr(std::min(at, text.size()));
        return good;
    }

    bool variable(const std::string& inside, const PipelinePlace& place, std::string& result) {
        const std::size_t dash = inside.find(":-");
        const std::string name = inside.substr(0, dash);
        const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
        if (name.empty() || !std::all_of(name.begin(), name.end(), allowed)) {
            faults_.add(place,
                        fmt::format("expected the name of an environment variable in '${{}}', found '{}'",
                                    printable(inside)));
            return false;
        }
        const std::optional<std::string> value = environment_(name);
        if (value && !(value->empty() && dash != std::string::npos)) {
            result += *value;
            return true;
        }
        if (dash != std::string::npos) {
            result += inside.substr(dash + 2);
            return true;
        }
        faults_.add(
            place,
            fmt::format("environment variable '{0}' is not set (${{{0}:-default}} does without)", name));
        return false;
    }

    const Environment& environment_;
    PipelineFaults& faults_;
};

// The entries of `over` in place of, or beside, those of `under`; maps key by key, all else as a whole.
void merge(PipelineNode& under, PipelineNode over) {
    if (under.kind != Kind::map || over.kind != Kind::map) {
        under = std::move(over);
        return;
    }
    under.place = over.place;
    under.changed = true;
    for (PipelineNode::Entry& entry : over.entries) {
        if (PipelineNode* there = under.find(entry.key)) {
            if (entry.value.kind == Kind::nothing && there->kind == Kind::map) continue;
            merge(*there, std::move(entry.value));
        } else {
            under.entries.push_back(std::move(entry));
        }
    }
}

class Loader {
  public:
    Loader(const Environment& environment, PipelineFaults& faults)
        : environment_(environment), faults_(faults) {}

    // `from`: where the file is named, for messages.
    PipelineNode read(const fs::path& file, const PipelinePlace* from) {
        const fs::path real = fs::weakly_canonical(file);
        if (std::find(open_.begin(), open_.end(), real) != open_.end()) {
            faults_.add(*from, fmt::format("include: '{}' includes itself: {}", printable(file.string()),
                                           chain(real)));
            return {};
        }
        if (++files_ > most_files)
            fail("{}: includes more than {} files", printable(file.string()), most_files);
        const PipelinePlace place{file.string(), static_cast<int>(files_ - 1), 1, 1};
        PipelineNode document = to_pipeline_node(parse(file, from), place, faults_);
        Substitution(environment_, faults_).apply(document);
        open_.push_back(real);
        PipelineNode merged = with_includes(std::move(document), file);
        open_.pop_back();
        return merged;
    }

    void set(PipelineNode& document, const std::string& setting, int number) {
        PipelinePlace place{"--set " + setting, static_cast<int>(most_files) + number, 0, 0};
        const std::size_t equals = end_of_path(setting);
        if (equals == std::string::npos || equals == 0) {
            faults_.add(place, "expected KEY=VALUE, as calibration.jobs=4");
            return;
        }
        PipelineNode value;
        try {
            value = to_pipeline_node(YAML::Load(setting.substr(equals + 1)), place, faults_);
        } catch (const YAML::Exception& exception) {
            faults_.add(place, fmt::format("expected YAML after '=', found a fault: {}", exception.msg));
            return;
        }
        Substitution(environment_, faults_).apply(value);
        put(document, keys_of(setting.substr(0, equals)), std::move(value), place);
    }

  private:
    YAML::Node parse(const fs::path& file, const PipelinePlace* from) {
        if (from != nullptr && !fs::is_regular_file(file)) {
            fail("{}: include: no file '{}'", from->text(), printable(file.string()));
        }
        return parse_yaml(read_text_file(file), file.string());
    }

    PipelineNode with_includes(PipelineNode document, const fs::path& file) {
        const PipelineNode* include = document.find("include");
        PipelineNode merged;
        if (include != nullptr) {
            const bool list = include->kind == Kind::list;
            for (const PipelineNode& item : list ? include->items : std::vector<PipelineNode>{*include}) {
                if (item.kind != Kind::scalar || item.scalar.empty()) {
                    faults_.add(item.place, fmt::format("include: expected a path, found {}", item.shown()));
                    continue;
                }
                const fs::path other(item.scalar);
                merge(merged, read(other.is_absolute() ? other : file.parent_path() / other, &item.place));
            }
            std::erase_if(document.entries, [](const auto& entry) { return entry.key == "include"; });
        }
        write_out_short_forms(document);
        if (merged.kind == Kind::nothing) return document;
        merge(merged, std::move(document));
        return merged;
    }

    std::string chain(const fs::path& last) const {
        std::vector<std::string> names;
        for (const fs::path& path : open_) names.push_back(printable(path.filename().string()));
        names.push_back(printable(last.filename().string()));
        return join(names, " -> ");
    }

    // Where the path of a setting ends: the first '=' outside quotes.
    static std::size_t end_of_path(const std::string& setting) {
        bool quoted = false;
        for (std::size_t i = 0; i < setting.size(); ++i) {
            if (setting[i] == '"') quoted = !quoted;
            if (setting[i] == '=' && !quoted) return i;
        }
        return std::string::npos;
    }

    // "a.\"b.c\".d" -> a, b.c, d
    static std::vector<std::string> keys_of(const std::string& path) {
        std::vector<std::string> keys(1);
        bool quoted = false;
        for (const char c : path) {
            if (c == '"') {
                quoted = !quoted;
            } else if (c == '.' && !quoted) {
                keys.emplace_back();
            } else {
                keys.back() += c;
            }
        }
        return keys;
    }

    void put(PipelineNode& document, const std::vector<std::string>& keys, PipelineNode value,
             const PipelinePlace& place) {
        PipelineNode* node = &document;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            node->changed = true;
            if (node->kind == Kind::list) {
                node = item(*node, keys[i], place);
                if (node == nullptr) return;
                continue;
            }
            if (node->kind == Kind::scalar) {
                faults_.add(place, fmt::format("expected a map to set '{}' in, found {}", printable(keys[i]),
                                               node->shown()));
                return;
            }
            node->kind = Kind::map;
            PipelineNode* next = node->find(keys[i]);
            if (next == nullptr) {
                PipelineNode empty;
                empty.place = place;
                next = &node->add(keys[i], place, std::move(empty));
            }
            node = next;
        }
        *node = std::move(value);
    }

    PipelineNode* item(PipelineNode& list, const std::string& index, const PipelinePlace& place) {
        std::size_t number = list.items.size();
        try {
            number = static_cast<std::size_t>(parse_integer(index, ""));
        } catch (const Error&) {
        }
        if (number < list.items.size()) return &list.items[number];
        faults_.add(place, fmt::format("expected the number of an item of the list, 0 to {}, found '{}'",
                                       list.items.size() - 1, printable(index)));
        return nullptr;
    }

    const Environment& environment_;
    PipelineFaults& faults_;
    std::vector<fs::path> open_;  // the file being read and those that include it
    std::size_t files_ = 0;
};

// Relative paths of files to read: from the working directory, then from the folder of the file they stand
// in. Where nothing is, that is a fault.
class PathResolver {
  public:
    explicit PathResolver(PipelineFaults& faults) : faults_(faults) {}

    void section(PipelineNode& node, const PipelineSection& section) {
        std::erase_if(node.entries, [&](PipelineNode::Entry& entry) {
            const PipelineKey* key = section.find(entry.key);
            if (key == nullptr) return false;
            if (key->type == PipelineType::path) return !path(entry.value, key->name);
            if (key->type != PipelineType::section) return false;
            const PipelineSection& inner = pipeline_section(key->section);
            if (entry.value.kind != Kind::list) this->section(entry.value, inner);
            for (PipelineNode& item : entry.value.items) this->section(item, inner);
            return false;
        });
    }

  private:
    bool path(PipelineNode& node, const std::string& key) {
        const fs::path path(node.scalar);
        if (is_there(path)) return true;
        const fs::path beside = fs::path(node.place.source).parent_path() / path;
        if (node.place.line != 0 && path.is_relative() && is_there(beside)) {
            node.scalar = beside.string();
            return true;
        }
        faults_.add(node.place, fmt::format("{}: no file or folder '{}'{}", key, printable(node.scalar),
                                            hint(path, beside)));
        return false;
    }

    // A pattern is there where the folder before its first wildcard is.
    static bool is_there(const fs::path& path) {
        std::error_code ignored;
        if (fs::exists(path, ignored)) return true;
        const std::string text = path.string();
        const std::size_t wildcard = text.find_first_of("*?");
        if (wildcard == std::string::npos) return false;
        const std::size_t slash = text.rfind('/', wildcard);
        return slash == std::string::npos || slash == 0 || fs::is_directory(text.substr(0, slash), ignored);
    }

    // The nearest name in the folders where the file was looked for.
    static std::string hint(const fs::path& path, const fs::path& beside) {
        std::vector<std::string> names = names_in(path.parent_path());
        const std::vector<std::string> more = names_in(beside.parent_path());
        names.insert(names.end(), more.begin(), more.end());
        std::sort(names.begin(), names.end());
        return did_you_mean(path.filename().string(), names);
    }

    static std::vector<std::string> names_in(const fs::path& folder) {
        constexpr std::size_t most = 10000;
        std::error_code error;
        std::vector<std::string> names;
        fs::directory_iterator entry(folder.empty() ? "." : folder, error);
        for (; !error && entry != fs::directory_iterator() && names.size() < most; entry.increment(error)) {
            names.push_back(entry->path().filename().string());
        }
        return names;
    }

    PipelineFaults& faults_;
};

}  // namespace

Pipeline load_pipeline(const fs::path& file, std::span<const std::string> settings,
                       const Environment& environment, PipelineFaults& faults) {
    Loader loader(environment, faults);
    PipelineNode document = loader.read(file, nullptr);
    for (std::size_t i = 0; i < settings.size(); ++i) {
        loader.set(document, settings[i], static_cast<int>(i));
        write_out_short_forms(document);
    }
    validate_pipeline(document, faults);
    PathResolver(faults).section(document, pipeline_schema().front());
    return Pipeline(std::move(document));
}

}  // namespace qcalib
