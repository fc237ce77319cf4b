#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qcalib {

// What became of a tensor's encoding.
enum class Status : std::uint8_t {
    applied,     // the result has what the file gives
    nudged,      // both ends moved by the same amount, at most half a step, as the target's rule moves them
    recomputed,  // the converter used a range of its own
    missing,     // in the result, not in the file
    unused,      // in the file, not in the result
    impossible,  // a value no quantizer can use
};
inline constexpr std::array all_statuses = {Status::applied, Status::nudged, Status::recomputed,
                                            Status::missing, Status::unused, Status::impossible};
std::string_view name_of(Status status);

// Whether the result is as the file gives it: applied and nudged.
bool as_given(Status status);

// An encoding as findings show it. `offset` is the negative zero point.
struct ShownEncoding {
    int bits = 8;
    double min = 0;
    double max = 0;
    double scale = 0;
    double offset = 0;
    std::optional<std::size_t> channel;  // of a tensor with several encodings: the one shown
};

// What the audit says of one tensor.
struct Finding {
    std::string tensor;  // the file's name, else the model's, else that of the result
    Status status = Status::applied;
    std::optional<ShownEncoding> given;
    std::optional<ShownEncoding> found;
    std::optional<double> steps;  // the larger difference of the ends, in steps of the given encoding
    bool close = false;           // recomputed, within two steps
    std::string cause;            // in words; "" where there is nothing to explain
    std::string advice;
    std::optional<std::string> accepted;  // the reason of the entry of --allow that is for it
};

struct AuditResult {
    std::vector<Finding> findings;    // in the order of the result, then in that of the file
    std::vector<std::string> causes;  // of the run as a whole, the likeliest first
    std::vector<std::string> notes;   // what else is worth knowing

    std::size_t count(Status status) const;
    // Whether a finding that nobody accepted is not as given.
    bool objections() const;
};

// {"summary": {status: count}, "findings": [{"tensor", "status", "given", "found", "steps", "cause",
// "advice"}]}
std::string to_json(const AuditResult& result);

}  // namespace qcalib
