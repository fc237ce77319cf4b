#include "audit/quantizer_log.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"

namespace qcalib {

namespace {

constexpr std::string_view layer_marker = "Setting activation for layer:";
constexpr std::string_view buffer_marker = " and buffer:";

// The first line of a pair: which tensor the next row is of.
std::optional<FoundTensor> parse_heading(std::string_view line) {
    const std::size_t start = line.find(layer_marker);
    if (start == std::string_view::npos) return std::nullopt;
    const std::string_view rest = line.substr(start + layer_marker.size());
    const std::size_t buffer = rest.rfind(buffer_marker);
    FoundTensor tensor;
    tensor.kind = FoundTensor::Kind::activation;
    tensor.layer = trim(rest.substr(0, buffer));
    if (buffer != std::string_view::npos) tensor.name = trim(rest.substr(buffer + buffer_marker.size()));
    return tensor;
}

// Whether it is the second line of a pair, or what is left of one: "bw: 8, ...".
bool looks_like_row(std::string_view line) {
    const std::optional<PrintedNumber> bits = take_number(line, "bw:");
    return bits.has_value();
}

// The second line of a pair, or nothing where a field is missing. A last line that is cut off may have lost
// digits of its last number, which is printed with as many decimals as the others.
std::optional<FoundEncoding> parse_row(std::string_view line, bool complete) {
    const auto bits = take_number(line, "bw:");
    const auto min = take_number(line, "min:");
    const auto max = take_number(line, "max:");
    const auto scale = take_number(line, "delta:");
    const auto offset = take_number(line, "offset:");
    if (!bits || !min || !max || !scale || !offset) return std::nullopt;
    if (!complete && offset->decimals < min->decimals) return std::nullopt;
    if (!(bits->value >= 0 && bits->value <= 64) || bits->value != std::floor(bits->value))
        return std::nullopt;
    FoundEncoding encoding;
    encoding.bits = static_cast<int>(bits->value);
    encoding.min = *min;
    encoding.max = *max;
    encoding.scale = scale;
    encoding.offset = offset;
    return encoding;
}

// Puts the two lines of each pair together.
class PairReader {
  public:
    PairReader(const LogText& log, ConverterReport& report, std::vector<std::string>& remarks)
        : log_(log), report_(report), remarks_(remarks) {}

    std::size_t understood() const { return understood_; }

    void take(const LogLine& line) {
        if (auto heading = parse_heading(line.text)) {
            give_up("the next row's heading comes first");
            heading->where = log_.where(line);
            ++understood_;
            if (heading->name.empty()) {
                remark(line, "expected 'and buffer: NAME' behind the layer");
            } else {
                pending_ = std::move(heading);
            }
        } else if (looks_like_row(line.text)) {
            take_row(line);
        }
    }

    void finish() { give_up("the log ends before it"); }

  private:
    void take_row(const LogLine& line) {
        const auto encoding = parse_row(line.text, line.complete);
        if (!encoding) {
            if (pending_)
                remark(line, fmt::format("expected 'bw: .., min: .., max: .., delta: .., offset: ..' of '{}'",
                                         printable(pending_->name)));
            pending_.reset();
        } else if (!pending_) {
            remark(line, "expected 'Setting activation for layer: ..' before it");
        } else {
            ++understood_;
            pending_->encodings = {*encoding};
            normalise_signed_storage(*pending_);
            report_.add(std::move(*pending_), true, remarks_);
            report_.shows_activations = true;
            report_.quantizer_ran = true;
            pending_.reset();
        }
    }

    void remark(const LogLine& line, std::string_view expected) {
        remarks_.push_back(
            fmt::format("{}: {}, found {}: left out", log_.where(line), expected, quoted(line.text)));
    }

    void give_up(std::string_view why) {
        if (pending_)
            remarks_.push_back(
                fmt::format("{}: expected the range of '{}' behind its heading, but {}: left out",
                            pending_->where, printable(pending_->name), why));
        pending_.reset();
    }

    const LogText& log_;
    ConverterReport& report_;
    std::vector<std::string>& remarks_;
    std::optional<FoundTensor> pending_;
    std::size_t understood_ = 0;
};

}  // namespace

std::string QuantizerLog::summary() const {
    return "What snpe-dlc-quantize 1.x prints: a line 'Setting activation for layer: L and buffer: B' and a "
           "line 'bw: 8, min: .., max: .., delta: .., offset: ..' for each activation of the DLC, in the "
           "order "
           "of its layers. It shows no parameters. Other lines may lie between the two.";
}

std::size_t QuantizerLog::read(const LogText& log, ConverterReport& report,
                               std::vector<std::string>& remarks) const {
    PairReader pairs(log, report, remarks);
    for (const LogLine& line : log.lines()) pairs.take(line);
    pairs.finish();
    return pairs.understood();
}

}  // namespace qcalib
