#include "pipeline/schema.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

using enum PipelineType;
using enum PipelineCount;

constexpr double any_number = 1e300;

PipelineSection document_section() {
    return {
        .name = "pipeline",
        .description = "The document.",
        .keys =
            {
                {.name = "include",
                 .type = path,
                 .count = some,
                 .description = "Other pipelines, relative to this file: what they say holds where this file "
                                "says nothing, later ones before earlier ones; maps are merged key by key, "
                                "anything else is taken as a whole."},
                {.name = "model",
                 .type = path,
                 .description = "The float ONNX model.",
                 .required = true,
                 .flag = "--model"},
                {.name = "data",
                 .type = section,
                 .description = "The samples and how they become the model's inputs.",
                 .section = "data",
                 .required = true},
                {.name = "selection",
                 .type = section,
                 .description = "Which of the samples are taken.",
                 .section = "selection"},
                {.name = "calibration",
                 .type = section,
                 .description = "How the model is run, what is counted and how ranges are chosen.",
                 .section = "calibration"},
                {.name = "encodings",
                 .type = section,
                 .description = "What holds for all targets in place of their own rules.",
                 .section = "encodings"},
                {.name = "base",
                 .type = path,
                 .description =
                     "Encodings that are there already: a file of any format (`qcalib list formats`) or "
                     "an ONNX model with Clip or QuantizeLinear nodes. What it has is kept, what it "
                     "lacks is filled in.",
                 .otherwise = "none",
                 .example = "encodings.json",
                 .flag = "--base"},
                {.name = "onnx",
                 .type = path,
                 .description =
                     "The ONNX model that a .circle or .tflite model was converted from: `base` and "
                     "`overrides` may use its names.",
                 .otherwise = "none",
                 .example = "m.onnx",
                 .flag = "--onnx"},
                {.name = "patch",
                 .type = path,
                 .description =
                     "A file of the compiler's own whose numbers are replaced, where the format can do that "
                     "(tidl-prototxt); all else in it stays as it is.",
                 .otherwise = "none",
                 .example = "m_quant_params.prototxt",
                 .flag = "--patch"},
                {.name = "overrides",
                 .type = anything,
                 .description =
                     "A map from tensors (names with `*` and `?`) to what is to hold for them, as "
                     "`conv1: {step: 0.125}`, or a list of such maps; see [overrides](#overrides).",
                 .otherwise = "none",
                 .example = "{\"conv*\": {bits: 16}}",
                 .values = "a map from names to settings, or a list of such maps",
                 .flag = "--override"},
                {.name = "targets",
                 .type = section,
                 .count = some,
                 .description = "What is written for which compilers, all from one pass.",
                 .otherwise = "statistics alone",
                 .section = "target",
                 .flag = "--emit"},
                {.name = "audit",
                 .type = section,
                 .description = "Whether a converter used the encodings.",
                 .section = "audit"},
                {.name = "report",
                 .type = section,
                 .description = "What the run tells at its end.",
                 .section = "report"},
                {.name = "output",
                 .type = text,
                 .description = "Folder for the files written, from the working directory.",
                 .otherwise = "qcalib-out",
                 .is_literal = true,
                 .flag = "--output"},
            },
    };
}

PipelineSection data_section() {
    return {
        .name = "data",
        .description =
            "The samples and how they become the model's inputs. Just one of the first five keys says "
            "where the samples are; `data: list.txt` is short for `data: {list: list.txt}`.",
        .keys =
            {
                {.name = "list",
                 .type = path,
                 .description =
                     "A list of samples: a file a line, or `name:=file` for each input. Its relative "
                     "paths are looked up from the working directory, then from the list's folder.",
                 .flag = "--data"},
                {.name = "folder",
                 .type = path,
                 .description = "A folder whose files are the samples, one each, sorted by name.",
                 .flag = "--data"},
                {.name = "glob",
                 .type = path,
                 .description =
                     "A pattern with `*` and `?`; the files it matches are the samples, sorted by name.",
                 .flag = "--data"},
                {.name = "npz",
                 .type = path,
                 .description =
                     "A `.npz` (or, for one input, `.npy`) file: samples lie along the first axis of the "
                     "array that has the input's name.",
                 .flag = "--data"},
                {.name = "hdf5",
                 .type = path,
                 .description =
                     "An HDF5 file: samples lie along the first axis of the data set that has the input's "
                     "name, or in ONE's form `/value/<sample>/<input>`.",
                 .flag = "--data"},
                {.name = "shapes",
                 .type = integer,
                 .count = named_lists,
                 .description =
                     "Shapes of inputs whose model leaves dimensions open, as `x: [1, 3, 640, 640]`.",
                 .least = 0,
                 .greatest = INT32_MAX,
                 .flag = "--shape"},
                {.name = "values",
                 .type = real,
                 .count = named_lists,
                 .description =
                     "Values of inputs that the samples do not give, as `sr: 16000`: one number, or one "
                     "for each element.",
                 .least = -any_number,
                 .greatest = any_number,
                 .flag = "--input"},
                {.name = "carry",
                 .type = name,
                 .count = named,
                 .description =
                     "Outputs that are fed back as inputs, as `stateN: state` (output: input). Each sample "
                     "is then a sequence, cut into steps along the first axis of its files.",
                 .flag = "--carry"},
                {.name = "preprocessing",
                 .type = step,
                 .count = some,
                 .description =
                     "Steps from a picture to the input, in their order: each a step or a preset of the "
                     "tables below, with its parameters or, for its defaults, its name alone.",
                 .otherwise = "scale to 0 ... 1",
                 .flag = "--preprocess"},
            },
        .short_key = "list",
        .one_of = {"list", "folder", "glob", "npz", "hdf5"},
    };
}

PipelineSection selection_section() {
    return {
        .name = "selection",
        .description = "Which samples are taken: all are shuffled, then limited, then divided among shards.",
        .keys =
            {
                {.name = "shuffle",
                 .type = integer,
                 .description = "Seed that the samples are shuffled with; it is kept in the statistics.",
                 .otherwise = "not shuffled",
                 .example = "1",
                 .least = 0,
                 .greatest = any_number,
                 .flag = "--shuffle"},
                {.name = "limit",
                 .type = integer,
                 .description = "So many samples or sequences at the most.",
                 .otherwise = "all",
                 .example = "200",
                 .least = 1,
                 .greatest = any_number,
                 .flag = "--limit"},
                {.name = "shard",
                 .type = shard,
                 .description =
                     "Only every n-th sample or sequence from the i-th on; `qcalib merge` puts the "
                     "statistics of all shards together and `qcalib emit` writes encodings from them.",
                 .otherwise = "all",
                 .example = "1/4",
                 .flag = "--shard"},
            },
    };
}

PipelineSection calibration_section() {
    return {
        .name = "calibration",
        .description = "How the model is run, what is counted and how ranges are chosen.",
        .keys =
            {
                {.name = "method",
                 .type = text,
                 .count = some,
                 .description =
                     "How ranges of activations are chosen, as `minmax` or `percentile:p=99.9`; with a name "
                     "or pattern before it, as `conv*=mse`, for these tensors alone.",
                 .otherwise = "the target's",
                 .example = "percentile:p=99.99",
                 .flag = "--method"},
                {.name = "weight-method",
                 .type = text,
                 .count = some,
                 .description = "The same for weights.",
                 .otherwise = "the target's",
                 .example = "mse",
                 .flag = "--weight-method"},
                {.name = "statistics",
                 .type = choice,
                 .description =
                     "`extremes` keeps least and greatest values alone, for methods that need no more.",
                 .otherwise = "full",
                 .is_literal = true,
                 .choices = {"full", "extremes"},
                 .flag = "--statistics"},
                {.name = "tensors",
                 .type = name,
                 .count = some,
                 .description =
                     "Whose statistics are kept: `all`, `target` (what the targets need), or names with `*` "
                     "and `?`.",
                 .otherwise = "all",
                 .is_literal = true,
                 .flag = "--tensors"},
                {.name = "derivation",
                 .type = boolean,
                 .description =
                     "Whether statistics that follow from another tensor's are not counted again; the file "
                     "is the same.",
                 .otherwise = "true",
                 .is_literal = true,
                 .flag = "--no-derivation"},
                {.name = "mask-below",
                 .type = real,
                 .description = "Values below this number are masks, not data.",
                 .otherwise = "magnitudes from 1e30 on",
                 .example = "-1000",
                 .least = -any_number,
                 .greatest = 0,
                 .values = "a number below 0",
                 .flag = "--mask-below",
                 .open_greatest = true},
                {.name = "jobs",
                 .type = integer,
                 .description = "Workers, each running whole samples. The files do not depend on it.",
                 .otherwise = "one a core",
                 .example = "4",
                 .least = 1,
                 .greatest = 4096,
                 .flag = "--jobs"},
                {.name = "memory",
                 .type = bytes,
                 .description = "What the run may take: fewer workers run where they would not fit.",
                 .otherwise = "what is free",
                 .example = "4G",
                 .flag = "--memory"},
                {.name = "checkpoint",
                 .type = integer,
                 .description =
                     "Keep the statistics so far after every so many samples or sequences; the same run goes "
                     "on from there.",
                 .otherwise = "never",
                 .example = "100",
                 .least = 1,
                 .greatest = any_number,
                 .flag = "--checkpoint"},
                {.name = "isa",
                 .type = choice,
                 .description = "Instruction set to hold to.",
                 .otherwise = "best",
                 .is_literal = true,
                 .choices = {"best", "sse4", "avx2", "avx512"},
                 .flag = "--isa"},
                {.name = "strict",
                 .type = boolean,
                 .description = "End at the first sample that cannot be read; remarks make the exit code 1.",
                 .otherwise = "false",
                 .is_literal = true,
                 .flag = "--strict"},
                {.name = "reference-kernels",
                 .type = boolean,
                 .description = "Use the plain kernels the fast ones are tested against.",
                 .otherwise = "false",
                 .is_literal = true,
                 .flag = "--reference-kernels"},
                {.name = "quantized-weights",
                 .type = boolean,
                 .description = "Measure on weights as their codes stand for them, as one-quantize does (for "
                                "the target circle alone).",
                 .otherwise = "false",
                 .is_literal = true,
                 .flag = "--quantized-weights"},
                {.name = "export-inputs",
                 .type = text,
                 .description = "Folder to write the samples to as the converter reads them, with "
                                "`input_list.txt`.",
                 .otherwise = "none",
                 .example = "converter-inputs",
                 .flag = "--export-inputs"},
                {.name = "dump-input",
                 .type = text,
                 .description = "Folder to write each sample to as the model sees it (`.npy`).",
                 .otherwise = "none",
                 .example = "seen",
                 .flag = "--dump-input"},
            },
    };
}

PipelineKey width(const std::string& name, const std::string& of, const std::string& flag) {
    return {.name = name,
            .type = integer,
            .description = "Width of " + of + ", in bits.",
            .otherwise = "the target's",
            .example = "8",
            .least = 2,
            .greatest = 16,
            .flag = flag};
}

PipelineKey policy(const std::string& name, const std::string& of) {
    return {.name = name,
            .type = choice,
            .description = of + ": `skip` leaves them out and counts them, `fail` ends the run.",
            .otherwise = "the target's",
            .example = "fail",
            .choices = {"skip", "fail"},
            .flag = "--" + name};
}

PipelineKey yes_or_no(const std::string& name, const std::string& description) {
    return {.name = name,
            .type = boolean,
            .description = description,
            .otherwise = "the target's",
            .example = "true",
            .flag = "--" + name};
}

PipelineSection encodings_section() {
    return {
        .name = "encodings",
        .description = "What holds for all targets in place of their own rules (`qcalib list targets`).",
        .keys =
            {
                width("act-bits", "activations", "--act-bits"),
                width("weight-bits", "weights", "--weight-bits"),
                {.name = "weights",
                 .type = choice,
                 .description = "Whether weights have one encoding or one for each output channel.",
                 .otherwise = "the target's",
                 .example = "per-channel",
                 .choices = {"per-tensor", "per-channel"},
                 .flag = "--weights"},
                yes_or_no("symmetric-weights", "Symmetric encodings for weights."),
                yes_or_no("symmetric-activations", "Symmetric encodings for activations."),
                yes_or_no("unsigned-symmetric",
                          "Symmetric activations without negative values use all codes."),
                yes_or_no("power-of-two", "Every step is a power of two."),
                yes_or_no("include-zero", "Asymmetric ranges contain zero."),
                {.name = "least-range",
                 .type = name,
                 .description =
                     "Width that a narrower range is widened to, or a name that the target's rules have "
                     "for one, as `classic`.",
                 .otherwise = "the target's",
                 .example = "0.01",
                 .values = "a number above 0 and below 1e30, or a name",
                 .flag = "--least-range"},
                {.name = "bias-bits",
                 .type = integer,
                 .description =
                     "Write entries for biases, of this width; 32: at the scale of input times weight.",
                 .otherwise = "none",
                 .example = "32",
                 .least = 2,
                 .greatest = 32,
                 .flag = "--bias-bits"},
                policy("nonfinite", "NaN and infinities"),
                policy("masks", "Masks"),
            },
    };
}

PipelineSection target_section() {
    return {
        .name = "target",
        .description =
            "One of `targets`; `snpe` is short for `{name: snpe}`, `snpe:FORMAT` for a format too.",
        .keys =
            {
                {.name = "name",
                 .type = text,
                 .description = "The target (`qcalib list targets`).",
                 .required = true,
                 .flag = "--emit"},
                {.name = "format",
                 .type = text,
                 .description = "The file's format (`qcalib list formats`).",
                 .otherwise = "the target's",
                 .example = "snpe",
                 .flag = "--emit"},
                {.name = "config",
                 .type = path,
                 .description = "A YAML file with rules for this target, in place of those built in.",
                 .otherwise = "built in",
                 .example = "my-snpe.yaml",
                 .flag = "--target-config"},
            },
        .short_key = "name",
    };
}

PipelineSection audit_section() {
    return {
        .name = "audit",
        .description =
            "What a converter made of the encodings (docs/audit.md), compared with those just "
            "written, which must be the same as those it was given. Writes `<stem>.audit.json`; "
            "findings make the exit code 1.",
        .keys =
            {
                {.name = "log",
                 .type = path,
                 .count = some,
                 .description = "What the converter printed, or encodings it dumped (`qcalib list logs`).",
                 .otherwise = "no audit",
                 .example = "quantize.log",
                 .flag = "--log"},
                {.name = "target",
                 .type = text,
                 .description = "Whose encodings the converter was given, where there are several targets.",
                 .otherwise = "the only one",
                 .example = "snpe"},
                {.name = "allow",
                 .type = path,
                 .description = "A YAML file with the findings that are accepted.",
                 .otherwise = "none",
                 .example = "accepted.yaml",
                 .flag = "--allow"},
                {.name = "all",
                 .type = boolean,
                 .description = "List tensors whose encoding was applied as well.",
                 .otherwise = "false",
                 .is_literal = true,
                 .flag = "--all"},
            },
    };
}

PipelineSection report_section() {
    return {
        .name = "report",
        .description = "What the run tells at its end.",
        .keys =
            {
                {.name = "format",
                 .type = choice,
                 .description = "The summary on standard output: tables, or one JSON object.",
                 .otherwise = "table",
                 .is_literal = true,
                 .choices = {"table", "json"},
                 .flag = "--format"},
                {.name = "explain",
                 .type = name,
                 .count = some,
                 .description =
                     "Tensors (names with `*` and `?`) of which the way from statistics to encoding is "
                     "printed.",
                 .otherwise = "none",
                 .example = "[output]",
                 .flag = "--explain"},
                {.name = "costs",
                 .type = boolean,
                 .description = "Print what each operator and each stage of the run cost.",
                 .otherwise = "false",
                 .is_literal = true,
                 .flag = "--perf"},
            },
    };
}

}  // namespace

const PipelineKey* PipelineSection::find(const std::string& key) const {
    const auto found =
        std::find_if(keys.begin(), keys.end(), [&](const PipelineKey& one) { return one.name == key; });
    return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> PipelineSection::key_names() const {
    std::vector<std::string> names;
    for (const PipelineKey& key : keys) names.push_back(key.name);
    return names;
}

std::span<const PipelineSection> pipeline_schema() {
    static const std::vector<PipelineSection> sections = {
        document_section(),  data_section(),   selection_section(), calibration_section(),
        encodings_section(), target_section(), audit_section(),     report_section(),
    };
    return sections;
}

const PipelineSection& pipeline_section(const std::string& name) {
    const std::span<const PipelineSection> all = pipeline_schema();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    assert(found != all.end());
    return *found;
}

}  // namespace qcalib
