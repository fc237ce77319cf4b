#include "audit/log_reader.h"

#include <array>

#include "audit/converter_log.h"
#include "audit/dlc_info.h"
#include "audit/quantizer_log.h"
#include "audit/quantizer_v2.h"
#include "audit/tidl_log.h"
#include "base/error.h"
#include "base/text.h"

namespace qcalib {

std::span<const LogReader* const> log_readers() {
    static const QuantizerLog quantizer;
    static const DlcInfo dlc_info;
    static const ConverterLog converter;
    static const QuantizerV2 quantizer_v2;
    static const TidlLog tidl;
    static const TidlTables tidl_tables;
    static const std::array<const LogReader*, 6> all = {&quantizer,    &dlc_info, &converter,
                                                        &quantizer_v2, &tidl,     &tidl_tables};
    return all;
}

void read_log(const LogText& log, ConverterReport& report, std::vector<std::string>& remarks) {
    std::size_t understood = 0;
    for (const LogReader* reader : log_readers()) understood += reader->read(log, report, remarks);
    if (understood > 0) return;
    std::vector<std::string> names;
    for (const LogReader* reader : log_readers()) names.push_back(reader->name());
    fail("{}: expected a log of {}, or a file of encodings; found {} lines that say nothing of encodings",
         printable(log.name()), join(names, ", "), log.lines().size());
}

}  // namespace qcalib
