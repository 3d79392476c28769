// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "sample.h"

#include <limits>

#include "backends.h"

namespace pwdice {
namespace {

void check_step(const char* op, Vec<const uint64_t> step) {
  PWDICE_CHECK(step.size == 1, "{}: step has {} values, expected 1", op, step.size);
}

void check_population(const char* op, int64_t population) {
  PWDICE_CHECK(population >= 1 && population <= std::numeric_limits<int32_t>::max(),
               "{}: the population is {}, expected 1 to {}", op, population,
               std::numeric_limits<int32_t>::max());
}

}  // namespace

void sample_uniform(Context& ctx, const SampleUniform& op) {
  check_step("sample_uniform", op.step);
  check_population("sample_uniform", op.population);
  ctx.on_gpu() ? cuda::sample_uniform(ctx, op) : cpu::sample_uniform(ctx, op);
}

void sample_shuffled(Context& ctx, const SampleShuffled& op) {
  check_step("sample_shuffled", op.step);
  check_population("sample_shuffled", op.population);
  ctx.on_gpu() ? cuda::sample_shuffled(ctx, op) : cpu::sample_shuffled(ctx, op);
}

void sample_weighted(Context& ctx, const SampleWeighted& op) {
  check_step("sample_weighted", op.step);
  check_population("sample_weighted", op.cumulative.size);
  ctx.on_gpu() ? cuda::sample_weighted(ctx, op) : cpu::sample_weighted(ctx, op);
}

void sample_real(Context& ctx, const SampleReal& op) {
  check_step("sample_real", op.step);
  ctx.on_gpu() ? cuda::sample_real(ctx, op) : cpu::sample_real(ctx, op);
}

void advance_counter(Context& ctx, Vec<uint64_t> step) {
  check_step("advance_counter", step);
  ctx.on_gpu() ? cuda::advance_counter(ctx, step) : cpu::advance_counter(ctx, step);
}

}  // namespace pwdice
