#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace qcalib {

// A value of a JSON text and where it stands.
struct JsonValue {
    enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

    Kind kind = Kind::null;
    bool boolean = false;
    double number = 0;      // NaN, infinities and numbers beyond double's range (infinite) too
    std::size_t begin = 0;  // bytes of the text
    std::size_t end = 0;
    std::string string;
    std::vector<JsonValue> items;   // of an array; the values of an object
    std::vector<std::string> keys;  // of an object, as many as items; may repeat

    bool is(Kind other) const { return kind == other; }
    // The first value of that key, or nullptr.
    const JsonValue* find(std::string_view key) const;
};

// A key that an object has more than once.
struct JsonRepetition {
    std::vector<std::string> path;  // the keys that lead to the object; "" for an element of an array
    std::string key;
    std::size_t first = 0;  // bytes of the text
    std::size_t second = 0;
};

// A JSON text as Python and hand editing leave it: a byte order mark, any line ends, NaN, Infinity and
// -Infinity are read. A fault is an Error "file:line:column: expected ..., found ...".
class JsonDocument {
  public:
    JsonDocument(std::string_view text, const std::filesystem::path& file);

    const JsonValue& root() const { return root_; }
    std::string_view raw(const JsonValue& value) const {
        return text_.substr(value.begin, value.end - value.begin);
    }
    std::size_t line(std::size_t byte) const;  // from 1
    const std::vector<JsonRepetition>& repetitions() const { return repetitions_; }

  private:
    std::string_view text_;
    std::vector<std::size_t> line_starts_;
    JsonValue root_;
    std::vector<JsonRepetition> repetitions_;
};

// The value as a message shows it: "a list", "an object", "\"text\"", "1.5".
std::string shown(const JsonValue& value);

}  // namespace qcalib
