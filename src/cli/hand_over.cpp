#include "cli/hand_over.h"

#include <map>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

constexpr int usual_bias_bits = 32;

// As a shell takes it for one word.
std::string shell_word(const std::string& text) {
    const bool is_plain = text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-./=:,+@%") == std::string::npos;
    if (is_plain && !text.empty()) return text;
    std::string quoted = "'";
    for (const char character : text)
        quoted += character == '\'' ? std::string("'\\''") : std::string(1, character);
    return quoted + "'";
}

// Each name between braces replaced; a target's file has only names that are there.
std::string filled(const std::string& command, const std::map<std::string, std::string>& places) {
    std::string text;
    std::size_t done = 0;
    for (std::size_t open = command.find('{'); open != std::string::npos; open = command.find('{', done)) {
        const std::size_t close = command.find('}', open);
        text += command.substr(done, open - done) + places.at(command.substr(open + 1, close - open - 1));
        done = close + 1;
    }
    return text + command.substr(done);
}

}  // namespace

std::vector<std::int64_t> channels_last_ranks(std::span<const Emission> emissions) {
    if (emissions.empty()) fail("--export-inputs: expected --emit to say for which converter, found none");
    const Target& first = emissions.front().target;
    for (const Emission& emission : emissions) {
        if (emission.target.hand_over.channels_last_ranks == first.hand_over.channels_last_ranks) continue;
        fail("--export-inputs: {} and {} keep inputs in different layouts; emit for one of them", first.name,
             emission.target.name);
    }
    return first.hand_over.channels_last_ranks;
}

std::vector<std::string> hand_over_commands(std::span<const Emission> emissions,
                                            const AssignmentOptions& options,
                                            const std::filesystem::path& model,
                                            const std::optional<std::filesystem::path>& list) {
    std::vector<std::string> commands;
    for (const Emission& emission : emissions) {
        const Target& target = emission.target;
        const std::map<std::string, std::string> places{
            {"model", shell_word(model.string())},
            {"encodings", shell_word(emission.file().string())},
            {"list", list ? shell_word(list->string()) : "input_list.txt"},
            {"stem", shell_word(model.stem().string())},
            {"activation_bits", fmt::format("{}", options.activation_bits.value_or(target.activations.bits))},
            {"weight_bits", fmt::format("{}", options.weight_bits.value_or(target.weights.bits))},
            {"bias_bits", fmt::format("{}", options.bias_bits.value_or(usual_bias_bits))}};
        for (const std::string& command : target.hand_over.commands)
            commands.push_back(filled(command, places));
    }
    return commands;
}

}  // namespace qcalib
