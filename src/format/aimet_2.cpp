#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/dictionary_form.h"
#include "format/element.h"
#include "format/format_reader.h"
#include "format/json_writer.h"
#include "format/losses.h"
#include "format/onnx_types.h"

namespace qcalib {

namespace {

// Numbers in nested lists of one shape, row by row.
struct NestedNumbers {
    Shape shape;  // empty: a single number
    std::vector<double> values;
};

// Adds the numbers below `value`; false where the nesting is uneven or there is something else.
bool flatten(const JsonValue& value, std::size_t depth, bool first, NestedNumbers& result) {
    if (value.is(JsonValue::Kind::number)) {
        result.values.push_back(value.number);
        return depth == result.shape.size();
    }
    if (!value.is(JsonValue::Kind::array) || value.items.empty()) return false;
    const auto extent = static_cast<std::int64_t>(value.items.size());
    if (first && depth == result.shape.size()) result.shape.push_back(extent);
    if (depth >= result.shape.size() || result.shape[depth] != extent) return false;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (!flatten(value.items[i], depth + 1, first && i == 0, result)) return false;
    }
    return true;
}

class TypedEntryReader {
  public:
    TypedEntryReader(FormatReader& reader, const JsonValue& value, std::string tensor)
        : reader_(reader), element_(reader, value, tensor) {
        entry_.encoding.tensor = std::move(tensor);
        entry_.line = reader.line(value);
    }

    void read();

  private:
    std::optional<NestedNumbers> nested(const char* key);
    void read_float(const std::string& type);
    void read_grid(const IntegerType& type);
    void read_axis(const NestedNumbers& scales);
    void read_lpbq(const IntegerType& type);
    void order_by_channel(const NestedNumbers& scales, std::vector<double>& values) const;

    FormatReader& reader_;
    Element element_;
    FileEntry entry_;
    OffsetRule rule_;
    int bits_ = 0;
};

std::optional<NestedNumbers> TypedEntryReader::nested(const char* key) {
    const JsonValue* value = element_.value(key);
    if (value == nullptr) return std::nullopt;
    NestedNumbers numbers;
    if (flatten(*value, 0, true, numbers)) return numbers;
    element_.fault(
        fmt::format("{}: expected a number or even lists of numbers, found {}", key, shown(*value)));
    return std::nullopt;
}

void TypedEntryReader::read_float(const std::string& type) {
    TensorEncoding& encoding = entry_.encoding;
    encoding.type = CodeType::floating;
    encoding.bits = float_bits(type);
    if (type != "float16" && type != "float32" && type != "float") encoding.float_name = type;
}

void TypedEntryReader::read_axis(const NestedNumbers& scales) {
    TensorEncoding& encoding = entry_.encoding;
    const std::optional<std::int64_t> axis = element_.integer("axis");
    const std::optional<std::int64_t> size = element_.integer("block_size");
    const auto rank = static_cast<std::int64_t>(scales.shape.size());
    if (size && *size > 0) {
        if (!axis || *axis < -rank || *axis >= rank) {
            element_.fault(fmt::format("expected an axis of blocks below {}, the depth of y_scale, found {}",
                                       rank, axis ? std::to_string(*axis) : "none"));
            return;
        }
        encoding.block_axis = static_cast<int>(*axis < 0 ? *axis + rank : *axis);
        encoding.block_size = *size;
        entry_.nesting = scales.shape;
        for (std::int64_t i = 0; i < rank; ++i) {
            const bool wide = scales.shape[static_cast<std::size_t>(i)] > 1 && i != *encoding.block_axis;
            if (wide && encoding.axis) {
                element_.fault(
                    "y_scale: expected blocks along one axis and channels along one other, found more");
            }
            if (wide) encoding.axis = static_cast<int>(i);
        }
        if (!encoding.axis && rank > 1) encoding.axis = *encoding.block_axis == 0 ? 1 : 0;
        return;
    }
    if (rank > 1)
        element_.fault(
            fmt::format("y_scale: expected a flat list without block_size, found {} levels", rank));
    if (rank == 1 && scales.values.size() > 1 && !axis)
        element_.fault("expected an axis beside a list of scales, found none");
    if (axis && rank == 1) encoding.axis = static_cast<int>(*axis);
}

// Scales in the order of the file, channel by channel.
void TypedEntryReader::order_by_channel(const NestedNumbers& scales, std::vector<double>& values) const {
    const TensorEncoding& encoding = entry_.encoding;
    if (!encoding.per_block() || !encoding.axis || *encoding.axis < *encoding.block_axis ||
        values.size() != scales.values.size())
        return;
    const auto channels = static_cast<std::size_t>(scales.shape[static_cast<std::size_t>(*encoding.axis)]);
    const std::vector<double> rows = values;
    const std::size_t blocks = rows.size() / channels;
    for (std::size_t i = 0; i < rows.size(); ++i) values[(i % channels) * blocks + i / channels] = rows[i];
}

void TypedEntryReader::read_grid(const IntegerType& type) {
    std::optional<NestedNumbers> scales = nested("y_scale");
    if (!scales && element_.good()) element_.fault("expected y_scale, found none");
    if (!element_.good()) return;
    std::optional<NestedNumbers> zero_points = nested("y_zero_point");
    read_axis(*scales);
    if (!element_.good()) return;
    const std::size_t count = scales->values.size();
    if (!zero_points) zero_points.emplace(NestedNumbers{{}, {0}});
    if (zero_points->values.size() == 1) zero_points->values.resize(count, zero_points->values[0]);
    if (zero_points->values.size() != count) {
        element_.fault(fmt::format("y_zero_point: expected {} numbers, as many as y_scale, found {}", count,
                                   zero_points->values.size()));
        return;
    }
    order_by_channel(*scales, scales->values);
    order_by_channel(*scales, zero_points->values);
    const bool centred = std::all_of(zero_points->values.begin(), zero_points->values.end(),
                                     [](double value) { return value == 0; });
    for (std::size_t i = 0; i < count; ++i) {
        GivenNumbers& given = entry_.given.emplace_back();
        given.scale = scales->values[i];
        given.offset = zero_points->values[i];
        given.symmetric = type.is_signed && centred;
    }
}

void TypedEntryReader::read_lpbq(const IntegerType& type) {
    std::optional<NestedNumbers> multiples = nested("per_block_int_scale");
    const std::optional<NestedNumbers> channels = nested("per_channel_float_scale");
    if (!multiples || !channels) {
        if (element_.good())
            element_.fault(
                "expected per_block_int_scale and per_channel_float_scale together, found one alone");
        return;
    }
    read_axis(*multiples);
    if (!element_.good()) return;
    TensorEncoding& encoding = entry_.encoding;
    element_.value("y_zero_point");
    order_by_channel(*multiples, multiples->values);
    const std::size_t count = multiples->values.size();
    const std::size_t channel_count = channels->values.size();
    if (!encoding.per_block() || count % channel_count != 0) {
        element_.fault(fmt::format(
            "per_block_int_scale: expected a block_size and a multiple of {} channels, found {} numbers",
            channel_count, count));
        return;
    }
    const int most = 1 << type.bits;
    BlockMultiples& lpbq = encoding.lpbq.emplace();
    lpbq.decompressed_bits = 2 * type.bits;
    lpbq.channels = channels->values;
    for (std::size_t i = 0; i < count; ++i) {
        const double multiple = multiples->values[i];
        if (!(multiple >= 1 && multiple <= most && multiple == std::round(multiple))) {
            element_.fault(
                fmt::format("per_block_int_scale: expected whole numbers 1 to {}, found {}", most, multiple));
            return;
        }
        lpbq.multiples.push_back(static_cast<int>(multiple));
        GivenNumbers& given = entry_.given.emplace_back();
        given.scale = lpbq.channels[i / (count / channel_count)] * multiple;
        given.offset = 0;
        given.symmetric = true;
    }
}

void TypedEntryReader::read() {
    element_.value("name");
    const std::optional<std::string> type = element_.text("output_dtype");
    if (!type && element_.good()) element_.fault("expected output_dtype, found none");
    if (!element_.good()) return;
    const std::optional<IntegerType> integer = integer_type(*type);
    if (integer) {
        bits_ = integer->bits;
        rule_.expected = integer->is_signed ? OffsetConvention::signed_positive : OffsetConvention::positive;
        rule_.symmetric_zero = false;
        if (element_.has("per_block_int_scale") && bits_ <= 8) {
            read_lpbq(*integer);
        } else {
            read_grid(*integer);
        }
    } else if (float_bits(*type) > 0) {
        read_float(*type);
    } else {
        element_.fault(fmt::format(
            "output_dtype: expected an integer or float type of ONNX such as \"uint8\", found \"{}\"",
            printable(*type)));
    }
    entry_.unknown.push_back(element_.unknown());
    if (element_.good()) reader_.add(std::move(entry_), bits_, rule_);
}

class Aimet2 : public Format {
  public:
    std::string name() const override { return "aimet-2.0.0"; }
    std::string summary() const override {
        return "AIMET's encodings of version 2.0.0: one list of named entries in the terms of ONNX's "
               "QuantizeLinear "
               "(output_dtype, y_scale, y_zero_point, axis, block_size). Read by AIMET and by QAIRT, whose "
               "Quantizer V2 "
               "it turns on: tensors without an entry become 16-bit floats there, biases too. y_zero_point "
               "is ONNX's, "
               "positive for unsigned types; files with Qualcomm's negative one are read too.";
    }
    std::string limits() const override {
        return "Has no sections, no min and max, no symmetric flag beside signed types, and only the widths "
               "2, 4, 8, 16 "
               "and 32; 16-bit floats are expressed by having no entry.";
    }
    std::string suffix() const override { return ".json"; }
    bool writable() const override { return true; }
    int recognise(const FormatReader& reader) const override {
        const JsonValue* list = reader.member("encodings");
        if (list == nullptr || !list->is(JsonValue::Kind::array)) return 0;
        const std::string version = version_of(reader);
        return version == "2.0.0" || version == "2.1.0" ? 100 : version.empty() ? 80 : 0;
    }
    void read(FormatReader& reader) const override;

  protected:
    std::string write(const EncodingFile& file, Remarks& remarks) const override;
};

void Aimet2::read(FormatReader& reader) const {
    if (version_of(reader).empty())
        reader.note_file("has no version; QAIRT reads this form only where it is \"2.0.0\"");
    read_other_keys(reader, {"version", "encodings"});
    for (const JsonValue& item : reader.member("encodings")->items) {
        const JsonValue* name = item.is(JsonValue::Kind::object) ? item.find("name") : nullptr;
        if (name != nullptr && name->is(JsonValue::Kind::string)) {
            TypedEntryReader(reader, item, name->string).read();
        } else {
            reader.fault(
                "", reader.line(item),
                fmt::format("encodings: expected an entry with a name, found {}",
                            name != nullptr ? fmt::format("the name {}", shown(*name)) : shown(item)));
        }
    }
}

// Whether the codes are written as a signed type: those of symmetric encodings around the centre.
bool is_signed(const TensorEncoding& encoding) {
    return std::all_of(encoding.encodings.begin(), encoding.encodings.end(), [](const Encoding& one) {
        return one.symmetric && one.offset == -(std::int64_t{1} << (one.bits - 1));
    });
}

bool can_express(const FileEntry& entry, Losses& losses) {
    const TensorEncoding& encoding = entry.encoding;
    const auto left_out = [&](const std::string& what) {
        losses.add(fmt::format("{} cannot be expressed; left out", what), encoding.tensor);
        return false;
    };
    if (encoding.type == CodeType::floating) {
        losses.add("a float type is expressed by having no entry; left out", encoding.tensor);
        return false;
    }
    if (encoding.encodings.empty()) return left_out("a width without a range");
    if (!integer_type(fmt::format("int{}", encoding.width())))
        return left_out(fmt::format("a width of {} bits", encoding.width()));
    if (encoding.per_block() && entry.nesting.empty()) {
        losses.add("blocks are nested as deep as the tensor, which a model tells; left out", encoding.tensor);
        return false;
    }
    if (encoding.per_block() && entry.encoding.lpbq &&
        encoding.lpbq->decompressed_bits != 2 * encoding.width()) {
        return left_out("LPBQ whose width is not twice the compressed one");
    }
    const Encoding& first = encoding.encodings.front();
    if (first.symmetric && !is_signed(encoding)) {
        losses.add("that they are symmetric is not recorded", encoding.tensor);
    }
    return true;
}

// Values channel by channel, in lists nested as `nesting` says.
template <typename Value, typename Write>
void write_nested(JsonWriter& json, const TensorEncoding& encoding, const Shape& nesting,
                  const std::vector<Value>& values, Write write) {
    const auto block_axis = static_cast<std::size_t>(*encoding.block_axis);
    const auto blocks = static_cast<std::size_t>(nesting[block_axis]);
    const auto level = [&](const auto& self, std::size_t depth, std::size_t channel,
                           std::size_t block) -> void {
        if (depth == nesting.size()) {
            write(values[channel * blocks + block]);
            return;
        }
        json.begin_array();
        for (std::size_t i = 0; i < static_cast<std::size_t>(nesting[depth]); ++i) {
            const bool is_channel = encoding.axis && depth == static_cast<std::size_t>(*encoding.axis);
            self(self, depth + 1, is_channel ? i : channel, depth == block_axis ? i : block);
        }
        json.end_array();
    };
    level(level, 0, 0, 0);
}

// Values one a channel, or a single one.
template <typename Value, typename Write>
void write_values(JsonWriter& json, const FileEntry& entry, const std::vector<Value>& values, Write write) {
    if (entry.encoding.per_block()) {
        write_nested(json, entry.encoding, entry.nesting, values, write);
    } else if (!entry.encoding.axis) {
        write(values.front());
    } else {
        json.begin_array();
        for (const Value& value : values) write(value);
        json.end_array();
    }
}

void write_lpbq(JsonWriter& json, const FileEntry& entry) {
    const BlockMultiples& lpbq = *entry.encoding.lpbq;
    json.key("per_block_int_scale");
    write_nested(json, entry.encoding, entry.nesting, lpbq.multiples, [&](int one) { json.integer(one); });
    Shape channels = entry.nesting;
    channels[static_cast<std::size_t>(*entry.encoding.block_axis)] = 1;
    json.key("per_channel_float_scale");
    write_nested(json, entry.encoding, channels, lpbq.channels, [&](double scale) { json.real(scale); });
}

void write_entry(JsonWriter& json, const FileEntry& entry, Losses& losses) {
    const TensorEncoding& encoding = entry.encoding;
    losses.unknown_keys(entry);
    const bool centred = is_signed(encoding);
    json.begin_object();
    json.key("name").string(encoding.tensor);
    json.key("output_dtype").string(fmt::format("{}int{}", centred ? "" : "u", encoding.width()));
    if (encoding.lpbq) {
        write_lpbq(json, entry);
    } else {
        json.key("y_scale");
        write_values(json, entry, encoding.encodings, [&](const Encoding& one) { json.real(one.scale); });
        const bool zeros = std::all_of(encoding.encodings.begin(), encoding.encodings.end(),
                                       [](const Encoding& one) { return one.offset == 0; });
        if (!centred && !zeros) {
            json.key("y_zero_point");
            write_values(json, entry, encoding.encodings,
                         [&](const Encoding& one) { json.integer(one.zero_point()); });
        }
    }
    if (encoding.per_block()) {
        json.key("axis").integer(*encoding.block_axis);
        json.key("block_size").integer(encoding.block_size);
    } else if (encoding.axis) {
        json.key("axis").integer(*encoding.axis);
    }
    for (const UnknownKey& one : losses.kept_keys(entry, 0)) json.key(one.key).raw(one.json);
    json.end_object();
}

std::string Aimet2::write(const EncodingFile& file, Remarks& remarks) const {
    JsonWriter json;
    Losses losses(name(), file);
    json.begin_object();
    json.key("version").string(file.format == name() && file.version == "2.1.0" ? file.version : "2.0.0");
    json.key("encodings").begin_array();
    for (const FileEntry& entry : file.entries) {
        if (can_express(entry, losses)) write_entry(json, entry, losses);
    }
    json.end_array();
    for (const UnknownKey& one : losses.kept_keys({})) json.key(one.key).raw(one.json);
    json.end_object();
    losses.report(remarks);
    return json.text();
}

}  // namespace

const Format& aimet_200_format() {
    static const Aimet2 format;
    return format;
}

}  // namespace qcalib
