#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qcalib {

// A value of a protobuf message in text form that is no message, and where it stands.
struct TextProtoScalar {
    enum class Kind : unsigned char { number, word, text };

    Kind kind = Kind::word;
    std::string text;  // as written; of quoted text what it stands for
    std::size_t begin = 0;
    std::size_t end = 0;  // one past its last byte
    std::size_t line = 0;

    // The number: decimal, "1e-3f", "inf", "-nan"; nothing for anything else.
    std::optional<double> number() const;
};

struct TextProtoField;

// The fields of a message, in the order of the text; repeated ones stand apart.
struct TextProtoMessage {
    std::vector<TextProtoField> fields;
    std::size_t begin = 0;  // of what is inside its braces
    std::size_t end = 0;
    std::size_t line = 0;  // of its opening brace
};

struct TextProtoField {
    std::string name;  // "[pkg.extension]" for an extension
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t line = 0;
    std::vector<TextProtoScalar> scalars;    // one, or those of a list
    std::vector<TextProtoMessage> messages;  // one, or those of a list

    bool is_message() const { return !messages.empty(); }
};

// Parses the text form of a protobuf message (proto2): comments, both quotes, lists, `name {`, `name: {`,
// `name <`. Whatever its fields are called. An Error "path:line: expected ..., found ..." where it is none,
// also for messages nested deeper than 50 levels.
TextProtoMessage parse_text_proto(std::string_view text, const std::filesystem::path& path);

}  // namespace qcalib
