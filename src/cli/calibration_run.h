#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "cli/command.h"
#include "cli/data_options.h"
#include "cli/encoding_options.h"
#include "cli/tensor_options.h"
#include "engine/calibration.h"
#include "graph/model_file.h"

namespace qcalib {

// How a calibration runs; nothing of it but the mask's bound, the kernels and the weights changes what is
// counted.
struct RunSettings {
    unsigned jobs = 0;   // 0: one a core
    std::string memory;  // "4G"; "": what the system has free
    std::optional<std::int64_t> checkpoint;
    std::optional<double> mask_below;
    std::string isa = "best";
    std::string dump_input;
    std::string export_inputs;  // folder for the samples as a converter reads them
    bool reference_kernels = false;
    bool quantized_weights = false;  // measure on weights as their codes stand for them
    bool perf = false;
    bool strict = false;
};

// What a converter made of the encodings, to be audited right after they were written.
struct AuditAfterwards {
    std::vector<std::string> logs;  // none: no audit
    std::string target;             // whose encodings; "": the only target's
    std::string allow;
    bool all = false;  // list what was applied as well
};

// All that a calibration is told, by the flags of 'qcalib calibrate' or by a pipeline.
struct CalibrationSettings {
    std::string model;
    std::string output = "qcalib-out";
    DataSettings data;
    EncodingSettings encodings;
    TensorSettings tensors;
    std::vector<std::string> explain;
    AuditAfterwards audit;
    RunSettings run;
    bool json = false;  // the summary as one JSON object
};

// What a calibration knows before it reads a sample.
struct PreparedCalibration {
    std::vector<Emission> emissions;
    AssignmentOptions assignment;
    Model model;
    std::vector<InputSpec> inputs;
    SelectedSamples samples;
    std::size_t group = 1;  // lines that make one sample
    CalibrationOptions options;
};

// Reads the model and the list and checks all that needs no sample: operators, names of inputs and tensors,
// methods, targets, values of settings. One Error lists all that is wrong, a line each, naming the flag that
// a setting has; remarks are added.
PreparedCalibration prepare_calibration(const CalibrationSettings& settings, Remarks& remarks);

// Runs the samples through the model, writes statistics and encodings to the output folder and prints the
// summary. The bytes written depend on the settings alone, not on where they come from.
ExitCode run_calibration(const CalibrationSettings& settings, Console& console);

}  // namespace qcalib
