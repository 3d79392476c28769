// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What InfoNCE refuses, and what becomes of values that are not finite.
#include <cmath>
#include <limits>

#include "infonce_case.h"

namespace pwdice::test {
namespace {

using Case = InfoNceProblem;

class InfoNceErrors : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, InfoNceErrors, testing::ValuesIn(test_backends()), backend_name);

TEST_P(InfoNceErrors, RejectsWhatItCannotDo) {
  const auto train = [&](int64_t n, int64_t d, float inv_tau) {
    const Case c(n, d, Data::Normal, {ScoreMetric::Gram, true, inv_tau});
    run(size_t{1} << 20, [&](OpRun& op) { run_train(op, c); });
  };
  expect_error(ErrorCode::InvalidArgument, "infonce_train: the batch has 0 pairs",
               [&] { train(0, 32, 1.f); });
  expect_error(ErrorCode::InvalidArgument, "width 12, expected a multiple of 8 up to 128",
               [&] { train(4, 12, 1.f); });
  expect_error(ErrorCode::InvalidArgument, "width 136", [&] { train(4, 136, 1.f); });
  expect_error(ErrorCode::InvalidArgument, "inv_tau is 0", [&] { train(4, 8, 0.f); });
  expect_error(ErrorCode::InvalidArgument, "inv_tau is nan", [&] { train(4, 8, NAN); });
}

TEST_P(InfoNceErrors, NamesAValueThatIsNotFinite) {
  if (GetParam() != Backend::Cpu) return;  // a GPU is not read back; there the guard of adam protects
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Case c(26, 16);
    c.v2[5 * 16 + 2] = bad;
    expect_error(ErrorCode::NotFinite, "in row 5, column 2", [&] {
      run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_train(op, c); });
    });
    expect_error(ErrorCode::NotFinite, "infonce_forward: v2 is", [&] {
      run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_separate(op, c, 1.f); });
    });
  }
}

// Finite embeddings whose own scores, and theirs alone, are beyond float.
TEST_P(InfoNceErrors, AScoreThatOverflowsIsNotLost) {
  Case c(8, 8, Data::Normal, {ScoreMetric::Identity, false, 1.f});
  for (size_t i = 0; i < c.v1.size(); ++i) c.v1[i] = c.v2[i] = i % 9 == 0 ? 1e20f : 0.f;
  const auto train = [&] {
    return run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_train(op, c); });
  };
  if (GetParam() == Backend::Cpu) {
    expect_error(ErrorCode::NotFinite, "infonce_train: ", [&] { train(); });
  } else {
    EXPECT_FALSE(std::isfinite(train().value("loss")));
  }
}

}  // namespace
}  // namespace pwdice::test
