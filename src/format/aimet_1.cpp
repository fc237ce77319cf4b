#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/dictionary_form.h"
#include "format/element.h"
#include "format/format_reader.h"
#include "format/json_writer.h"
#include "format/losses.h"

namespace qcalib {

namespace {

constexpr std::array list_sections = {std::pair(Section::activation, "activation_encodings"),
                                      std::pair(Section::parameter, "param_encodings")};

const std::vector<std::string> encoding_types = {"PER_TENSOR", "PER_CHANNEL", "PER_BLOCK", "LPBQ", "VECTOR"};

// Reads one element of the lists of version 1.0.0.
class ListEntryReader {
  public:
    ListEntryReader(FormatReader& reader, const JsonValue& value, std::string tensor, Section section)
        : reader_(reader), element_(reader, value, tensor) {
        entry_.encoding.tensor = std::move(tensor);
        entry_.section = section;
        entry_.line = reader.line(value);
    }

    void read();

  private:
    void read_numbers();
    std::optional<double> at(const std::optional<std::vector<double>>& values, std::size_t index,
                             std::size_t count, const char* key);
    void read_layout();
    void read_lpbq();

    FormatReader& reader_;
    Element element_;
    FileEntry entry_;
    std::string type_;
    int bits_ = 0;
};

// Value `index` of `count`; a list of one stands for all.
std::optional<double> ListEntryReader::at(const std::optional<std::vector<double>>& values, std::size_t index,
                                          std::size_t count, const char* key) {
    if (!values) return std::nullopt;
    if (values->size() == count) return (*values)[index];
    if (values->size() == 1) return values->front();
    if (index == 0) {
        element_.fault(
            fmt::format("{}: expected {} numbers, as many as scales, found {}", key, count, values->size()));
    }
    return std::nullopt;
}

void ListEntryReader::read_numbers() {
    const auto scale = element_.numbers("scale");
    const auto offset = element_.numbers("offset");
    const auto min = element_.numbers("min");
    const auto max = element_.numbers("max");
    const std::optional<bool> symmetric = element_.boolean("is_sym");
    for (const char* plural : {"scales", "offsets"}) {
        if (element_.has(plural)) {
            element_.fault(fmt::format("expected {}, found {}",
                                       std::string(plural, std::char_traits<char>::length(plural) - 1),
                                       plural));
        }
    }
    if (!element_.good()) return;
    const std::size_t count = scale ? scale->size() : min ? min->size() : 0;
    if (scale.has_value() != offset.has_value()) {
        element_.fault(
            fmt::format("expected scale and offset together, found {} alone", scale ? "scale" : "offset"));
    } else if (count == 0) {
        element_.fault("expected a scale and an offset, found none");
    }
    for (std::size_t i = 0; i < count; ++i) {
        GivenNumbers& given = entry_.given.emplace_back();
        given.scale = at(scale, i, count, "scale");
        given.offset = at(offset, i, count, "offset");
        given.min = at(min, i, count, "min");
        given.max = at(max, i, count, "max");
        given.symmetric = symmetric;
        if (!element_.good()) return;
    }
}

void ListEntryReader::read_lpbq() {
    TensorEncoding& encoding = entry_.encoding;
    const std::optional<int> compressed = element_.bits("compressed_bw");
    const auto multiples = element_.numbers("per_block_int_scale");
    if (!compressed || !multiples) {
        if (element_.good())
            element_.fault("expected compressed_bw and per_block_int_scale of LPBQ, found none");
        return;
    }
    const std::size_t channels = entry_.given.size();
    const int most = bits_ > *compressed ? 1 << std::min(bits_ - *compressed, 24) : 0;
    if (*compressed >= bits_) {
        element_.fault(fmt::format("compressed_bw: expected below bw {}, found {}", bits_, *compressed));
    }
    if (channels == 0 || multiples->empty() || multiples->size() % channels != 0) {
        element_.fault(
            fmt::format("per_block_int_scale: expected a multiple of {} channels, found {} numbers", channels,
                        multiples->size()));
    }
    for (const double one : *multiples) {
        if (!(one >= 1 && one <= most && one == std::round(one))) {
            element_.fault(
                fmt::format("per_block_int_scale: expected whole numbers 1 to {}, found {}", most, one));
            break;
        }
    }
    if (!element_.good()) return;
    BlockMultiples& lpbq = encoding.lpbq.emplace();
    lpbq.decompressed_bits = bits_;
    std::vector<GivenNumbers> blocks;
    const std::size_t blocks_of_channel = multiples->size() / channels;
    for (const GivenNumbers& channel : entry_.given) lpbq.channels.push_back(channel.scale.value_or(0));
    for (std::size_t i = 0; i < multiples->size(); ++i) {
        lpbq.multiples.push_back(static_cast<int>((*multiples)[i]));
        GivenNumbers& block = blocks.emplace_back();
        block.scale = lpbq.channels[i / blocks_of_channel] * (*multiples)[i];
        block.offset = -static_cast<double>(std::int64_t{1} << (*compressed - 1));
        block.symmetric = true;
    }
    entry_.given = std::move(blocks);
    bits_ = *compressed;
}

void ListEntryReader::read_layout() {
    TensorEncoding& encoding = entry_.encoding;
    if (type_ == "PER_TENSOR" && entry_.given.size() != 1) {
        element_.fault(fmt::format("PER_TENSOR: expected one scale, found {}", entry_.given.size()));
    }
    if (type_ == "PER_CHANNEL" || type_ == "VECTOR") {
        encoding.axis = static_cast<int>(element_.integer("axis").value_or(0));
    }
    if (type_ != "PER_BLOCK" && type_ != "LPBQ") return;
    const std::optional<std::int64_t> size = element_.integer("block_size");
    if (!size || *size < 1) {
        if (element_.good())
            element_.fault(
                fmt::format("{}: expected a block_size above 0, found {}", type_, size.value_or(0)));
        return;
    }
    encoding.axis = 0;
    encoding.block_axis = 1;
    encoding.block_size = *size;
    if (type_ == "LPBQ") read_lpbq();
}

void ListEntryReader::read() {
    element_.value("name");
    TensorEncoding& encoding = entry_.encoding;
    encoding.type = element_.code_type("dtype");
    type_ = element_.text("enc_type").value_or("");
    const bool unnamed = type_.empty() && !element_.has("enc_type");
    if (unnamed)
        type_ = element_.has("scale") && element_.numbers("scale").value_or(std::vector<double>{}).size() > 1
                    ? "PER_CHANNEL"
                    : "PER_TENSOR";
    if (unnamed) reader_.note("there is no enc_type", encoding.tensor);
    if (std::find(encoding_types.begin(), encoding_types.end(), type_) == encoding_types.end()) {
        element_.fault(fmt::format("enc_type: expected one of {}, found \"{}\"{}", join(encoding_types, ", "),
                                   printable(type_), did_you_mean(type_, encoding_types)));
    }
    const char* width = !element_.has("bw") && element_.has("bitwidth") ? "bitwidth" : "bw";
    const std::optional<int> bits = element_.bits(width, encoding.type);
    if (!bits && element_.good()) element_.fault("expected bw, found none");
    bits_ = bits.value_or(0);
    if (encoding.type == CodeType::floating) {
        encoding.bits = bits_;
    } else if (element_.good()) {
        read_numbers();
        if (element_.good()) read_layout();
    }
    entry_.unknown.push_back(element_.unknown());
    if (element_.good()) reader_.add(std::move(entry_), bits_, OffsetRule{});
}

class Aimet1 : public Format {
  public:
    std::string name() const override { return "aimet-1.0.0"; }
    std::string summary() const override {
        return "AIMET's encodings of version 1.0.0: lists of named entries with bw, dtype, enc_type, is_sym, "
               "scale and "
               "offset, per tensor, per channel, per block and LPBQ. Read by QAIRT's and QNN's converters "
               "and by AIMET.";
    }
    std::string limits() const override {
        return "Has no min and max (they follow from scale and offset), no widths without a range, and no "
               "axis: channels "
               "are those of the output, blocks lie along the input's.";
    }
    std::string suffix() const override { return ".json"; }
    bool writable() const override { return true; }
    int recognise(const FormatReader& reader) const override;
    void read(FormatReader& reader) const override;

  protected:
    std::string write(const EncodingFile& file, Remarks& remarks) const override;

  private:
    static bool can_express(const FileEntry& entry, Losses& losses);
    static void write_entry(JsonWriter& json, const FileEntry& entry, Losses& losses);
};

bool has_lists(const FormatReader& reader) {
    return std::any_of(list_sections.begin(), list_sections.end(), [&](const auto& section) {
        const JsonValue* found = reader.member(section.second);
        return found != nullptr && found->is(JsonValue::Kind::array);
    });
}

int Aimet1::recognise(const FormatReader& reader) const {
    if (!has_lists(reader)) return 0;
    return version_of(reader) == "1.0.0" ? 100 : version_of(reader).empty() ? 80 : 0;
}

void Aimet1::read(FormatReader& reader) const {
    if (version_of(reader).empty()) {
        reader.note_file("has no version; QNN reads lists only where it is \"1.0.0\"");
    }
    read_other_keys(reader, {"version", "activation_encodings", "param_encodings"});
    for (const auto& [section, key] : list_sections) {
        const JsonValue* list = reader.member(key);
        if (list == nullptr) {
            reader.note_file(fmt::format("has no {}, which Qualcomm's tools expect even if empty", key));
            continue;
        }
        if (!list->is(JsonValue::Kind::array)) {
            reader.fault("", reader.line(*list),
                         fmt::format("{}: expected a list of entries, found {}", key, shown(*list)));
            continue;
        }
        for (const JsonValue& item : list->items) {
            const JsonValue* name = item.is(JsonValue::Kind::object) ? item.find("name") : nullptr;
            if (name != nullptr && name->is(JsonValue::Kind::string)) {
                ListEntryReader(reader, item, name->string, section).read();
            } else {
                reader.fault(
                    "", reader.line(item),
                    fmt::format("{}: expected an entry with a name, found {}", key,
                                name != nullptr ? fmt::format("the name {}", shown(*name)) : shown(item)));
            }
        }
    }
}

bool Aimet1::can_express(const FileEntry& entry, Losses& losses) {
    const TensorEncoding& encoding = entry.encoding;
    const auto left_out = [&](const std::string& what) {
        losses.add(fmt::format("{} cannot be expressed; left out", what), encoding.tensor);
        return false;
    };
    if (!encoding.float_name.empty()) return left_out(encoding.float_name);
    if (encoding.type == CodeType::integer && encoding.encodings.empty())
        return left_out("a width without a range");
    if (encoding.per_channel() && *encoding.axis != 0 && encoding.encodings.size() > 1) {
        losses.add("the axis of the channels is not recorded; the operator implies it", encoding.tensor);
    }
    if (encoding.per_block() && (encoding.axis != 0 || encoding.block_axis != 1)) {
        losses.add("the axis of the blocks is not recorded; the operator implies it", encoding.tensor);
    }
    return true;
}

template <typename Value, typename Write>
void write_list(JsonWriter& json, const char* key, const std::vector<Value>& values, Write write) {
    json.key(key).begin_array();
    for (const Value& value : values) write(value);
    json.end_array();
}

// The numbers of an LPBQ entry: the scales of its channels and the whole multiples of its blocks.
void write_lpbq(JsonWriter& json, const TensorEncoding& encoding) {
    const BlockMultiples& lpbq = *encoding.lpbq;
    json.key("bw").integer(lpbq.decompressed_bits);
    json.key("compressed_bw").integer(encoding.width());
    json.key("block_size").integer(encoding.block_size);
    json.key("is_sym").boolean(true);
    write_list(json, "scale", lpbq.channels, [&](double scale) { json.real(scale); });
    write_list(json, "offset", lpbq.channels,
               [&](double) { json.integer(-(std::int64_t{1} << (lpbq.decompressed_bits - 1))); });
    write_list(json, "per_block_int_scale", lpbq.multiples, [&](int multiple) { json.integer(multiple); });
}

void Aimet1::write_entry(JsonWriter& json, const FileEntry& entry, Losses& losses) {
    const TensorEncoding& encoding = entry.encoding;
    losses.unknown_keys(entry);
    json.begin_object();
    json.key("name").string(encoding.tensor);
    json.key("dtype").string(encoding.type == CodeType::floating ? "FLOAT" : "INT");
    json.key("enc_type")
        .string(encoding.lpbq          ? "LPBQ"
                : encoding.per_block() ? "PER_BLOCK"
                : encoding.axis        ? "PER_CHANNEL"
                                       : "PER_TENSOR");
    if (encoding.lpbq) {
        write_lpbq(json, encoding);
    } else {
        json.key("bw").integer(encoding.width());
        if (encoding.per_block()) json.key("block_size").integer(encoding.block_size);
        if (!encoding.encodings.empty()) {
            json.key("is_sym").boolean(encoding.encodings.front().symmetric);
            write_list(json, "scale", encoding.encodings, [&](const Encoding& one) { json.real(one.scale); });
            write_list(json, "offset", encoding.encodings,
                       [&](const Encoding& one) { json.integer(one.offset); });
        }
    }
    for (const UnknownKey& one : losses.kept_keys(entry, 0)) json.key(one.key).raw(one.json);
    json.end_object();
}

std::string Aimet1::write(const EncodingFile& file, Remarks& remarks) const {
    JsonWriter json;
    Losses losses(name(), file);
    json.begin_object();
    json.key("version").string("1.0.0");
    for (const auto& [section, key] : list_sections) {
        json.key(key).begin_array();
        for (const FileEntry& entry : file.entries) {
            const bool parameters = section == Section::parameter;
            if ((entry.section == Section::parameter) != parameters || !can_express(entry, losses)) continue;
            if (entry.section == Section::any) {
                losses.add("written as activations; a model tells which are parameters",
                           entry.encoding.tensor);
            }
            write_entry(json, entry, losses);
        }
        json.end_array();
    }
    for (const UnknownKey& one : losses.kept_keys({"quantizer_args", "excluded_layers"}))
        json.key(one.key).raw(one.json);
    json.end_object();
    losses.report(remarks);
    return json.text();
}

}  // namespace

const Format& aimet_100_format() {
    static const Aimet1 format;
    return format;
}

}  // namespace qcalib
