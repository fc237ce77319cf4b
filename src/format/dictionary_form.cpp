#include "format/dictionary_form.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "format/element.h"

namespace qcalib {

namespace {

constexpr std::array dictionary_sections = {std::pair(Section::activation, "activation_encodings"),
                                            std::pair(Section::parameter, "param_encodings")};

const std::vector<std::string> element_keys = {"bitwidth", "min",   "max",          "scale",
                                               "offset",   "dtype", "is_symmetric", "bw"};

// Reads the list of encodings of one tensor.
class TensorReader {
  public:
    TensorReader(FormatReader& reader, const DictionarySchema& schema, const std::string& tensor,
                 const JsonValue& value, Section section)
        : reader_(reader), schema_(schema), tensor_(tensor), value_(value) {
        entry_.encoding.tensor = tensor;
        entry_.section = section;
        entry_.line = reader.line(value);
    }

    void read() {
        if (value_.is(JsonValue::Kind::object)) {
            if (!read_element(value_)) return;
            reader_.note("the encoding is not wrapped in a list", tensor_);
        } else if (value_.is(JsonValue::Kind::array) && !value_.items.empty()) {
            bool good = true;
            for (const JsonValue& item : value_.items) {
                if (item.is(JsonValue::Kind::object)) {
                    good = read_element(item) && good;
                } else {
                    fault(item, fmt::format("expected an encoding, found {}", shown(item)));
                    good = false;
                }
            }
            if (!good) return;
        } else {
            const bool misplaced =
                std::find(element_keys.begin(), element_keys.end(), tensor_) != element_keys.end();
            fault(value_, fmt::format("expected a list of encodings, found {}{}", shown(value_),
                                      misplaced ? "; encodings stand under the name of their tensor" : ""));
            return;
        }
        finish();
    }

  private:
    void fault(const JsonValue& value, std::string text) {
        reader_.fault(tensor_, reader_.line(value), std::move(text));
    }

    bool read_element(const JsonValue& value);
    std::optional<int> read_bits(Element& element);
    void finish();

    FormatReader& reader_;
    const DictionarySchema& schema_;
    const std::string& tensor_;
    const JsonValue& value_;
    FileEntry entry_;
    std::vector<int> bits_;
    std::vector<CodeType> types_;
};

std::optional<int> TensorReader::read_bits(Element& element) {
    const CodeType type = types_.back();
    if (element.has("bitwidth")) return element.bits("bitwidth", type);
    if (!element.has("bw")) {
        element.fault("expected bitwidth, found none");
    } else if (element.has("min") || element.has("scale")) {
        reader_.note("the width is called bw, as in version 1.0.0", tensor_);
        return element.bits("bw", type);
    } else {
        element.fault("expected bitwidth, found bw without a range");
    }
    return std::nullopt;
}

bool TensorReader::read_element(const JsonValue& value) {
    Element element(reader_, value, tensor_);
    types_.push_back(element.code_type("dtype"));
    const std::optional<int> bits = read_bits(element);
    bits_.push_back(bits.value_or(0));
    if (types_.back() == CodeType::integer) {
        GivenNumbers& given = entry_.given.emplace_back();
        given.min = element.number("min");
        given.max = element.number("max");
        given.scale = element.number("scale");
        given.offset = element.number("offset");
        given.symmetric = element.boolean(
            element.has("is_sym") && !element.has("is_symmetric") ? "is_sym" : "is_symmetric");
    } else if (element.has("min") || element.has("scale")) {
        reader_.note("the numbers of a float entry mean nothing", tensor_);
    }
    entry_.unknown.push_back(element.unknown());
    return element.good();
}

bool without_range(const GivenNumbers& given) {
    return !given.min && !given.max && !given.scale && !given.offset;
}

void TensorReader::finish() {
    const auto differ = [](const auto& values) {
        return std::any_of(values.begin(), values.end(),
                           [&](const auto& one) { return one != values.front(); });
    };
    if (differ(bits_) || differ(types_)) {
        fault(value_, "expected one bitwidth and dtype for all channels, found several");
        return;
    }
    const bool any_without = std::any_of(entry_.given.begin(), entry_.given.end(), without_range);
    if (types_.front() == CodeType::floating || (any_without && entry_.given.size() == 1)) {
        entry_.encoding.type = types_.front();
        entry_.encoding.bits = bits_.front();
        entry_.given.clear();
    } else if (any_without) {
        fault(value_, "expected min and max for every channel, found a channel without");
        return;
    }
    if (entry_.given.size() > 1) entry_.encoding.axis = 0;
    reader_.add(std::move(entry_), bits_.front(), schema_.offsets);
}

// The encodings of the dictionary sections, one after the other.
template <typename Visit>
void visit_elements(const FormatReader& reader, Visit visit) {
    for (const auto& [section, key] : dictionary_sections) {
        const JsonValue* dictionary = reader.member(key);
        if (dictionary == nullptr || !dictionary->is(JsonValue::Kind::object)) continue;
        for (const JsonValue& tensor : dictionary->items) {
            if (tensor.is(JsonValue::Kind::object)) visit(tensor);
            if (!tensor.is(JsonValue::Kind::array)) continue;
            for (const JsonValue& element : tensor.items) {
                if (element.is(JsonValue::Kind::object)) visit(element);
            }
        }
    }
}

// The ends to write: those of the encoding, but the grid's where they do not make its scale.
Range ends_of(const Encoding& encoding) {
    const double width = encoding.scale * static_cast<double>((std::int64_t{1} << encoding.bits) - 1);
    if (std::abs(encoding.max - encoding.min - width) <= 1e-3 * encoding.scale)
        return {encoding.min, encoding.max};
    const double min = static_cast<double>(encoding.offset) * encoding.scale;
    return {min, min + width};
}

}  // namespace

std::string version_of(const FormatReader& reader) {
    const JsonValue* version = reader.member("version");
    if (version == nullptr || version->is(JsonValue::Kind::null)) return "";
    if (version->is(JsonValue::Kind::string)) return version->string;
    return std::string(reader.json()->raw(*version));
}

bool has_dictionaries(const FormatReader& reader) {
    return std::any_of(dictionary_sections.begin(), dictionary_sections.end(), [&](const auto& section) {
        const JsonValue* found = reader.member(section.second);
        return found != nullptr && found->is(JsonValue::Kind::object);
    });
}

DictionaryTraits traits_of(const FormatReader& reader) {
    DictionaryTraits traits;
    visit_elements(reader, [&](const JsonValue& element) {
        ++traits.encodings;
        for (std::size_t i = 0; i < element.keys.size(); ++i) {
            const std::string& key = element.keys[i];
            if (key != "bitwidth" && key != "min" && key != "max") traits.only_ranges = false;
            if (key == "is_symmetric" || key == "dtype") traits.has_flags = true;
            if (key != "offset") continue;
            if (element.items[i].number > 0) ++traits.positive;
            if (element.items[i].number < 0) ++traits.negative;
        }
    });
    return traits;
}

void read_other_keys(FormatReader& reader, const std::vector<std::string>& known) {
    const JsonValue& root = *reader.object();
    for (std::size_t i = 0; i < root.keys.size(); ++i) {
        const std::string& key = root.keys[i];
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        if (key.ends_with("encodings")) {
            reader.fault("", reader.line(root.items[i]),
                         fmt::format("unknown section '{}'{}", printable(key), did_you_mean(key, known)));
        }
        reader.file().unknown.push_back(reader.unknown(key, root.items[i]));
    }
}

int DictionaryForm::recognise(const FormatReader& reader) const {
    return has_dictionaries(reader) && !schema_.version.empty() && version_of(reader) == schema_.version ? 100
                                                                                                         : 0;
}

void DictionaryForm::read(FormatReader& reader) const {
    read_other_keys(reader, {"version", "activation_encodings", "param_encodings"});
    for (const auto& [section, key] : dictionary_sections) {
        const JsonValue* dictionary = reader.member(key);
        if (dictionary == nullptr) {
            reader.note_file(fmt::format("has no {}, which Qualcomm's tools expect even if empty", key));
            continue;
        }
        if (!dictionary->is(JsonValue::Kind::object)) {
            reader.fault("", reader.line(*dictionary),
                         fmt::format("{}: expected an object from tensor names to encodings, found {}", key,
                                     shown(*dictionary)));
            continue;
        }
        for (std::size_t i = 0; i < dictionary->items.size(); ++i) {
            TensorReader(reader, schema_, dictionary->keys[i], dictionary->items[i], section).read();
        }
    }
}

bool DictionaryForm::can_express(const FileEntry& entry, Losses& losses) const {
    const TensorEncoding& encoding = entry.encoding;
    const auto left_out = [&](const char* what) {
        losses.add(fmt::format("{} cannot be expressed; left out", what), encoding.tensor);
        return false;
    };
    if (encoding.per_block()) return left_out(encoding.lpbq ? "LPBQ" : "encodings per block");
    if (encoding.type == CodeType::floating) {
        if (!schema_.dtype) return left_out("a float type");
        if (!encoding.float_name.empty()) return left_out(encoding.float_name.c_str());
        return true;
    }
    if (encoding.encodings.empty() && !schema_.width_only) return left_out("a width without a range");
    if (encoding.axis && *encoding.axis != 0 && encoding.encodings.size() > 1) {
        losses.add("the axis of the channels is not recorded; the operator implies it", encoding.tensor);
    }
    if (!schema_.symmetric && !encoding.encodings.empty() && encoding.encodings.front().symmetric) {
        losses.add("that they are symmetric is not recorded", encoding.tensor);
    }
    return true;
}

void DictionaryForm::write_encoding(JsonWriter& json, const Encoding& encoding) const {
    const Range ends = schema_.scale_offset ? Range{encoding.min, encoding.max} : ends_of(encoding);
    json.key("bitwidth").integer(encoding.bits);
    json.key("min").real(ends.min);
    json.key("max").real(ends.max);
    if (schema_.scale_offset) {
        json.key("scale").real(encoding.scale);
        json.key("offset").integer(encoding.offset);
    }
    if (schema_.symmetric) json.key("is_symmetric").string(encoding.symmetric ? "True" : "False");
    if (schema_.dtype) json.key("dtype").string("int");
}

void DictionaryForm::write_entry(JsonWriter& json, const FileEntry& entry, Losses& losses) const {
    const TensorEncoding& encoding = entry.encoding;
    const std::size_t count = std::max<std::size_t>(1, encoding.encodings.size());
    losses.unknown_keys(entry);
    json.key(encoding.tensor).begin_array();
    for (std::size_t i = 0; i < count; ++i) {
        json.begin_object();
        if (encoding.encodings.empty()) {
            json.key("bitwidth").integer(encoding.bits);
            json.key("dtype").string(encoding.type == CodeType::floating ? "float" : "int");
        } else {
            write_encoding(json, encoding.encodings[i]);
        }
        for (const UnknownKey& one : losses.kept_keys(entry, i)) json.key(one.key).raw(one.json);
        json.end_object();
    }
    json.end_array();
}

void DictionaryForm::write_section(JsonWriter& json, const EncodingFile& file, Section section,
                                   Losses& losses) const {
    json.begin_object();
    for (const FileEntry& entry : file.entries) {
        const bool parameters = section == Section::parameter;
        if ((entry.section == Section::parameter) != parameters || !can_express(entry, losses)) continue;
        if (entry.section == Section::any)
            losses.add("written as activations; a model tells which are parameters", entry.encoding.tensor);
        write_entry(json, entry, losses);
    }
    json.end_object();
}

std::string DictionaryForm::write(const EncodingFile& file, Remarks& remarks) const {
    JsonWriter json;
    Losses losses(name(), file);
    json.begin_object();
    if (!schema_.version.empty()) json.key("version").string(schema_.version);
    for (const auto& [section, key] : dictionary_sections) {
        json.key(key);
        write_section(json, file, section, losses);
    }
    for (const UnknownKey& one : losses.kept_keys(schema_.other_keys)) json.key(one.key).raw(one.json);
    json.end_object();
    losses.report(remarks);
    return json.text();
}

}  // namespace qcalib
