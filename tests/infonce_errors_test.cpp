// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What InfoNCE refuses, and what becomes of values that are not finite.
#include <algorithm>
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
  expect_error(ErrorCode::InvalidArgument, "infonce_train: the number of pairs is 0, expected 1 to ",
               [&] { train(0, 32, 1.f); });
  for (const int64_t n : {int64_t{0}, int64_t{-1}, int64_t{1} << 60}) {
    expect_error(ErrorCode::InvalidArgument,
                 "infonce_scratch_bytes: the number of pairs is " + std::to_string(n),
                 [&] { infonce_scratch_bytes(context(), n, 32); });
  }
  expect_error(ErrorCode::InvalidArgument, "inv_tau is inf", [&] { train(4, 8, INFINITY); });
  expect_error(ErrorCode::InvalidArgument, "inv_tau is 0", [&] { train(4, 8, 0.f); });
  expect_error(ErrorCode::InvalidArgument, "inv_tau is nan", [&] { train(4, 8, NAN); });
  expect_error(ErrorCode::InvalidArgument,
               "inv_tau is 9.99995e-41, expected a positive number, 1.2e-38 to 3.4e38",
               [&] { train(4, 8, 1e-40f); });
  const Case none(4, 8, Data::Normal, {static_cast<ScoreMetric>(4), true, 1.f});
  expect_error(ErrorCode::InvalidArgument, "infonce_train: metric is 4, expected 0 to 3",
               [&] { run(size_t{1} << 20, [&](OpRun& op) { run_train(op, none); }); });
}

TEST_P(InfoNceErrors, RejectsWidthsItHasNoTilesFor) {
  for (int64_t d : {0, 4, 12, 129, 136}) {
    const Case c(4, d);
    expect_error(ErrorCode::InvalidArgument,
                 "infonce_scratch_bytes: embeddings have width " + std::to_string(d),
                 [&] { infonce_scratch_bytes(context(), 4, d); });
    const auto expect = [&](const std::string& name, const std::function<void(OpRun&)>& body) {
      expect_error(
          ErrorCode::InvalidArgument,
          name + ": embeddings have width " + std::to_string(d) + ", expected a multiple of 8 up to 128",
          [&] { run(size_t{1} << 20, body); });
    };
    expect("infonce_train", [&](OpRun& op) { run_train(op, c); });
    expect("infonce_forward", [&](OpRun& op) { run_forward(op, c); });
    expect("infonce_backward", [&](OpRun& op) {
      infonce_backward(op.ctx, {c.in(op), op.in(std::vector<float>(4)), op.in(1.f), op.out("d_v1", 4, d),
                                op.out("d_v2", 4, d), op.out("d_w0", d, d)});
    });
  }
}

TEST_P(InfoNceErrors, TooLittleScratchLeavesTheOutputs) {
  const Case c(61, 16);
  const std::vector<float> lse = c.expected<float>().lse;
  const size_t enough = infonce_scratch_bytes(context(), c.n, c.d);
  for (size_t bytes : {size_t{0}, enough / 2, enough - Scratch::kAlign}) {
    if (GetParam() != Backend::Cpu && bytes > enough / 2)
      continue;  // a GPU needs all of it for large n alone
    expect_too_little_scratch(context(), "infonce_train", bytes, [&](OpRun& op) { run_train(op, c); });
  }
  for (size_t bytes : {size_t{0}, enough / 16}) {  // they need less
    expect_too_little_scratch(context(), "infonce_forward", bytes, [&](OpRun& op) { run_forward(op, c); });
    expect_too_little_scratch(context(), "infonce_backward", bytes, [&](OpRun& op) {
      infonce_backward(op.ctx, {c.in(op), op.in(lse), op.in(1.f), op.out("d_v1", c.n, c.d),
                                op.out("d_v2", c.n, c.d), op.out("d_w0", c.d, c.d)});
    });
  }
}

struct Field {
  std::string name;
  std::vector<float> Case::*values;
};
const Field kFields[] = {{"v1", &Case::v1}, {"v2", &Case::v2}, {"w0", &Case::w0}};

TEST_P(InfoNceErrors, NamesAValueThatIsNotFinite) {
  for (const Field& field : kFields) {
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      SCOPED_TRACE(field.name);
      Case c(26, 16);
      (c.*field.values)[5 * 16 + 2] = bad;
      const size_t scratch = infonce_scratch_bytes(context(), c.n, c.d);
      const auto train = [&] { return run(scratch, [&](OpRun& op) { run_train(op, c); }); };
      const auto forward = [&] { return run(scratch, [&](OpRun& op) { run_forward(op, c); }); };
      if (GetParam() == Backend::Cpu) {
        const std::string part =
            field.name + (std::isnan(bad) ? " is nan" : " is inf") + " in row 5, column 2";
        expect_error(ErrorCode::NotFinite, "infonce_train: " + part, [&] { train(); });
        expect_error(ErrorCode::NotFinite, "infonce_forward: " + part, [&] { forward(); });
      } else {  // a GPU is not read back; there the guard of adam protects
        EXPECT_FALSE(std::isfinite(train().value("loss")));
        EXPECT_FALSE(std::isfinite(forward().value("loss")));
      }
    }
  }
}

bool has_nan(const std::vector<float>& values) {
  return std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

TEST_P(InfoNceErrors, BackwardLosesNoNan) {
  const Case clean(26, 16);
  const std::vector<float> good = clean.expected<float>().lse;
  const size_t scratch = infonce_scratch_bytes(context(), clean.n, clean.d);
  const auto backward = [&](const Case& c, const std::vector<float>& lse, float d_loss) {
    return run(scratch, [&](OpRun& op) {
      infonce_backward(op.ctx, {c.in(op), op.in(lse), op.in(d_loss), op.out("d_v1", c.n, c.d),
                                op.out("d_v2", c.n, c.d), op.out("d_w0", c.d, c.d)});
    });
  };
  const auto expect_nan = [](const Outputs& got) {
    for (const char* output : {"d_v1", "d_v2", "d_w0"}) EXPECT_TRUE(has_nan(got[output])) << output;
  };
  for (const Field& field : kFields) {
    SCOPED_TRACE(field.name);
    Case c = clean;
    (c.*field.values)[5 * 16 + 2] = NAN;
    if (GetParam() == Backend::Cpu) {
      expect_error(ErrorCode::NotFinite, "infonce_backward: " + field.name + " is nan in row 5, column 2",
                   [&] { backward(c, good, 1.f); });
      (c.*field.values)[5 * 16 + 2] = INFINITY;
      expect_error(ErrorCode::NotFinite, "infonce_backward: " + field.name + " is inf in row 5, column 2",
                   [&] { backward(c, good, 1.f); });
    } else {
      expect_nan(backward(c, good, 1.f));
    }
  }
  std::vector<float> bad = good;
  bad[7] = NAN;
  if (GetParam() == Backend::Cpu) {
    expect_error(ErrorCode::NotFinite, "infonce_backward: lse is nan in row 7",
                 [&] { backward(clean, bad, 1.f); });
    expect_error(ErrorCode::NotFinite, "infonce_backward: d_loss is nan in row 0",
                 [&] { backward(clean, good, NAN); });
  } else {  // a GPU is not read back
    expect_nan(backward(clean, bad, 1.f));
    expect_nan(backward(clean, good, NAN));
  }
}

// softplus(-inf) = 0 would give a loss like any other; Identity does not look at w0.
TEST(InfoNceErrorsCpu, ReadsOfW0OnlyNumbers) {
  Context ctx;
  const auto run_all = [&](ScoreMetric metric, float value, const std::string& which) {
    Case c(26, 16, Data::Normal, {metric, true, 1.f});
    c.w0[5 * 16 + 2] = value;
    OpRun op(ctx, 0);
    which == "train" ? run_train(op, c) : run_separate(op, c, 1.f);
    return op.finish()["d_v1"];
  };
  for (const char* which : {"train", "separate"}) {
    for (float bad : {NAN, -INFINITY}) {
      expect_error(ErrorCode::NotFinite,
                   std::isnan(bad) ? ": w0 is nan in row 5" : ": w0 is -inf in row 5, column 2",
                   [&] { run_all(ScoreMetric::SoftplusGram, bad, which); });
      EXPECT_EQ(run_all(ScoreMetric::Identity, bad, which), run_all(ScoreMetric::Identity, 0.f, which));
    }
  }
}

TEST(InfoNceErrorsCpu, BackwardRefusesAnLseThatIsTooLargeForP) {
  Context ctx;
  const Case c(26, 16);
  const auto backward = [&](float lse) {
    std::vector<float> all = c.expected<float>().lse;
    all[3] = lse;
    OpRun op(ctx, 0);
    infonce_backward(ctx, {c.in(op), op.in(all), op.in(1.f), op.out("d_v1", c.n, c.d),
                           op.out("d_v2", c.n, c.d), op.out("d_w0", c.d, c.d)});
  };
  EXPECT_NO_THROW(backward(8192.f));
  expect_error(ErrorCode::InvalidArgument,
               "infonce_backward: lse is 8193 in row 3, too large to tell p from it",
               [&] { backward(8193.f); });
  expect_error(ErrorCode::InvalidArgument, "infonce_train does without", [&] { backward(-9000.f); });
}

// Every column after the first ones may be 2^32 times what the shift stands for; beyond that the shift rises.
TEST(InfoNceErrorsCpu, EmbeddingsUpToTheirLimitHaveRoom) {
  Context ctx;
  constexpr int64_t n = 4096, d = 8;
  const auto train = [&](float score, float embedding) {
    Case c(n, d, Data::Normal, {ScoreMetric::Identity, false, 1.f});
    std::fill(c.v1.begin(), c.v1.end(), 0.f);
    std::fill(c.v2.begin(), c.v2.end(), 0.f);
    for (int64_t i = 0; i < n; ++i) {
      c.v1[i * d] = 1.f;
      c.v2[i * d] = i < 32 ? 0.f : score;
      c.v2[i * d + 1] = embedding;
    }
    OpRun op(ctx, 0);
    run_train(op, c);
  };
  EXPECT_NO_THROW(train(22.f, 8e28f / n));  // 2^31.7
  EXPECT_NO_THROW(train(25.f, 8e28f / n));  // 2^36
  expect_error(ErrorCode::NotFinite, "although every input is finite: a value on the way is beyond float",
               [&] { train(22.f, 8e30f / n); });
}

// Finite inputs whose gradients are beyond float. A GPU is not read back.
TEST(InfoNceErrorsCpu, BackwardNamesAGradientThatIsNotFinite) {
  Context ctx;
  const Case c(26, 16, Data::Normal, {ScoreMetric::Identity, false, 1e2f});
  expect_error(ErrorCode::NotFinite, "infonce_backward: d_v1 is ", [&] {
    OpRun op(ctx, 0);
    run_separate(op, c, 3e38f);
  });
}

// Finite embeddings and a finite loss, but sums beyond float on the way to the gradients.
TEST(InfoNceErrorsCpu, TrainNamesAGradientThatIsNotFinite) {
  Context ctx;
  Case c(75, 16, Data::Normal, {ScoreMetric::Identity, false, 1.f});
  for (float& v : c.v1) v *= 3e-29f;
  for (float& v : c.v2) v *= 1e30f;
  expect_error(ErrorCode::NotFinite, "infonce_train: d_v1 is ", [&] {
    OpRun op(ctx, 0);
    run_train(op, c);
  });
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
