#include "format/tidl_option_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace qcalib {

namespace {

using Kind = TidlOption::Kind;

constexpr std::array options = {
    TidlOption{"tidl_tools_path"},
    TidlOption{"artifacts_folder"},
    TidlOption{"import"},
    TidlOption{"platform"},
    TidlOption{"version"},
    TidlOption{"tensor_bits", Kind::integer, "8, 16, 32"},
    TidlOption{"debug_level", Kind::integer, "0, 1, 2, 3, 4, 5, 6"},
    TidlOption{"max_num_subgraphs", Kind::integer},
    TidlOption{"accuracy_level", Kind::integer, "0, 1, 2, 9"},
    TidlOption{"bias_calibration_factor", Kind::real},
    TidlOption{"ti_internal_nc_flag", Kind::integer},
    TidlOption{"ti_internal_reserved_1", Kind::integer},
    TidlOption{"model_type"},
    TidlOption{"model_group_id", Kind::integer},
    TidlOption{"priority", Kind::integer},
    TidlOption{"max_pre_empt_delay", Kind::real},
    TidlOption{"core_number", Kind::integer},
    TidlOption{"core_start_idx", Kind::integer},
    TidlOption{"c7x_codegen", Kind::integer, "0, 1"},
    TidlOption{"deny_list"},
    TidlOption{"deny_list:layer_type"},
    TidlOption{"deny_list:layer_name"},
    TidlOption{"allow_list:layer_name"},
    TidlOption{"object_detection:meta_layers_names_list"},
    TidlOption{"object_detection:meta_arch_type", Kind::integer},
    TidlOption{"object_detection:confidence_threshold", Kind::real},
    TidlOption{"object_detection:nms_threshold", Kind::real},
    TidlOption{"object_detection:nms_type", Kind::integer, "0, 1, 2"},
    TidlOption{"object_detection:top_k", Kind::integer},
    TidlOption{"object_detection:keep_top_k", Kind::integer},
    TidlOption{"advanced_options:calibration_frames", Kind::integer},
    TidlOption{"advanced_options:calibration_iterations", Kind::integer},
    TidlOption{"advanced_options:quantization_scale_type", Kind::integer, "0, 1, 3, 4"},
    TidlOption{"advanced_options:output_feature_16bit_names_list"},
    TidlOption{"advanced_options:params_16bit_names_list"},
    TidlOption{"advanced_options:mixed_precision_factor", Kind::real},
    TidlOption{"advanced_options:activation_clipping", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:weight_clipping", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:bias_calibration", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:bias_clipping", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:channel_wise_quantization", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:quant_params_proto_path"},
    TidlOption{"advanced_options:prequantized_model", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:enable_tfr_optimization", Kind::integer, "0, 1, 2"},
    TidlOption{"advanced_options:add_data_convert_ops", Kind::integer, "0, 1, 2, 3"},
    TidlOption{"advanced_options:high_resolution_optimization", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:pre_batchnorm_fold", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:optimize_batchnorm_higherdims", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:graph_optimization_level", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:batch_mode", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:packetize_mode", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:partial_init_during_compile", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:inference_mode", Kind::integer, "0, 1, 2"},
    TidlOption{"advanced_options:num_cores", Kind::integer},
    TidlOption{"advanced_options:c7x_firmware_version"},
    TidlOption{"advanced_options:max_num_subgraph_nodes", Kind::integer},
    TidlOption{"advanced_options:enable_rt_multi_subgraph_support", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:enable_shape_folding", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:net_inelement_type"},
    TidlOption{"advanced_options:enable_custom_layers", Kind::integer, "0, 1"},
    TidlOption{"advanced_options:custom_layers_names_list"},
    TidlOption{"advanced_options:log_file_name"},
    TidlOption{"advanced_options:nc_temp_info_dir"},
    TidlOption{"advanced_options:network_name"},
    TidlOption{"advanced_options:temp_buffer_dir"},
};

std::optional<double> real_of(const std::string& text) {
    try {
        return parse_real(text, "");
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

std::string TidlOption::expected() const {
    if (!choices.empty()) return "one of " + std::string(choices);
    switch (kind) {
        case Kind::integer:
            return "a whole number";
        case Kind::real:
            return "a number";
        case Kind::text:
            break;
    }
    return "a text";
}

std::string TidlOption::objection(const std::string& value) const {
    const std::string shown = fmt::format("'{}'", printable(value));
    if (kind == Kind::text) return "";
    const std::optional<double> number = real_of(value);
    if (!number || !std::isfinite(*number)) return shown;
    if (kind == Kind::integer && *number != std::floor(*number)) return shown;
    if (choices.empty()) return "";
    for (const std::string& choice : split(std::string(choices), ',')) {
        if (*real_of(std::string(trim(choice))) == *number) return "";
    }
    return shown;
}

std::span<const TidlOption> tidl_options() {
    return options;
}

const TidlOption* tidl_option(std::string_view name) {
    const auto found =
        std::find_if(options.begin(), options.end(), [&](const TidlOption& one) { return one.name == name; });
    return found == options.end() ? nullptr : &*found;
}

}  // namespace qcalib
