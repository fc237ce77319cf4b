#pragma once

#include "runtime/kernels/recurrent_form.h"

namespace qcalib {

// LSTM, GRU and RNN as the ONNX operators are written down, one number at a time; sums and states in double.
// float32 and float64.
class RecurrentReference : public Kernel {
  public:
    explicit RecurrentReference(RecurrentCell cell) : cell_(cell) {}

    Prepared prepare(const NodeContext& context) override;
    void run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Workspace& workspace) const override;

  protected:
    const RecurrentForm& form() const { return form_; }

  private:
    RecurrentCell cell_;
    RecurrentForm form_;
};

}  // namespace qcalib
