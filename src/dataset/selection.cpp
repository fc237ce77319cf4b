#include <algorithm>
#include <cassert>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "dataset/sample_list.h"

namespace qcalib {

SelectedSamples select_samples(std::vector<ListEntry> entries, const Selection& selection) {
    assert(selection.group >= 1 && selection.shards >= 1 && selection.shard >= 1 &&
           selection.shard <= selection.shards);
    if (selection.shuffle_seed) {
        Random random(*selection.shuffle_seed);
        shuffle(std::span(entries), random);
    }
    SelectedSamples result;
    const std::uint64_t lines =
        std::min<std::uint64_t>(entries.size(), selection.limit.value_or(entries.size()));
    result.selected = lines / selection.group;
    result.dropped = lines % selection.group;
    for (std::uint64_t number = selection.shard - 1; number < result.selected; number += selection.shards) {
        SelectedSample& sample = result.samples.emplace_back();
        sample.number = number;
        for (std::size_t i = 0; i < selection.group; ++i) {
            sample.entries.push_back(std::move(entries[number * selection.group + i]));
        }
    }
    return result;
}

void parse_shard(const std::string& text, Selection& selection) {
    const std::vector<std::string> parts = split(text, '/');
    const auto refuse = [&] {
        fail("--shard: expected i/n with whole numbers and 1 <= i <= n, found '{}'", printable(text));
    };
    if (parts.size() != 2) refuse();
    const std::int64_t shard = parse_integer(parts[0], "--shard " + printable(text));
    const std::int64_t shards = parse_integer(parts[1], "--shard " + printable(text));
    if (shard < 1 || shard > shards || shards > std::numeric_limits<std::uint32_t>::max()) refuse();
    selection.shard = static_cast<std::uint32_t>(shard);
    selection.shards = static_cast<std::uint32_t>(shards);
}

}  // namespace qcalib
