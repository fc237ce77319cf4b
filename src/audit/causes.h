#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "audit/compare.h"
#include "audit/model_view.h"
#include "audit/tensor_names.h"

namespace qcalib {

// A tensor of the result, and the entry of the file that is its own.
struct Match {
    const FoundTensor* found = nullptr;
    std::optional<std::size_t> entry;  // index into EncodingFile::entries
    bool copy = false;                 // the entry is that of another tensor as well, of which this is a copy
    bool wrong_section = false;        // the entry is under the other heading of the file
    std::string name;                  // as findings call it
};

// What is known of all tensors, for whoever looks for causes.
struct AuditContext {
    const AuditInput& input;
    std::vector<Match> matches;  // in the order of the result
    std::optional<ModelView> model;
    bool entries_taken = false;  // whether the result has any encoding as given

    const FileEntry& entry(const Match& match) const { return input.given->entries[*match.entry]; }
    // The operator that makes the tensor: the model's, else as far as the layer's name tells ("Conv_24"),
    // else
    // "". What converters make of several operators is called as they do: "Hswish".
    std::string operator_of(const Match& match) const;
    // The tensor of the result from which this one is made: by the model, else the one before it in the log.
    const Match* source_of(const Match& match) const;
    const Match* find(std::string_view name) const;
};

// Fill cause and advice of a finding of that status.
void explain_recomputed(const AuditContext& context, const Match& match, const Comparison& comparison,
                        Finding& finding);
void explain_missing(const AuditContext& context, const Match& match, Finding& finding);
void explain_unused(const AuditContext& context, const FileEntry& entry, Finding& finding);

}  // namespace qcalib
