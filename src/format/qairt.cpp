#include "base/error.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/element.h"
#include "format/format_reader.h"

namespace qcalib {

namespace {

// QNN's data types: the high byte says the kind, the low byte the width in decimal digits (0x0416: an
// unsigned fixed point type of 16 bits).
constexpr int signed_fixed_point = 0x03;
constexpr int unsigned_fixed_point = 0x04;

constexpr int static_tensor = 4;  // QNN_TENSOR_TYPE_STATIC

int kind_of(std::int64_t type) {
    return static_cast<int>((type >> 8) & 0xff);
}

int width_of(std::int64_t type) {
    return static_cast<int>(((type >> 4) & 0xf) * 10 + (type & 0xf));
}

class QairtDump : public Format {
  public:
    std::string name() const override { return "qairt-dump"; }
    std::string summary() const override {
        return "The graph that QAIRT's tools dump as JSON (<model>_net.json and the encodings shipped beside "
               "a DLC): "
               "graph.tensors.<name>.quant_params. What qairt-quantizer --dump_encoding_json writes is "
               "aimet-0.6.1.";
    }
    std::string limits() const override {
        return "Only read; tensors without quantization parameters are passed over.";
    }
    std::string suffix() const override { return ".json"; }
    bool writable() const override { return false; }
    int recognise(const FormatReader& reader) const override {
        return tensors_of(reader) != nullptr ? 90 : 0;
    }
    void read(FormatReader& reader) const override;

  protected:
    std::string write(const EncodingFile& /*file*/, Remarks& /*remarks*/) const override { return ""; }

  private:
    static const JsonValue* tensors_of(const FormatReader& reader);
    static void read_tensor(FormatReader& reader, const std::string& name, const JsonValue& tensor);
};

const JsonValue* object_in(const JsonValue* value, std::string_view key) {
    const JsonValue* found = value == nullptr ? nullptr : value->find(key);
    return found != nullptr && found->is(JsonValue::Kind::object) ? found : nullptr;
}

const JsonValue* QairtDump::tensors_of(const FormatReader& reader) {
    return object_in(object_in(reader.object(), "graph"), "tensors");
}

GivenNumbers read_given(Element& element) {
    GivenNumbers given;
    given.scale = element.number("scale");
    given.offset = element.number("offset");
    given.min = element.number("minimum");
    given.max = element.number("maximum");
    given.symmetric = element.boolean("is_symmetric");
    return given;
}

void QairtDump::read_tensor(FormatReader& reader, const std::string& name, const JsonValue& tensor) {
    const JsonValue* parameters = object_in(&tensor, "quant_params");
    const JsonValue* single = object_in(parameters, "scale_offset");
    const JsonValue* channels = object_in(parameters, "axis_scale_offset");
    if (single == nullptr && channels == nullptr) return;
    Element facts(reader, tensor, name);
    const std::int64_t type = facts.integer("data_type").value_or(0);
    FileEntry entry;
    entry.encoding.tensor = name;
    entry.line = reader.line(tensor);
    entry.section = facts.has("type") && facts.integer("type") == static_tensor ? Section::parameter
                                                                                : Section::activation;
    Element holder(reader, channels != nullptr ? *channels : *single, name);
    const bool fixed_point = kind_of(type) == signed_fixed_point || kind_of(type) == unsigned_fixed_point;
    const int bits = holder.has("bitwidth") ? holder.bits("bitwidth").value_or(0)
                     : fixed_point          ? width_of(type)
                                            : 0;
    if (!facts.good() || !holder.good()) return;
    if (bits == 0) {
        if (holder.number("scale").value_or(0) != 0) {
            reader.note("has a scale but no width of fixed point codes; left out", name);
        }
        return;
    }
    OffsetRule rule;
    if (kind_of(type) == signed_fixed_point) rule.expected = OffsetConvention::signed_negative;
    if (channels == nullptr) {
        entry.given.push_back(read_given(holder));
        entry.unknown.push_back(holder.unknown());
    } else {
        entry.encoding.axis = static_cast<int>(holder.integer("axis").value_or(0));
        const JsonValue* list = channels->find("scale_offsets");
        for (const JsonValue& item : list == nullptr ? std::vector<JsonValue>{} : list->items) {
            Element element(reader, item, name);
            entry.given.push_back(read_given(element));
            if (!element.good()) return;
        }
        if (entry.given.empty()) return holder.fault("axis_scale_offset: expected scale_offsets, found none");
    }
    if (bits < 2 || bits > 32) return holder.fault(fmt::format("expected 2 to 32 bits, found {}", bits));
    if (holder.good()) reader.add(std::move(entry), bits, rule);
}

void QairtDump::read(FormatReader& reader) const {
    const JsonValue& tensors = *tensors_of(reader);
    for (std::size_t i = 0; i < tensors.items.size(); ++i) {
        if (tensors.items[i].is(JsonValue::Kind::object))
            read_tensor(reader, tensors.keys[i], tensors.items[i]);
    }
}

}  // namespace

const Format& qairt_format() {
    static const QairtDump format;
    return format;
}

}  // namespace qcalib
