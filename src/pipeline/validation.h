#pragma once

#include "pipeline/node.h"

namespace qcalib {

// Writes short forms out: a scalar where a section has a short form becomes a map, a step's name a map of it,
// a single section or step where a list may be a list of one.
// What cannot be is left as it is.
void write_out_short_forms(PipelineNode& document);

// Everything in the document that does not fit the schema becomes a fault and is taken out.
void validate_pipeline(PipelineNode& document, PipelineFaults& faults);

}  // namespace qcalib
