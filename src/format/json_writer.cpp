#include "format/json_writer.h"

#include <cassert>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace qcalib {

namespace {

constexpr std::size_t indent = 4;

}  // namespace

void JsonWriter::new_line() {
    text_ += '\n';
    text_.append(indent * has_items_.size(), ' ');
}

void JsonWriter::separate() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (has_items_.empty()) return;
    if (has_items_.back()) text_ += ',';
    has_items_.back() = true;
    new_line();
}

JsonWriter& JsonWriter::begin(char bracket) {
    separate();
    text_ += bracket;
    has_items_.push_back(false);
    return *this;
}

JsonWriter& JsonWriter::end(char bracket) {
    assert(!has_items_.empty() && !after_key_);
    const bool any = has_items_.back();
    has_items_.pop_back();
    if (any) new_line();
    text_ += bracket;
    if (has_items_.empty()) text_ += '\n';
    return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
    separate();
    text_ += nlohmann::json(name).dump() + ": ";
    after_key_ = true;
    return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
    return raw(nlohmann::json(text).dump());
}

JsonWriter& JsonWriter::real(double value) {
    assert(std::isfinite(value));
    std::string digits = fmt::format("{}", value);
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    return raw(digits);
}

JsonWriter& JsonWriter::raw(std::string_view json) {
    separate();
    text_ += json;
    return *this;
}

bool is_utf8(std::string_view text) {
    try {
        (void)nlohmann::json(text).dump();
        return true;
    } catch (const nlohmann::json::type_error&) {
        return false;
    }
}

}  // namespace qcalib
