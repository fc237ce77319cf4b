#include "dataset/step_reader.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/yaml_reader.h"

namespace qcalib {

namespace {

constexpr int largest_side = 65535;

int parse_side(const std::string& text, std::string_view what) {
    const std::int64_t value = parse_integer(text, what);
    if (value < 1 || value > largest_side) {
        fail("{}: expected sides of 1 to {} pixels, found {}", what, largest_side, value);
    }
    return static_cast<int>(value);
}

// "0.25" or "1/4".
double parse_quotient(std::string_view text, std::string_view what) {
    const std::size_t slash = text.find('/');
    const double value = slash == std::string_view::npos ? parse_real(trim(text), what)
                                                         : parse_real(trim(text.substr(0, slash)), what) /
                                                               parse_real(trim(text.substr(slash + 1)), what);
    if (!std::isfinite(value)) fail("{}: expected finite numbers, found {}", what, value);
    return value;
}

std::vector<double> parse_quotients(std::string_view text, std::string_view what) {
    text = trim(text);
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    std::vector<double> values;
    for (const std::string& part : split(text, ',')) values.push_back(parse_quotient(part, what));
    return values;
}

bool parse_boolean(const std::string& text, std::string_view what) {
    if (text == "true") return true;
    if (text == "false") return false;
    fail("{}: expected true or false, found '{}'", what, printable(text));
}

std::string parameter_names(const StepInfo& info) {
    std::vector<std::string> names;
    for (const StepParameterInfo& parameter : info.parameters) names.push_back(parameter.name);
    return join(names, ", ");
}

}  // namespace

PictureSize parse_picture_size(const std::string& text, std::string_view what) {
    const std::vector<std::string> parts = split(text, 'x');
    if (parts.size() != 2)
        fail("{}: expected WIDTHxHEIGHT such as 640x480, found '{}'", what, printable(text));
    return {parse_side(parts[0], what), parse_side(parts[1], what)};
}

StepReader::StepReader(const StepText& text, const StepInfo& info, std::string_view kind,
                       const StepFault& fault)
    : text_(text), fault_(fault) {
    std::vector<std::string> names;
    for (const StepParameterInfo& parameter : info.parameters) names.push_back(parameter.name);
    for (const auto& [name, value] : text.parameters) {
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        const std::string hint = did_you_mean(name, names);
        this->fault(name, fmt::format("{} {} has no parameter '{}'{}", kind, info.name, printable(name),
                                      !hint.empty()   ? hint
                                      : names.empty() ? "; it has none"
                                                      : "; it has " + parameter_names(info)));
    }
}

void StepReader::fault(const std::string& parameter, const std::string& text) {
    ok_ = false;
    fault_(parameter, text);
}

template <typename T>
T StepReader::read(const std::string& parameter, T absent,
                   const std::function<T(const std::string&)>& parse) {
    const auto found = text_.parameters.find(parameter);
    if (found == text_.parameters.end()) return absent;
    try {
        return parse(found->second);
    } catch (const Error& error) {
        fault(parameter, error.what());
        return absent;
    }
}

PictureSize StepReader::size(const std::string& parameter, PictureSize absent) {
    return read<PictureSize>(parameter, absent, [&](const std::string& text) {
        // One number is a square.
        if (text.find('x') == std::string::npos && !text.empty() &&
            text.find_first_not_of("0123456789") == std::string::npos) {
            const int side = parse_side(text, parameter);
            return PictureSize{side, side};
        }
        return parse_picture_size(text, parameter);
    });
}

int StepReader::side(const std::string& parameter, int absent) {
    return read<int>(parameter, absent, [&](const std::string& text) { return parse_side(text, parameter); });
}

double StepReader::real(const std::string& parameter, double absent) {
    return read<double>(parameter, absent,
                        [&](const std::string& text) { return parse_quotient(text, parameter); });
}

std::vector<double> StepReader::reals(const std::string& parameter, const std::vector<double>& absent) {
    return read<std::vector<double>>(parameter, absent, [&](const std::string& text) {
        std::vector<double> values = parse_quotients(text, parameter);
        if (values.size() != 1 && values.size() != 3 && values.size() != 4) {
            fail("{}: expected one number or one for each of 3 or 4 channels, found {} numbers", parameter,
                 values.size());
        }
        return values;
    });
}

bool StepReader::boolean(const std::string& parameter, bool absent) {
    return read<bool>(parameter, absent,
                      [&](const std::string& text) { return parse_boolean(text, parameter); });
}

std::size_t StepReader::choice(const std::string& parameter, std::span<const std::string> names,
                               std::size_t absent) {
    return read<std::size_t>(parameter, absent, [&](const std::string& text) -> std::size_t {
        const auto found = std::find(names.begin(), names.end(), text);
        if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
        fail("{}: expected {}, found '{}'{}", parameter, join(names, " or "), printable(text),
             did_you_mean(text, names));
    });
}

StepText parse_step_text(const std::string& text, std::string_view what) {
    const YAML::Node node = parse_yaml(text, std::string(what));
    if (node.IsScalar()) return {node.Scalar(), {}};
    const auto refuse = [&] [[noreturn]] {
        fail("{}: expected NAME or 'NAME: {{parameter: value, ...}}', found '{}'", what, printable(text));
    };
    if (!node.IsMap() || node.size() != 1 || !node.begin()->first.IsScalar()) refuse();
    StepText step{node.begin()->first.Scalar(), {}};
    const YAML::Node parameters = node.begin()->second;
    if (parameters.IsNull()) return step;
    if (!parameters.IsMap()) refuse();
    for (const auto& parameter : parameters) {
        if (!parameter.first.IsScalar()) refuse();
        std::string value;
        if (parameter.second.IsSequence()) {
            std::vector<std::string> parts;
            for (const YAML::Node& part : parameter.second) {
                if (!part.IsScalar()) refuse();
                parts.push_back(part.Scalar());
            }
            value = join(parts, ",");
        } else if (parameter.second.IsScalar()) {
            value = parameter.second.Scalar();
        } else {
            refuse();
        }
        if (!step.parameters.emplace(parameter.first.Scalar(), value).second) {
            fail("{}: parameter '{}' is given twice", what, printable(parameter.first.Scalar()));
        }
    }
    return step;
}

}  // namespace qcalib
