#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qcalib {

// Writes a JSON text, indented by four. Doubles are as short as reads back the same, with a point or an
// exponent; keys and strings must be UTF-8.
class JsonWriter {
  public:
    JsonWriter& begin_object() { return begin('{'); }
    JsonWriter& end_object() { return end('}'); }
    JsonWriter& begin_array() { return begin('['); }
    JsonWriter& end_array() { return end(']'); }
    JsonWriter& key(std::string_view name);
    JsonWriter& string(std::string_view text);
    JsonWriter& integer(std::int64_t value) { return raw(std::to_string(value)); }
    JsonWriter& real(double value);
    JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
    // A JSON text as it is.
    JsonWriter& raw(std::string_view json);

    const std::string& text() const { return text_; }

  private:
    JsonWriter& begin(char bracket);
    JsonWriter& end(char bracket);
    void separate();
    void new_line();

    std::string text_;
    std::vector<bool> has_items_;  // of each open object or array
    bool after_key_ = false;
};

// Whether the bytes are well-formed UTF-8.
bool is_utf8(std::string_view text);

}  // namespace qcalib
