#pragma once

#include "audit/causes.h"

namespace qcalib {

// Whether the result is TIDL's.
bool is_tidl(const AuditContext& context);

// As explain_recomputed and explain_missing, for tensors that TIDL shows.
void explain_tidl_recomputed(const AuditContext& context, const Match& match, const Comparison& comparison,
                             Finding& finding);
void explain_tidl_missing(const AuditContext& context, const Match& match, Finding& finding);

// Notes on the run: what the untouched default of the input means, an input scale that is not that of the
// first Clip, scales coarser than their own ranges, weights that saturate; and as a cause that nothing of the
// file was used.
void explain_tidl_run(const AuditContext& context, AuditResult& result);

}  // namespace qcalib
