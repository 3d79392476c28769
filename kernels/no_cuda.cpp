// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The cuda:: symbols of a build without CUDA. Each throws Unsupported; none is reached in practice, because a
// Context for the CUDA backend cannot be made.
#include "backends.h"

namespace pwdice::cuda {
namespace {

[[noreturn]] void no_cuda() {
  fail(ErrorCode::Unsupported, "this build of pwdice has no CUDA backend; use the CPU backend or build with PWDICE_CUDA=ON");
}

}  // namespace

struct State {};
struct Graph {};

void activation_backward(Context&, const ActivationBackward&) { no_cuda(); }
void linear_forward(Context&, const LinearForward&) { no_cuda(); }
void linear_backward_input(Context&, const LinearBackwardInput&) { no_cuda(); }
void linear_backward_params(Context&, const LinearBackwardParams&) { no_cuda(); }
void cloning_weights(Context&, const CloningWeights&) { no_cuda(); }
void mlp_forward(Context&, const MlpForward&) { no_cuda(); }
void mlp_backward(Context&, const MlpBackward&) { no_cuda(); }
void matmul(Context&, const Matmul&) { no_cuda(); }
void unary_map(Context&, const UnaryMap&) { no_cuda(); }
void binary_map(Context&, const BinaryMap&) { no_cuda(); }
void affine(Context&, const Affine&) { no_cuda(); }
void accumulate(Context&, const Accumulate&) { no_cuda(); }
void scale_by(Context&, const ScaleBy&) { no_cuda(); }
void mix_rows(Context&, const MixRows&) { no_cuda(); }
void scale_rows(Context&, const ScaleRows&) { no_cuda(); }
void broadcast_columns(Context&, const BroadcastColumns&) { no_cuda(); }
void reduce_sum(Context&, const Reduce&) { no_cuda(); }
void reduce_mean(Context&, const Reduce&) { no_cuda(); }
void reduce_max(Context&, const Reduce&) { no_cuda(); }
void reduce_logsumexp(Context&, const Reduce&) { no_cuda(); }
void reduce_norm(Context&, const Reduce&) { no_cuda(); }
void dot(Context&, const Dot&) { no_cuda(); }
void row_sum(Context&, const RowSum&) { no_cuda(); }
void column_sum(Context&, const ColumnSum&) { no_cuda(); }
void all_finite(Context&, const AllFinite&) { no_cuda(); }
void column_moments(Context&, const ColumnMoments&) { no_cuda(); }
void copy_block(Context&, const CopyBlock&) { no_cuda(); }
void add_block(Context&, const AddBlock&) { no_cuda(); }
void gather_rows(Context&, const GatherRows&) { no_cuda(); }
void gather_values(Context&, const GatherValues&) { no_cuda(); }
void scatter_values(Context&, const ScatterValues&) { no_cuda(); }
void gather_indices(Context&, const GatherIndices&) { no_cuda(); }
void sample_uniform(Context&, const SampleUniform&) { no_cuda(); }
void sample_shuffled(Context&, const SampleShuffled&) { no_cuda(); }
void sample_weighted(Context&, const SampleWeighted&) { no_cuda(); }
void sample_real(Context&, const SampleReal&) { no_cuda(); }
void cumulative_sum(Context&, const CumulativeSum&) { no_cuda(); }
void quantiles(Context&, const Quantiles&) { no_cuda(); }
void row_norm_forward(Context&, const RowNormForward&) { no_cuda(); }
void row_norm_backward(Context&, const RowNormBackward&) { no_cuda(); }
void bce_forward(Context&, const BceForward&) { no_cuda(); }
void bce_backward(Context&, const BceBackward&) { no_cuda(); }
void gradient_penalty(Context&, const GradientPenalty&) { no_cuda(); }
void infonce_forward(Context&, const InfoNceForward&) { no_cuda(); }
void infonce_backward(Context&, const InfoNceBackward&) { no_cuda(); }
void infonce_train(Context&, const InfoNceTrain&) { no_cuda(); }
void cost_matrix(Context&, const CostMatrix&) { no_cuda(); }
void cost_paired(Context&, const CostPaired&) { no_cuda(); }
void transport_joint(Context&, const TransportJoint&) { no_cuda(); }
void transport_semidual(Context&, const TransportSemidual&) { no_cuda(); }
void transport_chi2(Context&, const TransportChi2&) { no_cuda(); }
void transport_paired(Context&, const TransportPaired&) { no_cuda(); }
void column_lse(Context&, const ColumnLse&) { no_cuda(); }
void bellman(Context&, const Bellman&) { no_cuda(); }
void bellman_residual(Context&, const BellmanResidual&) { no_cuda(); }
void policy_weights(Context&, const PolicyWeights&) { no_cuda(); }
void policy_nll_forward(Context&, const PolicyNllForward&) { no_cuda(); }
void policy_nll_backward(Context&, const PolicyNllBackward&) { no_cuda(); }
void adam(Context&, const Adam&) { no_cuda(); }
void clip_scale(Context&, const ClipScale&) { no_cuda(); }
void ema(Context&, const Ema&) { no_cuda(); }
void advance_counter(Context&, Vec<uint64_t>) { no_cuda(); }
void fill(Context&, Vec<float>, float) { no_cuda(); }

CudaAvailability availability() { return {false, "this build has no CUDA backend"}; }
State* create_state(const ContextOptions&) { no_cuda(); }
void StateDeleter::operator()(State*) const noexcept {}
void GraphDeleter::operator()(Graph*) const noexcept {}
void synchronise(State&) { no_cuda(); }
void* allocate(State&, size_t) { no_cuda(); }
void release(State&, void*) noexcept {}
void copy_bytes(State&, void*, const void*, size_t) { no_cuda(); }
void upload(State&, void*, const void*, size_t) { no_cuda(); }
void download(State&, void*, const void*, size_t) { no_cuda(); }
void fill_zero(State&, void*, size_t) { no_cuda(); }
void begin_capture(State&) { no_cuda(); }
Graph* end_capture(State&) { no_cuda(); }
void abandon_capture(State&) noexcept {}
void launch(State&, Graph&) { no_cuda(); }
size_t infonce_scratch_bytes(int64_t, int64_t) { no_cuda(); }
size_t transport_scratch_bytes(int64_t, int64_t, int64_t) { no_cuda(); }
size_t linear_scratch_bytes(int64_t, int64_t, int64_t) { return 0; }
size_t matmul_scratch_bytes(int64_t, int64_t, int64_t) { return 0; }
size_t gradient_penalty_scratch_bytes(int64_t, int64_t, int64_t) { no_cuda(); }
size_t scan_scratch_bytes(int64_t) { return 0; }

}  // namespace pwdice::cuda
