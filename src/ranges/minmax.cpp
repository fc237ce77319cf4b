#include "ranges/range_method.h"

namespace qcalib {

namespace {

class MinMax final : public RangeMethod {
  public:
    std::string name() const override { return "minmax"; }
    std::string summary() const override {
        return "The least and the greatest value met in any sample. Nothing is clipped, so one outlier "
               "widens the range.";
    }
    std::string source() const override {
        return "Qualcomm's and AIMET's tf, onnxruntime's MinMax, TFLite, ncnn's weights. NaN, infinities and "
               "masks are left out here.";
    }
    std::optional<Range> choose(const TensorSamples& tensor, const GridRules& /*grid*/,
                                const MethodParameters& /*parameters*/) const override {
        return tensor.statistics().extremes;
    }
};

}  // namespace

const RangeMethod& minmax_method() {
    static const MinMax method;
    return method;
}

}  // namespace qcalib
