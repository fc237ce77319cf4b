#include "dataset/sequence.h"

#include <cassert>

#include "base/error.h"
#include "base/text.h"
#include "dataset/entry_reader.h"

namespace qcalib {

Sequence::Sequence(const ListEntry& entry, std::span<const InputSpec> inputs,
                   const Preprocessing& preprocessing) {
    assert(entry.files.size() == inputs.size());
    std::string first_cut;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Source& source = sources_.emplace_back();
        if (!inputs[i].carried) source.steps = cut_input(entry, i, inputs, preprocessing);
        if (!source.steps) {
            std::optional<Tensor> given = read_input(entry, i, inputs[i], inputs, preprocessing);
            source.whole = given ? std::move(*given) : *inputs[i].otherwise;
            continue;
        }
        const std::string shown = shown_source(entry, i);
        const std::string& left_over = source.steps->left_over;
        if (!left_over.empty()) left_over_.push_back(fmt::format("{} ({})", shown, left_over));
        if (source.steps->count == 1) {
            source.whole = source.steps->step(0);
            source.steps.reset();
            continue;
        }
        if (!first_cut.empty() && source.steps->count != steps_) {
            fail("{}: expected {} steps, as in {} of the same sequence, found {}", shown, steps_, first_cut,
                 source.steps->count);
        }
        first_cut = shown;
        steps_ = source.steps->count;
    }
}

std::vector<Tensor> Sequence::step(std::size_t index) const {
    assert(index < steps_);
    std::vector<Tensor> tensors;
    tensors.reserve(sources_.size());
    for (const Source& source : sources_) {
        tensors.push_back(source.steps ? source.steps->step(index) : source.whole);
    }
    return tensors;
}

}  // namespace qcalib
