#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/calibration_run.h"
#include "pipeline/pipeline.h"

namespace qcalib {

// What the settings that came out of a pipeline are called where messages name a flag.
class FlagPlaces {
  public:
    // `text`: how a message about the setting starts, "--shape x=1,3"; it is to start with `place`, then.
    void add(std::string text, std::string place);
    // The message of an Error, each line with the pipeline's places and keys for flags.
    std::string translated(const std::string& message) const;

  private:
    std::string translated_line(std::string line) const;

    std::vector<std::pair<std::string, std::string>> places_;
};

// The settings of a calibration that a pipeline makes. Names of methods, targets, formats, steps and presets
// that are not known become faults.
CalibrationSettings pipeline_settings(const Pipeline& pipeline, FlagPlaces& places, PipelineFaults& faults);

// The tables of docs/pipeline.md that come from registries: preprocessing steps and presets.
std::string registry_documentation();

}  // namespace qcalib
