// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// An InfoNCE problem and its runs, for infonce_test.cpp, infonce_errors_test.cpp and infonce_large_test.cpp.

#include "../kernels/infonce.h"
#include "infonce_reference.h"
#include "op_case.h"

namespace pwdice::test {

struct InfoNceProblem {
  int64_t n, d;
  std::vector<float> v1, v2, w0;
  Options options;

  InfoNceProblem(int64_t rows, int64_t width, Data data = Data::Normal, Options o = {})
      : n(rows), d(width), options(o) {
    v1 = make_data(data, n * d, 1);
    v2 = make_data(data, n * d, 2);
    w0 = uniform(d * d, 0.f, 1.f, 3);
  }
  template <class T>
  Result<T> expected() const {
    return infonce(Matrix<T>(n, d, v1), Matrix<T>(n, d, v2), Matrix<T>(d, d, w0), options);
  }
  InfoNce in(OpRun& op) const {
    return {op.in(v1, n, d, d + 1), op.in(v2, n, d, d + 3), op.in(w0, d, d, d + 2),
            options.metric,         options.normalise,      options.inv_tau};
  }
};

inline std::string describe(const InfoNceProblem& c) {
  return std::to_string(c.n) + " x " + std::to_string(c.d) + ", metric " +
         std::to_string(static_cast<int>(c.options.metric)) + (c.options.normalise ? ", normalised" : "");
}

inline void run_train(OpRun& op, const InfoNceProblem& c) {
  infonce_train(op.ctx, {c.in(op), op.out("loss", 1), op.out("d_v1", c.n, c.d, c.d + 1),
                         op.out("d_v2", c.n, c.d), op.out("d_w0", c.d, c.d, c.d + 4)});
}

inline void run_forward(OpRun& op, const InfoNceProblem& c) {
  infonce_forward(op.ctx, {c.in(op), op.out("lse", c.n), op.out("loss", 1)});
}

inline void run_separate(OpRun& op, const InfoNceProblem& c, float d_loss) {
  const Vec<float> lse = op.out("lse", c.n);
  const InfoNce in = c.in(op);
  infonce_forward(op.ctx, {in, lse, op.out("loss", 1)});
  infonce_backward(op.ctx, {in, lse, op.in(d_loss), op.out("d_v1", c.n, c.d),
                            op.out("d_v2", c.n, c.d, c.d + 2), op.out("d_w0", c.d, c.d)});
}

}  // namespace pwdice::test
