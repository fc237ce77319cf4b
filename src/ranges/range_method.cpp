#include "ranges/range_method.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

// The methods, one line each; `name` is made by name_method() in ranges/<name>.cpp.
#define QCALIB_RANGE_METHODS(METHOD) \
    METHOD(minmax)                   \
    METHOD(percentile)               \
    METHOD(mse)                      \
    METHOD(sqnr)                     \
    METHOD(entropy)                  \
    METHOD(aciq)                     \
    METHOD(mean)                     \
    METHOD(ema)                      \
    METHOD(sample_percentile)        \
    METHOD(sample_moving_average)

namespace qcalib {

#define QCALIB_DECLARE(name) const RangeMethod& name##_method();
QCALIB_RANGE_METHODS(QCALIB_DECLARE)
#undef QCALIB_DECLARE

namespace {

std::vector<std::string> method_names() {
    std::vector<std::string> names;
    for (const RangeMethod* method : range_methods()) names.push_back(method->name());
    return names;
}

// "mse", "ema:momentum=0.9": whether what comes before the first ':' is a method.
bool names_method(std::string_view text) {
    const std::string_view name = trim(text.substr(0, text.find(':')));
    const auto methods = range_methods();
    return std::any_of(methods.begin(), methods.end(),
                       [&](const RangeMethod* method) { return method->name() == name; });
}

const RangeMethod& find_method(const std::string& name) {
    for (const RangeMethod* method : range_methods()) {
        if (method->name() == name) return *method;
    }
    const std::vector<std::string> names = method_names();
    fail("method '{}': unknown{}; the methods are {}", printable(name), did_you_mean(name, names),
         join(names, ", "));
}

const MethodParameter& find_parameter(const RangeMethod& method,
                                      const std::vector<MethodParameter>& parameters,
                                      const std::string& name) {
    std::vector<std::string> names;
    for (const MethodParameter& parameter : parameters) {
        if (parameter.name == name) return parameter;
        names.push_back(parameter.name);
    }
    const std::string known =
        names.empty() ? "it has no parameters" : "its parameters are " + join(names, ", ");
    fail("method {}: unknown parameter '{}'{}; {}", method.name(), printable(name), did_you_mean(name, names),
         known);
}

double parse_value(const RangeMethod& method, const MethodParameter& parameter, std::string_view text) {
    const std::string what = fmt::format("method {}, parameter {}", method.name(), parameter.name);
    const double value = parse_real(text, what);
    if (!(value >= parameter.least && value <= parameter.greatest)) {
        fail("{}: expected a number from {} to {}, found {}", what, parameter.least, parameter.greatest,
             value);
    }
    if (parameter.whole && value != std::floor(value))
        fail("{}: expected a whole number, found {}", what, value);
    return value;
}

// Puts the value of "name=value" into `values`.
void parse_assignment(const RangeMethod& method, const std::vector<MethodParameter>& parameters,
                      const std::string& text, MethodParameters& values) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
        fail("method {}: expected name=value, found '{}'", method.name(), printable(text));
    }
    const std::string name(trim(std::string_view(text).substr(0, equals)));
    const MethodParameter& parameter = find_parameter(method, parameters, name);
    const double value = parse_value(method, parameter, trim(std::string_view(text).substr(equals + 1)));
    if (!values.emplace(name, value).second)
        fail("method {}: parameter {} is given twice", method.name(), name);
}

}  // namespace

std::span<const RangeMethod* const> range_methods() {
#define QCALIB_ADDRESS(name) &name##_method(),
    static const std::array methods = {QCALIB_RANGE_METHODS(QCALIB_ADDRESS)};
#undef QCALIB_ADDRESS
    return methods;
}

MethodChoice parse_method(const std::string& text) {
    const std::size_t colon = text.find(':');
    MethodChoice choice;
    choice.method = &find_method(std::string(trim(std::string_view(text).substr(0, colon))));
    const std::vector<MethodParameter> parameters = choice.method->parameters();
    if (colon != std::string::npos) {
        for (const std::string& assignment : split(std::string_view(text).substr(colon + 1), ',')) {
            parse_assignment(*choice.method, parameters, assignment, choice.parameters);
        }
    }
    for (const MethodParameter& parameter : parameters) {
        choice.parameters.emplace(parameter.name, parameter.default_value);
    }
    return choice;
}

std::string to_string(const MethodChoice& choice) {
    std::vector<std::string> assignments;
    for (const auto& [name, value] : choice.parameters)
        assignments.push_back(fmt::format("{}={}", name, value));
    const std::string name = choice.method->name();
    return assignments.empty() ? name : name + ":" + join(assignments, ",");
}

MethodRule parse_method_rule(const std::string& text) {
    if (names_method(text)) return {std::nullopt, parse_method(text)};
    for (std::size_t equals = text.find('=', 1); equals != std::string::npos;
         equals = text.find('=', equals + 1)) {
        const std::string method = text.substr(equals + 1);
        if (names_method(method)) return {text.substr(0, equals), parse_method(method)};
    }
    const std::size_t equals = text.find('=', 1);
    const bool pattern = equals != std::string::npos && equals < text.find(':');
    return {std::nullopt, parse_method(pattern ? text.substr(equals + 1) : text)};  // an Error
}

}  // namespace qcalib
