#include "cases/runner/expect.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tensor/npy.h"

namespace qcalib::cases {
namespace {

using nlohmann::json;

class Checker {
  public:
    Checker(const YAML::Node& step, const Places& places) : step_(step), places_(places) {}

    void check_stream(const char* name, const std::string& text) {
        const YAML::Node expected = step_[name];
        if (!expected) return;
        check_keys(expected, {"starts_with", "contains", "lacks", "lines"});
        for (const std::string& start : texts(expected["starts_with"], places_)) {
            if (!text.starts_with(start)) add(expected, "{}: expected it to start with '{}'", name, start);
        }
        for (const std::string& part : texts(expected["contains"], places_)) {
            if (text.find(part) == std::string::npos)
                add(expected, "{}: expected it to contain '{}'", name, part);
        }
        for (const std::string& part : texts(expected["lacks"], places_)) {
            if (text.find(part) != std::string::npos)
                add(expected, "{}: expected it not to contain '{}'", name, part);
        }
        const auto lines = std::count(text.begin(), text.end(), '\n');
        if (expected["lines"] && lines != expected["lines"].as<std::int64_t>()) {
            add(expected, "{}: expected {} lines, found {}", name, expected["lines"].as<std::string>(),
                lines);
        }
    }

    void check_ending(const std::string& found) {
        const std::string expected = "exit code " + step_["exit"].as<std::string>("0");
        if (found != expected) add(step_, "expected {}, found {}", expected, found);
    }

    void check_new_files(const std::set<std::string>& before) {
        const YAML::Node expected = step_["new_files"];
        if (!expected) return;
        std::set<std::string> found;
        for (const std::string& file : files_here()) {
            if (!before.contains(file)) found.insert(file);
        }
        const std::vector<std::string> names = texts(expected, places_);
        if (found != std::set<std::string>(names.begin(), names.end())) {
            add(expected, "new files: expected [{}], found [{}]", join(names, ", "), fmt::join(found, ", "));
        }
    }

    void check_json_files() {
        for (const auto& item : step_["json"]) {
            check_keys(item, {"file", "values"});
            const auto file = expand(required(item, "file").as<std::string>(), places_);
            try {
                const json whole = json::parse(read_text_file(file));
                for (const auto& value : required(item, "values")) check_json_value(value, file, whole);
            } catch (const json::exception& error) {
                add(item, "{}: {}", file, error.what());
            } catch (const Error& error) {
                add(item, "{}", error.what());
            }
        }
    }

    void check_arrays() {
        for (const auto& item : step_["npy"]) {
            check_keys(item, {"file", "is", "is_from", "within"});
            try {
                check_array(item);
            } catch (const Error& error) {
                add(item, "{}", error.what());
            }
        }
    }

    void check_same_bytes() {
        const std::vector<std::string> files = texts(step_["same_bytes"], places_);
        for (std::size_t i = 1; i < files.size(); ++i) {
            if (read_text_file(files[0]) != read_text_file(files[i])) {
                add(step_["same_bytes"], "{} and {} differ", files[0], files[i]);
            }
        }
    }

    std::vector<std::string> take() { return std::move(mismatches_); }

  private:
    template <typename... Arguments>
    void add(const YAML::Node& where, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
        mismatches_.push_back(fmt::format("case.yaml:{}: {}", where.Mark().line + 1,
                                          fmt::format(text, std::forward<Arguments>(arguments)...)));
    }

    // A scalar of the case as JSON: quoted ones are strings, others whatever JSON reads in them.
    static json scalar(const YAML::Node& node) {
        const auto text = node.as<std::string>();
        if (node.Tag() == "!") return text;
        const json value = json::parse(text, nullptr, false);
        return value.is_discarded() ? json(text) : value;
    }

    void check_json_value(const YAML::Node& item, const std::string& file, const json& whole) {
        check_keys(item, {"at", "is", "within", "has_keys"});
        const json* value = &whole;
        std::string place = file;
        for (const auto& key : required(item, "at")) {
            const auto name = key.as<std::string>();
            place += "/" + name;
            const json* next = child_of(*value, name);
            if (next == nullptr) return add(item, "{}: not there", place);
            value = next;
        }
        if (item["has_keys"]) check_json_keys(item, place, *value);
        if (item["is"] && !matches(item, *value)) {
            add(item, "{}: expected {}, found {}", place, scalar(item["is"]).dump(), value->dump());
        }
    }

    static const json* child_of(const json& value, const std::string& key) {
        if (value.is_array()) {
            const auto index = static_cast<std::size_t>(parse_integer(key, "an index"));
            return index < value.size() ? &value[index] : nullptr;
        }
        return value.is_object() && value.contains(key) ? &value[key] : nullptr;
    }

    static bool matches(const YAML::Node& item, const json& value) {
        const json expected = scalar(item["is"]);
        if (!item["within"]) return value == expected;
        return value.is_number() &&
               std::abs(value.get<double>() - expected.get<double>()) <= item["within"].as<double>();
    }

    void check_json_keys(const YAML::Node& item, const std::string& place, const json& value) {
        auto expected = texts(item["has_keys"], places_);
        std::vector<std::string> found;
        for (const auto& entry : value.items()) found.push_back(entry.key());
        std::sort(expected.begin(), expected.end());
        std::sort(found.begin(), found.end());
        if (expected != found) {
            add(item, "{}: expected the keys [{}], found [{}]", place, join(expected, ", "),
                join(found, ", "));
        }
    }

    void check_array(const YAML::Node& item) {
        const auto file = expand(required(item, "file").as<std::string>(), places_);
        const std::vector<double> found = numbers_of(read_npy(file).view());
        const std::vector<double> expected = expected_numbers(item);
        const auto within = required(item, "within").as<double>();
        if (found.size() != expected.size()) {
            return add(item, "{}: expected {} numbers, found {}", file, expected.size(), found.size());
        }
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (std::abs(found[i] - expected[i]) <= within) continue;
            add(item, "{}: number {}: expected {}, found {}", file, i, expected[i], found[i]);
        }
    }

    std::vector<double> expected_numbers(const YAML::Node& item) {
        if (item["is"]) return item["is"].as<std::vector<double>>();
        std::istringstream stream(
            read_text_file(expand(required(item, "is_from").as<std::string>(), places_)));
        std::vector<double> numbers;
        for (double number = 0; stream >> number;) numbers.push_back(number);
        return numbers;
    }

    YAML::Node step_;
    const Places& places_;
    std::vector<std::string> mismatches_;
};

}  // namespace

std::set<std::string> files_here() {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(".")) {
        if (!entry.is_directory()) files.insert(entry.path().lexically_normal().string());
    }
    return files;
}

std::vector<std::string> mismatches(const YAML::Node& step, const ProcessResult& result,
                                    const std::set<std::string>& before, const Places& places) {
    Checker checker(step, places);
    checker.check_ending(result.ending);
    checker.check_stream("stdout", result.standard_output);
    checker.check_stream("stderr", result.standard_error);
    checker.check_new_files(before);
    checker.check_json_files();
    checker.check_arrays();
    checker.check_same_bytes();
    return checker.take();
}

}  // namespace qcalib::cases
