#include "base/error.h"
#include "base/text.h"
#include "pipeline/schema.h"

namespace qcalib {

namespace {

constexpr double unbounded = 1e15;

constexpr std::string_view introduction =
    "# Pipelines\n\n"
    "`qcalib run pipeline.yaml` does what `qcalib calibrate` does, and takes from a YAML file what that "
    "takes from\n"
    "flags: the same settings leave the same bytes. `qcalib init --model m.onnx` writes a commented pipeline "
    "for a\n"
    "model; `configs/*.yaml` are examples.\n\n"
    "- `--dry-run` reads the pipeline, the model and the list of samples, checks all that needs no sample, "
    "and prints\n"
    "  the pipeline as it is understood: includes merged, variables put in, defaults written out. What it "
    "prints is a\n"
    "  pipeline too.\n"
    "- `--set KEY=VALUE` sets a key from the command line, over the file: `--set calibration.jobs=4`, "
    "`--set\n"
    "  targets=[snpe,tidl]`, `--set targets.0.format=snpe`. The value is YAML; a key that holds a dot is put "
    "in double\n"
    "  quotes. May be given again; the last holds.\n"
    "- `${NAME}` in a value is the environment variable, which must be set; `${NAME:-text}` is `text` where "
    "it is unset\n"
    "  or empty; `$${` is `${`. Inside `[...]` and `{...}` YAML wants such a value in quotes.\n"
    "- A relative path of a file that is read is looked up from the working directory, then from the folder "
    "of the\n"
    "  file it stands in.\n"
    "- All faults of a pipeline are reported at once, each with file, line and column, and the exit code is "
    "2.\n"
    "- Exit codes: 0 fine, 1 remarks with `strict: true`, 2 bad usage or input, 3 internal error, 130 "
    "interrupted.\n\n"
    "This page is made from the program's own table of keys by `qcalib list pipeline`; a test holds it to "
    "that.\n";

std::string number_range(const PipelineKey& key) {
    if (key.greatest >= unbounded && key.least <= -unbounded) return "";
    if (key.greatest >= unbounded) return fmt::format(" from {} on", key.least);
    return fmt::format(" from {} to {}", key.least, key.greatest);
}

std::string item(const PipelineKey& key) {
    if (!key.values.empty()) return key.values;
    switch (key.type) {
        case PipelineType::text:
            return "text";
        case PipelineType::path:
            return "a path";
        case PipelineType::name:
            return "a name";
        case PipelineType::boolean:
            return "true or false";
        case PipelineType::integer:
            return "a whole number" + number_range(key);
        case PipelineType::real:
            return "a number" + number_range(key);
        case PipelineType::choice:
            return "one of " + join(key.choices, ", ");
        case PipelineType::bytes:
            return "an amount of memory such as 4G or 512M";
        case PipelineType::shard:
            return "i/n with 1 <= i <= n, such as 1/4";
        case PipelineType::section:
            return "a map";
        case PipelineType::step:
            return "a step: its name, or a map from its name to its parameters";
        default:
            return "a value";
    }
}

std::string documented_value(const PipelineKey& key) {
    std::string text = item(key);
    if (key.type == PipelineType::section) text = fmt::format("[{0}](#{0})", key.section);
    if (key.count == PipelineCount::some) text += "; or a list of these";
    if (key.count == PipelineCount::named) text = "a map: for each name " + text;
    if (key.count == PipelineCount::named_lists)
        text = "a map: for each name " + text + ", or a list of these";
    return text;
}

std::string documented_default(const PipelineKey& key) {
    if (key.required) return "required";
    return key.is_literal ? "`" + key.otherwise + "`" : key.otherwise;
}

}  // namespace

std::string expected_value(const PipelineKey& key) {
    return item(key);
}

std::string documentation_row(std::span<const std::string> cells) {
    std::string row = "|";
    for (const std::string& cell : cells) {
        row += ' ';
        for (const char c : cell) row += c == '|' ? std::string("\\|") : std::string(1, c);
        row += " |";
    }
    return row + "\n";
}

std::string pipeline_documentation(const std::string& more) {
    std::string text(introduction);
    for (const PipelineSection& section : pipeline_schema()) {
        text += fmt::format("\n## {}\n\n{}\n\n", section.name, section.description);
        text += "| key | value | default | flag | meaning |\n| --- | --- | --- | --- | --- |\n";
        for (const PipelineKey& key : section.keys) {
            const std::vector<std::string> cells = {
                "`" + key.name + "`", documented_value(key), documented_default(key),
                key.flag.empty() ? "" : "`" + key.flag + "`", key.description};
            text += documentation_row(cells);
        }
    }
    return text + more;
}

}  // namespace qcalib
