#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/preprocessing.h"

namespace qcalib {

// Reads the parameters of one step or preset against its documentation. What is wrong goes to the fault
// handler; the answer is then the default, and reading goes on.
class StepReader {
  public:
    // Hands over parameters that `info` does not have. `kind` is "step" or "preset".
    StepReader(const StepText& text, const StepInfo& info, std::string_view kind, const StepFault& fault);

    bool has(const std::string& parameter) const { return text_.parameters.contains(parameter); }
    bool ok() const { return ok_; }
    void fault(const std::string& parameter, const std::string& text);

    PictureSize size(const std::string& parameter, PictureSize absent = {});
    int side(const std::string& parameter, int absent = 0);
    // "0.5", "1/255"; finite.
    double real(const std::string& parameter, double absent);
    std::vector<double> reals(const std::string& parameter, const std::vector<double>& absent);
    bool boolean(const std::string& parameter, bool absent);
    // Index among `names`.
    std::size_t choice(const std::string& parameter, std::span<const std::string> names, std::size_t absent);

  private:
    template <typename T>
    T read(const std::string& parameter, T absent, const std::function<T(const std::string&)>& parse);

    const StepText& text_;
    const StepFault& fault_;
    bool ok_ = true;
};

// The names of an enumeration of the steps, in its order.
std::span<const std::string> interpolation_names();
std::span<const std::string> color_names();

// "224x224".
std::string size_text(const PictureSize& size);
// The shortest text that reads back as the same numbers: "0.5" where all are equal, else "[1, 2, 3]".
std::string numbers_text(std::span<const double> numbers);

}  // namespace qcalib
