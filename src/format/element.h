#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encoding/encoding_file.h"
#include "format/format_reader.h"

namespace qcalib {

// The members of one object of an encodings file, read by name. Python's leniency is ours: whole floats are
// integers, "True" and "true" are booleans, null is nothing. What is wrong becomes a fault of the tensor.
class Element {
  public:
    // `value` is an object.
    Element(FormatReader& reader, const JsonValue& value, std::string tensor)
        : reader_(reader), value_(value), tensor_(std::move(tensor)) {}

    bool has(std::string_view key) const { return find(key) != nullptr; }
    std::optional<double> number(std::string_view key);
    std::optional<std::int64_t> integer(std::string_view key);
    std::optional<bool> boolean(std::string_view key);
    std::optional<std::string> text(std::string_view key);
    // A number, or a list of numbers.
    std::optional<std::vector<double>> numbers(std::string_view key);
    const JsonValue* value(std::string_view key);  // marks it known
    // A width of 2 to 32 bits (16 or 32, or 8, where floating); nothing where it is none.
    std::optional<int> bits(std::string_view key, CodeType type = CodeType::integer);
    // "int", "float" in either case; integer where there is none.
    CodeType code_type(std::string_view key);

    void fault(std::string text) {
        reader_.fault(tensor_, reader_.line(value_), std::move(text));
        good_ = false;
    }
    bool good() const { return good_; }
    std::vector<UnknownKey> unknown() const;  // members that nobody asked for

  private:
    const JsonValue* find(std::string_view key) const;
    std::optional<double> number_of(std::string_view key, const JsonValue& value);

    FormatReader& reader_;
    const JsonValue& value_;
    std::string tensor_;
    std::vector<std::string_view> known_;
    bool good_ = true;
};

}  // namespace qcalib
