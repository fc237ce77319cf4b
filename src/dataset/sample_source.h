#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/remarks.h"
#include "dataset/input_spec.h"
#include "dataset/sample_list.h"

namespace qcalib {

// The samples of what --data names, in their order; ListEntry::line counts from 1. By what it is:
//   a folder               its files, sorted by bytes, one a sample (hidden ones and folders left out)
//   a pattern with * or ?  the files it matches, sorted by bytes, one a sample
//   .npz .npy .h5 .hdf5    samples along the first axis of each input's array; .h5 also in the form of ONE's
//                          record-minmax, /value/<sample>/<input>
//   a picture              itself, the one sample
//   anything else          a list (read_sample_list)
// Arrays are found by the input's name; where just one input must be given and there is just one array, it is
// that one. Opened and checked here (names, sample counts); elements are read when a sample is.
// Throws Error "<source>: ...".
std::vector<ListEntry> read_sample_source(const std::string& source, std::span<const InputSpec> inputs,
                                          Remarks& remarks);

// The kinds of sources, for lists and schemas.
struct SampleSourceInfo {
    std::string form;
    std::string summary;
};
std::span<const SampleSourceInfo> sample_sources();

}  // namespace qcalib
