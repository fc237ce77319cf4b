#include <bit>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "format/all_formats.h"
#include "format/format_reader.h"

namespace qcalib {

namespace {

constexpr int cache_bits = 8;

class TensorrtCache : public Format {
  public:
    std::string name() const override { return "tensorrt-cache"; }
    std::string summary() const override {
        return "TensorRT's calibration cache: a line that starts with TRT-, then lines \"name: scale\", the "
               "scale as the "
               "hexadecimal bits of a float32. Symmetric 8-bit encodings.";
    }
    std::string limits() const override {
        return "Only read; it is bound to the version of TensorRT that wrote it.";
    }
    std::string suffix() const override { return ".cache"; }
    bool writable() const override { return false; }
    int recognise(const FormatReader& reader) const override {
        return reader.json() == nullptr && reader.text().starts_with("TRT-") ? 100 : 0;
    }
    void read(FormatReader& reader) const override;

  protected:
    std::string write(const EncodingFile& /*file*/, Remarks& /*remarks*/) const override { return ""; }
};

// The float32 of these hexadecimal digits (leading zeros may be missing), or NaN.
double float_of(std::string_view digits) {
    std::uint32_t bits = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nan("");
    return std::bit_cast<float>(bits);
}

void TensorrtCache::read(FormatReader& reader) const {
    std::size_t line = 0;
    for (const std::string& row : split(reader.text(), '\n')) {
        const std::string_view content = trim(row);
        if (++line == 1) {
            reader.file().version = content;
            continue;
        }
        if (content.empty()) continue;
        const std::size_t colon = content.rfind(':');
        if (colon == std::string_view::npos) {
            reader.fault(
                "", line,
                fmt::format("expected \"name: scale\", found '{}'", printable(content.substr(0, 40))));
            continue;
        }
        FileEntry entry;
        entry.encoding.tensor = trim(content.substr(0, colon));
        entry.line = line;
        const std::string_view digits = trim(content.substr(colon + 1));
        const double scale = float_of(digits);
        if (scale == 0) {
            reader.note("the scale is 0, so there is no range; left out", entry.encoding.tensor);
            continue;
        }
        if (!(std::isfinite(scale) && scale > 0)) {
            reader.fault(entry.encoding.tensor, line,
                         fmt::format("expected the bits of a float32 above 0, found '{}'",
                                     printable(digits.substr(0, 40))));
            continue;
        }
        GivenNumbers& given = entry.given.emplace_back();
        given.scale = scale;
        given.offset = -(1 << (cache_bits - 1));
        given.symmetric = true;
        reader.add(std::move(entry), cache_bits, {});
    }
}

}  // namespace

const Format& tensorrt_format() {
    static const TensorrtCache format;
    return format;
}

}  // namespace qcalib
