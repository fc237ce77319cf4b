#pragma once

#include "cases/runner/case_file.h"

namespace qcalib::cases {

// Makes the files that a case's `generate:` lists; docs/cases.md describes the items. Errors carry the line.
void generate(const YAML::Node& items, const Places& places);

}  // namespace qcalib::cases
