#include "simulate/bits_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace qcalib {

namespace {

// 0, 1, 2, 3, 5, 8, ... and `all`.
std::vector<std::size_t> counts_up_to(std::size_t all) {
    std::vector<std::size_t> counts{0};
    std::size_t before = 1;
    for (std::size_t next = 1; next < all;) {
        counts.push_back(next);
        const std::size_t sum = next + before;
        before = next;
        next = sum;
    }
    if (all > 0) counts.push_back(all);
    return counts;
}

Variant with_wide(const SimulationRun& run, SimulatedEncodings encodings, std::span<const ValueId> wide,
                  int bits) {
    for (SimulatedEncoding& one : encodings) {
        if (std::ranges::find(wide, one.value) != wide.end())
            one.encoding = with_bits(one.encoding, bits, run.model.target());
    }
    return {"", make_quantization(run.model, encodings, run.switches, run.remarks)};
}

bool same_grid(const Encoding& a, const Encoding& b) {
    constexpr double tolerance = 1e-9;
    return a.bits == b.bits && a.offset == b.offset &&
           std::abs(a.scale - b.scale) <= tolerance * std::max(a.scale, b.scale);
}

bool same_encoding(const TensorEncoding& a, const TensorEncoding& b) {
    return a.type == b.type && a.width() == b.width() && a.axis == b.axis && a.block_axis == b.block_axis &&
           std::ranges::equal(a.encodings, b.encodings, same_grid);
}

std::vector<ErrorSums> outputs_of(const VariantErrors& errors, std::size_t reference, std::size_t outputs) {
    const auto first = errors.from_references.begin() + static_cast<std::ptrdiff_t>(reference * outputs);
    return {first, first + static_cast<std::ptrdiff_t>(outputs)};
}

}  // namespace

BitsSearch search_bits(const SimulationRun& run, const BitsSearchSettings& settings) {
    BitsSearch search;
    search.ranking = isolated_costs(run, {"*"}, search.whole);
    std::erase_if(search.ranking, [&](const IsolatedCost& one) {
        const TensorEncoding& encoding = one.encoding.encoding;
        return encoding.type != CodeType::integer || encoding.width() >= settings.bits || encoding.lpbq;
    });
    if (search.ranking.empty()) fail("--bits-search: no encoding has fewer than {} bits", settings.bits);
    const SimulatedEncodings encodings = resolve_encodings(run.model, run.given, run.switches, run.measured);
    std::vector<std::vector<ValueId>> orders(1);
    for (const IsolatedCost& one : search.ranking) orders[0].push_back(one.encoding.value);
    Random random(settings.seed);
    for (std::size_t i = 0; i < settings.random_orders; ++i) {
        orders.push_back(orders[0]);
        shuffle(std::span(orders.back()), random);
    }
    const std::vector<std::size_t> counts = counts_up_to(orders[0].size());
    std::vector<Variant> variants;
    for (const std::vector<ValueId>& order : orders) {
        for (const std::size_t count : counts)
            variants.push_back(with_wide(run, encodings, std::span(order).first(count), settings.bits));
    }
    VariantSettings variant_settings;
    variant_settings.compared.resize(run.model.graph()->values.size());
    variant_settings.carries = run.carries;
    const std::vector<VariantErrors> errors = run_variants(run, variants, variant_settings, nullptr);
    const Graph& graph = *run.model.graph();
    for (std::size_t i = 0; i < counts.size(); ++i) {
        BitsPoint point{counts[i], errors[i].cost(graph), 0};
        for (std::size_t order = 1; order < orders.size(); ++order)
            point.random_cost += errors[order * counts.size() + i].cost(graph);
        if (orders.size() > 1) point.random_cost /= static_cast<double>(orders.size() - 1);
        search.curve.push_back(point);
    }
    return search;
}

EncodingShares encoding_shares(const SimulationRun& run, const GivenEncodings& other) {
    const SimulatedEncodings first = resolve_encodings(run.model, run.given, run.switches, run.measured);
    const SimulatedEncodings second = resolve_encodings(run.model, other, run.switches, run.measured);
    const auto variant_of = [&](const SimulatedEncodings& encodings) -> Variant {
        return {"", make_quantization(run.model, encodings, run.switches, run.remarks)};
    };
    std::unordered_map<ValueId, const SimulatedEncoding*> in_second;
    for (const SimulatedEncoding& one : second) in_second.emplace(one.value, &one);
    EncodingShares result;
    std::vector<Variant> variants{variant_of(first), variant_of(second)};
    const Graph& graph = *run.model.graph();
    const auto add = [&](ValueId value, const SimulatedEncodings& encodings) {
        result.shares.push_back({graph.values[value].name, 0, 0, 0});
        variants.push_back(variant_of(encodings));
    };
    for (std::size_t i = 0; i < first.size(); ++i) {
        const auto found = in_second.find(first[i].value);
        const bool there = found != in_second.end();
        if (there && same_encoding(first[i].encoding, found->second->encoding)) {
            ++result.same;
        } else {
            SimulatedEncodings changed = first;
            if (there)
                changed[i] = *found->second;
            else
                changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
            add(first[i].value, changed);
        }
        if (there) in_second.erase(found);
    }
    for (const SimulatedEncoding& one : second) {
        if (!in_second.contains(one.value)) continue;
        SimulatedEncodings changed = first;
        changed.push_back(one);
        add(one.value, changed);
    }
    VariantSettings settings;
    settings.compared.resize(graph.values.size());
    settings.references = {0, 1};
    settings.carries = run.carries;
    const std::vector<VariantErrors> errors = run_variants(run, variants, settings, nullptr);
    const std::size_t outputs = graph.outputs.size();
    const double whole = output_cost(outputs_of(errors[1], 0, outputs));
    result.difference = whole;
    double together = 0;
    for (std::size_t i = 0; i < result.shares.size() && whole > 0; ++i) {
        const VariantErrors& changed = errors[i + 2];
        result.shares[i].closes = 1 - output_cost(outputs_of(changed, 1, outputs)) / whole;
        result.shares[i].alone = output_cost(outputs_of(changed, 0, outputs)) / whole;
        together += result.shares[i].alone;
    }
    for (EncodingShare& one : result.shares) one.share = together > 0 ? one.alone / together : 0;
    std::ranges::stable_sort(result.shares, [](const auto& a, const auto& b) { return a.share > b.share; });
    return result;
}

}  // namespace qcalib
