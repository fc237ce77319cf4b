#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/element.h"
#include "format/format_reader.h"
#include "format/onnx_types.h"

namespace qcalib {

namespace {

constexpr int table_bits = 8;  // what onnxruntime's calibration tables are used for

// An integer type as onnxruntime's QuantType calls it: "QUInt8", "QuantType.QInt16", ...
std::optional<IntegerType> quant_type(std::string name) {
    if (name.starts_with("QuantType.")) name.erase(0, 10);
    if (!name.starts_with('Q')) return std::nullopt;
    name.erase(0, 1);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return integer_type(name);
}

// Reads the list of one tensor of TensorQuantOverrides.
void read_override(FormatReader& reader, const std::string& tensor, const JsonValue& value) {
    FileEntry entry;
    entry.encoding.tensor = tensor;
    entry.line = reader.line(value);
    std::optional<IntegerType> type;
    bool good = true;
    for (const JsonValue& item : value.items) {
        if (!item.is(JsonValue::Kind::object)) {
            reader.fault(tensor, reader.line(item), fmt::format("expected an object, found {}", shown(item)));
            return;
        }
        Element element(reader, item, tensor);
        const std::optional<std::string> name = element.text("quant_type");
        if (name) {
            const std::optional<IntegerType> found = quant_type(*name);
            if (!found)
                element.fault(fmt::format("quant_type: expected one such as \"QUInt8\", found \"{}\"",
                                          printable(*name)));
            if (!type) type = found;
        }
        if (const auto axis = element.integer("axis")) entry.encoding.axis = static_cast<int>(*axis);
        GivenNumbers& given = entry.given.emplace_back();
        given.scale = element.number("scale");
        given.offset = element.number("zero_point");
        given.min = element.number("rmin");
        given.max = element.number("rmax");
        given.symmetric = element.boolean("symmetric");
        if (given.scale.has_value() != given.offset.has_value()) {
            element.fault(fmt::format("expected scale and zero_point together, found {} alone",
                                      given.scale ? "scale" : "zero_point"));
        }
        if (given.scale && (given.min || given.symmetric)) {
            element.fault("expected scale and zero_point without rmin, rmax and symmetric, found both");
        }
        entry.unknown.push_back(element.unknown());
        good = element.good() && good;
    }
    if (!good) return;
    if (value.items.empty()) return reader.note("there is nothing to override", tensor);
    if (!type) {
        reader.note("there is no quant_type; QUInt8 is taken", tensor);
        type.emplace();
    }
    const GivenNumbers& first = entry.given.front();
    if (!first.scale && !first.min) {
        entry.encoding.bits = type->bits;
        entry.given.clear();
    }
    OffsetRule rule;
    rule.expected = type->is_signed ? OffsetConvention::signed_positive : OffsetConvention::positive;
    rule.symmetric_zero = false;
    reader.add(std::move(entry), type->bits, rule);
}

class OrtOverrides : public Format {
  public:
    std::string name() const override { return "ort-overrides"; }
    std::string summary() const override {
        return "onnxruntime's TensorQuantOverrides saved as JSON: from tensor name to a list of quant_type, "
               "scale, "
               "zero_point, rmin, rmax, symmetric, axis.";
    }
    std::string limits() const override { return "Only read; \"convert\" is kept as an unknown key."; }
    std::string suffix() const override { return ".json"; }
    bool writable() const override { return false; }
    int recognise(const FormatReader& reader) const override;
    void read(FormatReader& reader) const override;

  protected:
    std::string write(const EncodingFile& /*file*/, Remarks& /*remarks*/) const override { return ""; }
};

int OrtOverrides::recognise(const FormatReader& reader) const {
    const JsonValue* root = reader.object();
    if (root == nullptr || root->items.empty()) return 0;
    bool any = false;
    for (const JsonValue& tensor : root->items) {
        if (!tensor.is(JsonValue::Kind::array)) return 0;
        for (const JsonValue& item : tensor.items) {
            if (!item.is(JsonValue::Kind::object)) return 0;
            for (const char* key : {"quant_type", "zero_point", "rmin"})
                any = any || item.find(key) != nullptr;
        }
    }
    return any ? 60 : 0;
}

void OrtOverrides::read(FormatReader& reader) const {
    const JsonValue& root = *reader.object();
    for (std::size_t i = 0; i < root.items.size(); ++i) read_override(reader, root.keys[i], root.items[i]);
}

// Lines "name value".
bool is_text_table(const std::string& text) {
    bool any = false;
    for (const std::string& line : split(text, '\n')) {
        const std::string_view content = trim(line);
        if (content.empty()) continue;
        const std::size_t blank = content.rfind(' ');
        if (blank == std::string_view::npos) return false;
        try {
            (void)parse_real(content.substr(blank + 1), "");
        } catch (const Error&) {
            return false;
        }
        any = true;
    }
    return any;
}

// A number, or an array of one: as it is, or as onnxruntime's encoder writes it ({"data": ..., "CLS": ...}).
const JsonValue* single_number(const JsonValue* value) {
    for (int depth = 0; value != nullptr && depth < 4; ++depth) {
        if (value->is(JsonValue::Kind::number)) return value;
        if (value->is(JsonValue::Kind::array)) {
            value = value->items.size() == 1 ? value->items.data() : nullptr;
        } else {
            value = value->find("data");
        }
    }
    return nullptr;
}

class OrtTable : public Format {
  public:
    std::string name() const override { return "ort-table"; }
    std::string summary() const override {
        return "onnxruntime's calibration table: calibration.json (from tensor name to the lowest and "
               "highest value) or "
               "calibration.cache (lines of a name and the largest magnitude).";
    }
    std::string limits() const override {
        return "Only read; it has ranges alone, for which 8 bits are taken.";
    }
    std::string suffix() const override { return ".json"; }
    bool writable() const override { return false; }
    int recognise(const FormatReader& reader) const override;
    void read(FormatReader& reader) const override;

  protected:
    std::string write(const EncodingFile& /*file*/, Remarks& /*remarks*/) const override { return ""; }

  private:
    static const JsonValue* table_of(const FormatReader& reader);
    static void read_text(FormatReader& reader);
    static void read_range(FormatReader& reader, const std::string& tensor, const JsonValue& value);
};

// The object from tensor names to ranges.
const JsonValue* OrtTable::table_of(const FormatReader& reader) {
    const JsonValue* type = reader.member("CLS");
    if (type == nullptr) return reader.object();
    const JsonValue* data = reader.member("data");
    return data != nullptr && data->is(JsonValue::Kind::object) ? data : nullptr;
}

int OrtTable::recognise(const FormatReader& reader) const {
    if (reader.json() == nullptr) return is_text_table(reader.text()) ? 50 : 0;
    const JsonValue* table = table_of(reader);
    if (table == nullptr || table->items.empty()) return 0;
    const bool all = std::all_of(table->items.begin(), table->items.end(), [](const JsonValue& value) {
        const bool pair = value.is(JsonValue::Kind::array) && value.items.size() == 2 &&
                          single_number(&value.items[0]) != nullptr;
        return pair || value.find("lowest") != nullptr;
    });
    return all ? 60 : 0;
}

void OrtTable::read_range(FormatReader& reader, const std::string& tensor, const JsonValue& value) {
    FileEntry entry;
    entry.encoding.tensor = tensor;
    entry.line = reader.line(value);
    const bool pair = value.is(JsonValue::Kind::array);
    const JsonValue* low = single_number(pair ? value.items.data() : value.find("lowest"));
    const JsonValue* high = single_number(pair ? &value.items[1] : value.find("highest"));
    if (low == nullptr || high == nullptr) {
        reader.fault(tensor, entry.line, "expected a lowest and a highest value, found another form");
        return;
    }
    GivenNumbers& given = entry.given.emplace_back();
    given.min = low->number;
    given.max = high->number;
    reader.add(std::move(entry), table_bits, {});
}

void OrtTable::read_text(FormatReader& reader) {
    std::size_t line = 0;
    for (const std::string& row : split(reader.text(), '\n')) {
        ++line;
        const std::string_view content = trim(row);
        if (content.empty()) continue;
        const std::size_t blank = content.rfind(' ');
        FileEntry entry;
        entry.encoding.tensor = trim(content.substr(0, blank));
        entry.line = line;
        GivenNumbers& given = entry.given.emplace_back();
        const double magnitude = parse_real(content.substr(blank + 1), "");
        given.scale = magnitude / ((1 << (table_bits - 1)) - 1);
        given.offset = -(1 << (table_bits - 1));
        given.symmetric = true;
        if (magnitude == 0) {
            reader.note("the largest magnitude is 0; left out", entry.encoding.tensor);
        } else {
            reader.add(std::move(entry), table_bits, {});
        }
    }
}

void OrtTable::read(FormatReader& reader) const {
    reader.note_file("holds ranges without widths; 8 bits are taken");
    if (reader.json() == nullptr) return read_text(reader);
    const JsonValue& table = *table_of(reader);
    for (std::size_t i = 0; i < table.items.size(); ++i) read_range(reader, table.keys[i], table.items[i]);
}

}  // namespace

const Format& ort_overrides_format() {
    static const OrtOverrides format;
    return format;
}

const Format& ort_table_format() {
    static const OrtTable format;
    return format;
}

}  // namespace qcalib
