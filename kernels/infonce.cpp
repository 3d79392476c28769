// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "infonce.h"

#include <cmath>

#include "backends.h"
#include "check.h"
#include "finite.h"

namespace pwdice {
namespace {

constexpr int64_t kMaxWidth = 128;

void check_batch(const char* op, int64_t n, int64_t d) {
  check_size(op, "the number of pairs", n, 1);
  PWDICE_CHECK(d > 0 && d % 8 == 0 && d <= kMaxWidth,
               "{}: embeddings have width {}, expected a multiple of 8 up to {}", op, d, kMaxWidth);
}

void check_scores(const char* op, const InfoNce& in) {
  const int64_t n = in.v1.rows, d = in.v1.cols;
  check_batch(op, n, d);
  check_matrix(op, "v1", in.v1, n, d);
  check_matrix(op, "v2", in.v2, n, d);
  check_matrix(op, "w0", in.w0, d, d);
  check_choice(op, "metric", in.metric, ScoreMetric::Identity);
  check_positive(op, "inv_tau", in.inv_tau);
}

template <class Gradients>
void check_gradients(const char* op, const Gradients& g) {
  const int64_t n = g.in.v1.rows, d = g.in.v1.cols;
  check_matrix(op, "d_v1", g.d_v1, n, d);
  check_matrix(op, "d_v2", g.d_v2, n, d);
  check_matrix(op, "d_w0", g.d_w0, d, d);
}

// A softplus of -inf is zero and would not show.
void check_w0(Context& ctx, const char* op, const InfoNce& in) {
  if (in.metric != ScoreMetric::Identity) check_finite(ctx, op, {{"w0", in.w0}});
}

template <class Op>
void check_results(Context& ctx, const char* name, const Op& op) {
  check_outputs(ctx, name, {{"d_v1", op.d_v1}, {"d_v2", op.d_v2}, {"d_w0", op.d_w0}},
                {{"v1", op.in.v1}, {"v2", op.in.v2}});
}

// An lse rounded to a float is the whole error of p: 2^-11 here.
void check_lse(Context& ctx, const char* op, Vec<const float> lse) {
  constexpr float kMost = 8192;
  if (ctx.on_gpu()) return;
  for (int64_t i = 0; i < lse.size; ++i) {
    PWDICE_CHECK(
        std::abs(lse[i]) <= kMost,
        "{}: lse is {} in row {}, too large to tell p from it (at most {}); infonce_train does without", op,
        lse[i], i, kMost);
  }
}

}  // namespace

void infonce_forward(Context& ctx, const InfoNceForward& op) {
  const char* name = "infonce_forward";
  check_scores(name, op.in);
  check_vector(name, "lse", op.lse, op.in.v1.rows);
  check_vector(name, "loss", op.loss, 1);
  check_w0(ctx, name, op.in);
  ctx.on_gpu() ? cuda::infonce_forward(ctx, op) : cpu::infonce_forward(ctx, op);
  check_loss(ctx, name, op.loss, {{"v1", op.in.v1}, {"v2", op.in.v2}});
}

void infonce_backward(Context& ctx, const InfoNceBackward& op) {
  const char* name = "infonce_backward";
  check_scores(name, op.in);
  check_vector(name, "lse", op.lse, op.in.v1.rows);
  check_vector(name, "d_loss", op.d_loss, 1);
  check_gradients(name, op);
  check_finite(ctx, name, {{"lse", op.lse}, {"d_loss", op.d_loss}, {"v1", op.in.v1}, {"v2", op.in.v2}});
  check_w0(ctx, name, op.in);
  check_lse(ctx, name, op.lse);
  ctx.on_gpu() ? cuda::infonce_backward(ctx, op) : cpu::infonce_backward(ctx, op);
  check_results(ctx, name, op);
}

void infonce_train(Context& ctx, const InfoNceTrain& op) {
  const char* name = "infonce_train";
  check_scores(name, op.in);
  check_vector(name, "loss", op.loss, 1);
  check_gradients(name, op);
  check_w0(ctx, name, op.in);
  ctx.on_gpu() ? cuda::infonce_train(ctx, op) : cpu::infonce_train(ctx, op);
  check_loss(ctx, name, op.loss, {{"v1", op.in.v1}, {"v2", op.in.v2}});
  check_results(ctx, name, op);
}

size_t infonce_scratch_bytes(const Context& ctx, int64_t n, int64_t d) {
  check_batch("infonce_scratch_bytes", n, d);
  return ctx.on_gpu() ? cuda::infonce_scratch_bytes(n, d) : cpu::infonce_scratch_bytes(ctx.threads(), n, d);
}

}  // namespace pwdice
