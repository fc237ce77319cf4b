#include "cli/output_folder.h"

#include "base/files.h"

namespace qcalib {

OutputFolder::OutputFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::error_code ignored;
    made_ = !std::filesystem::exists(folder_, ignored);
    prepare_output_folder(folder_);
}

OutputFolder::~OutputFolder() {
    std::error_code ignored;
    if (made_ && std::filesystem::is_empty(folder_, ignored)) std::filesystem::remove(folder_, ignored);
}

}  // namespace qcalib
