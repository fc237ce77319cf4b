#include "dataset/sample_list.h"

#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "dataset/file_reader.h"
#include "dataset/input_names.h"

namespace qcalib {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view binder = ":=";
constexpr std::string_view blanks = " \t";

bool is_blank(char c) {
    return blanks.find(c) != std::string_view::npos;
}

// A list being read: what its lines are read against, and its name for messages.
struct ListContext {
    fs::path folder;
    std::string shown;
    std::span<const InputSpec> inputs;
};

// "name:=value" of a line, the value trimmed.
struct Item {
    std::size_t input = 0;
    std::string_view value;
};

struct SplitLine {
    std::string_view leading;  // what stands before the first item, trimmed
    std::vector<Item> items;
};

struct ResolvedPath {
    fs::path path;
    bool exists = false;
};

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

// From the working directory, then from the list's folder; the latter, too, where there is no such file.
ResolvedPath resolve(std::string_view text, const fs::path& folder) {
    const fs::path path(text);
    if (is_there(path)) return {path, true};
    if (path.is_absolute() || folder.empty()) return {path, false};
    return {folder / path, is_there(folder / path)};
}

// The input whose "name:=" stands at the start of `text`: the longest such name.
std::optional<std::size_t> input_at(std::string_view text, std::span<const InputSpec> inputs) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::string& name = inputs[i].name;
        if (!text.starts_with(name) || !text.substr(name.size()).starts_with(binder)) continue;
        if (!best || name.size() > inputs[*best].name.size()) best = i;
    }
    return best;
}

// Splits a line where a known "name:=" stands at its start or after a blank; all else belongs to the values.
SplitLine split_items(std::string_view line, std::span<const InputSpec> inputs) {
    SplitLine result;
    std::size_t value_start = 0;
    const auto close = [&](std::size_t end) {
        const std::string_view text = trim(line.substr(value_start, end - value_start));
        (result.items.empty() ? result.leading : result.items.back().value) = text;
    };
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (i > 0 && !is_blank(line[i - 1])) continue;
        const auto input = input_at(line.substr(i), inputs);
        if (!input) continue;
        close(i);
        result.items.push_back({*input, {}});
        value_start = i + inputs[*input].name.size() + binder.size();
        i = value_start - 1;
    }
    close(line.size());
    return result;
}

// The name in a " name:=" inside a value, which splitting left there because no input has it.
std::optional<std::string_view> foreign_name(std::string_view value) {
    const std::size_t end = value.find(binder);
    if (end == std::string_view::npos) return std::nullopt;
    const std::size_t blank = value.find_last_of(blanks, end);
    if (blank == std::string_view::npos) return std::nullopt;
    return value.substr(blank + 1, end - blank - 1);
}

std::string_view name_before_binder(std::string_view text) {
    return trim(text.substr(0, text.find(binder)));
}

// The one input that lines must give, or nothing where there are several or none.
std::optional<std::size_t> only_required(std::span<const InputSpec> inputs) {
    std::optional<std::size_t> only;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].otherwise) continue;
        if (only) return std::nullopt;
        only = i;
    }
    return only;
}

// A line that is not "name:=path" where one input must be given: the path itself.
fs::path whole_line(std::string_view line, const std::string& where, const ListContext& list) {
    ResolvedPath resolved = resolve(trim(line), list.folder);
    if (!resolved.exists && line.find(binder) != std::string_view::npos) {
        fail("{}: {}", where, no_such_input(name_before_binder(line), list.inputs));
    }
    return std::move(resolved.path);
}

[[noreturn]] void fail_at_leading(std::string_view leading, const std::string& where,
                                  const ListContext& list) {
    if (leading.find(binder) != std::string_view::npos) {
        fail("{}: {}", where, no_such_input(name_before_binder(leading), list.inputs));
    }
    fail(
        "{}: expected name:=path for each of the model's inputs ({}), a path for each in this order, or one "
        "file with the data of all, found '{}'",
        where, list_of_inputs(list.inputs), printable(leading));
}

std::vector<std::size_t> required_inputs(std::span<const InputSpec> inputs) {
    std::vector<std::size_t> required;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].otherwise) required.push_back(i);
    }
    return required;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (!(line = trim(line)).empty()) {
        const std::size_t end = line.find_first_of(blanks);
        words.push_back(line.substr(0, end));
        line.remove_prefix(end == std::string_view::npos ? line.size() : end);
    }
    return words;
}

// Whether one file could fill either input.
bool take_alike_data(const InputSpec& a, const InputSpec& b) {
    if (!a.rank_known || !b.rank_known) return a.type == b.type;
    const auto bytes = [](const InputSpec& input) -> std::optional<std::int64_t> {
        std::int64_t elements = 1;
        for (const auto& size : input.shape) {
            if (!size) return std::nullopt;
            elements *= *size;
        }
        return elements * static_cast<std::int64_t>(size_of(input.type));
    };
    const auto one = bytes(a);
    const auto other = bytes(b);
    return one && other ? *one == *other : a.type == b.type;
}

// A path for each input that must be given, in their order.
std::vector<fs::path> in_model_order(std::span<const std::string_view> words,
                                     std::span<const std::size_t> required, const std::string& where,
                                     const ListContext& list) {
    std::vector<fs::path> files(list.inputs.size());
    for (std::size_t i = 0; i < required.size(); ++i) {
        const InputSpec& input = list.inputs[required[i]];
        for (std::size_t k = 0; k < i; ++k) {
            const InputSpec& other = list.inputs[required[k]];
            if (!take_alike_data(input, other)) continue;
            fail(
                "{}: inputs '{}' and '{}' take data of the same size, so that nothing tells whether the "
                "files "
                "are in their order; name them, as {}:={} {}:={}",
                where, printable(other.name), printable(input.name), printable(other.name),
                printable(words[k]), printable(input.name), printable(words[i]));
        }
        files[required[i]] = resolve(words[i], list.folder).path;
    }
    return files;
}

fs::path item_path(const Item& item, const std::string& where, const ListContext& list) {
    if (item.value.empty()) fail("{}: no path after '{}:='", where, printable(list.inputs[item.input].name));
    ResolvedPath resolved = resolve(item.value, list.folder);
    if (const auto name = foreign_name(item.value); name && !resolved.exists) {
        fail("{}: {}", where, no_such_input(*name, list.inputs));
    }
    return std::move(resolved.path);
}

// A line without names where several inputs must be given: a path for each, or one file with the data of all.
// Nothing where it is neither.
std::optional<ListEntry> without_names(std::string_view line, const std::string& where,
                                       const ListContext& list) {
    const std::vector<std::size_t> required = required_inputs(list.inputs);
    if (required.size() < 2 || line.find(binder) != std::string_view::npos) return std::nullopt;
    const std::vector<std::string_view> words = words_of(line);
    const ResolvedPath whole = resolve(trim(line), list.folder);
    if ((words.size() == 1 || whole.exists) && is_raw(whole.path)) {
        ListEntry entry{0, std::vector<fs::path>(list.inputs.size())};
        for (const std::size_t input : required) entry.files[input] = whole.path;
        entry.joined = true;
        return entry;
    }
    if (words.size() != required.size()) return std::nullopt;
    return ListEntry{0, in_model_order(words, required, where, list)};
}

std::vector<fs::path> parse_line(std::string_view line, const std::string& where, const ListContext& list) {
    const SplitLine split = split_items(line, list.inputs);
    std::vector<fs::path> files(list.inputs.size());
    if (split.items.empty() && is_npz(fs::path(trim(line)))) {
        std::fill(files.begin(), files.end(), whole_line(line, where, list));
        return files;
    }
    if (const auto only = only_required(list.inputs)) {
        if (split.items.empty() || (list.inputs.size() == 1 && !split.leading.empty())) {
            files[*only] = whole_line(line, where, list);
            return files;
        }
    }
    if (!split.leading.empty()) fail_at_leading(split.leading, where, list);
    for (const Item& item : split.items) {
        fs::path path = item_path(item, where, list);
        if (!files[item.input].empty()) {
            fail("{}: input '{}' is given twice", where, printable(list.inputs[item.input].name));
        }
        files[item.input] = std::move(path);
    }
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (!files[i].empty() || list.inputs[i].otherwise) continue;
        missing.push_back(fmt::format("'{}'", printable(list.inputs[i].name)));
    }
    if (!missing.empty()) fail("{}: no file for input {}", where, join(missing, ", "));
    return files;
}

std::string_view without_byte_order_mark(std::string_view text) {
    constexpr std::string_view mark = "\xef\xbb\xbf";
    return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

// Takes the first line off `text`, without its line end.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

// What became of the lines that gave no sample.
struct SkippedLines {
    std::size_t outputs = 0;       // lines that start with # or %
    std::size_t first_output = 0;  // the number of the first of them
};

void remark_on_outputs(const SkippedLines& skipped, const ListContext& list, Remarks& remarks) {
    if (skipped.outputs == 0) return;
    remarks.add(fmt::format("{}:{}: {} that start with # or % skipped; SNPE takes them as output names",
                            list.shown, skipped.first_output,
                            skipped.outputs == 1 ? "a line" : fmt::format("{} lines", skipped.outputs)));
}

}  // namespace

std::vector<ListEntry> read_sample_list(const fs::path& path, std::span<const InputSpec> inputs,
                                        Remarks& remarks) {
    const ListContext list{path.parent_path(), printable(path.string()), inputs};
    const std::string content = read_text_file(path);
    if (inputs.empty()) fail("{}: the model has no inputs that samples could fill", list.shown);
    std::vector<ListEntry> entries;
    SkippedLines skipped;
    std::string_view rest = without_byte_order_mark(content);
    for (std::size_t number = 1; !rest.empty(); ++number) {
        const std::string_view line = take_line(rest);
        const std::string where = fmt::format("{}:{}", list.shown, number);
        if (line.find('\0') != std::string_view::npos) {
            fail("{}: expected a list of paths as UTF-8 text, found a zero byte", where);
        }
        const std::string_view text = trim(line);
        if (text.empty()) continue;
        if (text.front() == '#' || text.front() == '%') {
            if (skipped.outputs++ == 0) skipped.first_output = number;
            continue;
        }
        std::optional<ListEntry> unnamed = without_names(line, where, list);
        ListEntry& entry = entries.emplace_back(unnamed ? std::move(*unnamed) : ListEntry{});
        if (!unnamed) entry.files = parse_line(line, where, list);
        entry.line = number;
    }
    if (entries.empty()) fail("{}: expected one sample a line, found none", list.shown);
    remark_on_outputs(skipped, list, remarks);
    return entries;
}

}  // namespace qcalib
