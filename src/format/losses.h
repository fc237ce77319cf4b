#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "encoding/encoding_file.h"

namespace qcalib {

// What a format cannot express of a file that is being written: one remark "<format>: N entries (names):
// <text>" for each text.
class Losses {
  public:
    Losses(std::string format, const EncodingFile& file) : format_(std::move(format)), file_(file) {}

    void add(const std::string& text, const std::string& tensor) { tensors_[text].push_back(tensor); }
    // Keys of the entry that the format does not know, where the file is of another format.
    void unknown_keys(const FileEntry& entry);
    // The keys of the file to write: all where it is of this format, else those in `documented`.
    std::vector<UnknownKey> kept_keys(const std::vector<std::string>& documented);
    // The entry's own keys to write beside encoding `index`.
    std::vector<UnknownKey> kept_keys(const FileEntry& entry, std::size_t index);
    void report(Remarks& remarks) const;

  private:
    bool same_format() const { return file_.format == format_; }

    std::string format_;
    const EncodingFile& file_;
    std::map<std::string, std::vector<std::string>> tensors_;
    std::vector<std::string> keys_left_out_;
};

}  // namespace qcalib
