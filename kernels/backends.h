// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// What each backend implements. kernels/<op>.cpp checks the arguments once and calls one of the two.

#include "activation.h"
#include "adam.h"
#include "bce.h"
#include "bellman.h"
#include "block.h"
#include "capture.h"
#include "cloning_weights.h"
#include "elementwise.h"
#include "gather.h"
#include "gradient_penalty.h"
#include "infonce.h"
#include "linear.h"
#include "matmul.h"
#include "mlp.h"
#include "policy_nll.h"
#include "reduce.h"
#include "row_norm.h"
#include "sample.h"
#include "scan.h"
#include "transport.h"

namespace pwdice::cpu {

void activation_backward(Context& ctx, const ActivationBackward& op);
void linear_forward(Context& ctx, const LinearForward& op);
void linear_backward_input(Context& ctx, const LinearBackwardInput& op);
void linear_backward_params(Context& ctx, const LinearBackwardParams& op);
void mlp_forward(Context& ctx, const MlpForward& op);
void mlp_backward(Context& ctx, const MlpBackward& op);
void matmul(Context& ctx, const Matmul& op);
void unary_map(Context& ctx, const UnaryMap& op);
void binary_map(Context& ctx, const BinaryMap& op);
void affine(Context& ctx, const Affine& op);
void accumulate(Context& ctx, const Accumulate& op);
void scale_by(Context& ctx, const ScaleBy& op);
void mix_rows(Context& ctx, const MixRows& op);
void scale_rows(Context& ctx, const ScaleRows& op);
void broadcast_columns(Context& ctx, const BroadcastColumns& op);
void reduce_sum(Context& ctx, const Reduce& op);
void reduce_mean(Context& ctx, const Reduce& op);
void reduce_max(Context& ctx, const Reduce& op);
void reduce_logsumexp(Context& ctx, const Reduce& op);
void reduce_norm(Context& ctx, const Reduce& op, const char* name = "reduce_norm");
void dot(Context& ctx, const Dot& op);
void row_sum(Context& ctx, const RowSum& op);
void column_sum(Context& ctx, const ColumnSum& op);
void all_finite(Context& ctx, const AllFinite& op);
void column_moments(Context& ctx, const ColumnMoments& op);
void copy_block(Context& ctx, const CopyBlock& op);
void add_block(Context& ctx, const AddBlock& op);
void gather_rows(Context& ctx, const GatherRows& op);
void gather_values(Context& ctx, const GatherValues& op);
void scatter_values(Context& ctx, const ScatterValues& op);
void gather_indices(Context& ctx, const GatherIndices& op);
void sample_uniform(Context& ctx, const SampleUniform& op);
void sample_shuffled(Context& ctx, const SampleShuffled& op);
void sample_weighted(Context& ctx, const SampleWeighted& op);
void sample_real(Context& ctx, const SampleReal& op);
void cumulative_sum(Context& ctx, const CumulativeSum& op);
void quantiles(Context& ctx, const Quantiles& op);
void row_norm_forward(Context& ctx, const RowNormForward& op);
void row_norm_backward(Context& ctx, const RowNormBackward& op);
void bce_forward(Context& ctx, const BceForward& op);
void bce_backward(Context& ctx, const BceBackward& op);
void gradient_penalty(Context& ctx, const GradientPenalty& op);
void infonce_forward(Context& ctx, const InfoNceForward& op);
void infonce_backward(Context& ctx, const InfoNceBackward& op);
void infonce_train(Context& ctx, const InfoNceTrain& op);
void cost_matrix(Context& ctx, const CostMatrix& op);
void cost_paired(Context& ctx, const CostPaired& op);
void transport_joint(Context& ctx, const TransportJoint& op);
void transport_semidual(Context& ctx, const TransportSemidual& op);
void transport_chi2(Context& ctx, const TransportChi2& op);
void transport_paired(Context& ctx, const TransportPaired& op);
void column_lse(Context& ctx, const ColumnLse& op);
void bellman(Context& ctx, const Bellman& op);
void bellman_residual(Context& ctx, const BellmanResidual& op);
void policy_weights(Context& ctx, const PolicyWeights& op);
void cloning_weights(Context& ctx, const CloningWeights& op);
void policy_nll_forward(Context& ctx, const PolicyNllForward& op);
void policy_nll_backward(Context& ctx, const PolicyNllBackward& op);
void adam(Context& ctx, const Adam& op);
void clip_scale(Context& ctx, const ClipScale& op);
void ema(Context& ctx, const Ema& op);
void advance_counter(Context& ctx, Vec<uint64_t> step);
void fill(Context& ctx, Vec<float> values, float value);

}  // namespace pwdice::cpu

namespace pwdice::cuda {

void activation_backward(Context& ctx, const ActivationBackward& op);
void linear_forward(Context& ctx, const LinearForward& op);
void linear_backward_input(Context& ctx, const LinearBackwardInput& op);
void linear_backward_params(Context& ctx, const LinearBackwardParams& op);
void mlp_forward(Context& ctx, const MlpForward& op);
void mlp_backward(Context& ctx, const MlpBackward& op);
void matmul(Context& ctx, const Matmul& op);
void unary_map(Context& ctx, const UnaryMap& op);
void binary_map(Context& ctx, const BinaryMap& op);
void affine(Context& ctx, const Affine& op);
void accumulate(Context& ctx, const Accumulate& op);
void scale_by(Context& ctx, const ScaleBy& op);
void mix_rows(Context& ctx, const MixRows& op);
void scale_rows(Context& ctx, const ScaleRows& op);
void broadcast_columns(Context& ctx, const BroadcastColumns& op);
void reduce_sum(Context& ctx, const Reduce& op);
void reduce_mean(Context& ctx, const Reduce& op);
void reduce_max(Context& ctx, const Reduce& op);
void reduce_logsumexp(Context& ctx, const Reduce& op);
void reduce_norm(Context& ctx, const Reduce& op);
void dot(Context& ctx, const Dot& op);
void row_sum(Context& ctx, const RowSum& op);
void column_sum(Context& ctx, const ColumnSum& op);
void all_finite(Context& ctx, const AllFinite& op);
void column_moments(Context& ctx, const ColumnMoments& op);
void copy_block(Context& ctx, const CopyBlock& op);
void add_block(Context& ctx, const AddBlock& op);
void gather_rows(Context& ctx, const GatherRows& op);
void gather_values(Context& ctx, const GatherValues& op);
void scatter_values(Context& ctx, const ScatterValues& op);
void gather_indices(Context& ctx, const GatherIndices& op);
void sample_uniform(Context& ctx, const SampleUniform& op);
void sample_shuffled(Context& ctx, const SampleShuffled& op);
void sample_weighted(Context& ctx, const SampleWeighted& op);
void sample_real(Context& ctx, const SampleReal& op);
void cumulative_sum(Context& ctx, const CumulativeSum& op);
void quantiles(Context& ctx, const Quantiles& op);
void row_norm_forward(Context& ctx, const RowNormForward& op);
void row_norm_backward(Context& ctx, const RowNormBackward& op);
void bce_forward(Context& ctx, const BceForward& op);
void bce_backward(Context& ctx, const BceBackward& op);
void gradient_penalty(Context& ctx, const GradientPenalty& op);
void infonce_forward(Context& ctx, const InfoNceForward& op);
void infonce_backward(Context& ctx, const InfoNceBackward& op);
void infonce_train(Context& ctx, const InfoNceTrain& op);
void cost_matrix(Context& ctx, const CostMatrix& op);
void cost_paired(Context& ctx, const CostPaired& op);
void transport_joint(Context& ctx, const TransportJoint& op);
void transport_semidual(Context& ctx, const TransportSemidual& op);
void transport_chi2(Context& ctx, const TransportChi2& op);
void transport_paired(Context& ctx, const TransportPaired& op);
void column_lse(Context& ctx, const ColumnLse& op);
void bellman(Context& ctx, const Bellman& op);
void bellman_residual(Context& ctx, const BellmanResidual& op);
void policy_weights(Context& ctx, const PolicyWeights& op);
void cloning_weights(Context& ctx, const CloningWeights& op);
void policy_nll_forward(Context& ctx, const PolicyNllForward& op);
void policy_nll_backward(Context& ctx, const PolicyNllBackward& op);
void adam(Context& ctx, const Adam& op);
void clip_scale(Context& ctx, const ClipScale& op);
void ema(Context& ctx, const Ema& op);
void advance_counter(Context& ctx, Vec<uint64_t> step);
void fill(Context& ctx, Vec<float> values, float value);

// Runtime services behind context.h, memory.h and capture.h.
CudaAvailability availability();
State* create_state(const ContextOptions& options);
void synchronise(State& state);
void* allocate(State& state, size_t bytes);
void release(State& state, void* memory) noexcept;
void copy_bytes(State& state, void* to, const void* from, size_t bytes);
void upload(State& state, void* to, const void* host, size_t bytes);
void download(State& state, void* host, const void* from, size_t bytes);
void fill_zero(State& state, void* memory, size_t bytes);
void begin_capture(State& state);
Graph* end_capture(State& state);
void abandon_capture(State& state) noexcept;
void launch(State& state, Graph& graph);

// Scratch of the device ops whose need depends on the launch shape.
size_t infonce_scratch_bytes(int64_t n, int64_t d);
size_t transport_scratch_bytes(int64_t n, int64_t m, int64_t d);
// 0 in a build without CUDA: the public functions of these have no Context and give enough for both backends.
size_t linear_scratch_bytes(int64_t n, int64_t in, int64_t out);
size_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k);
size_t gradient_penalty_scratch_bytes(int64_t n, int64_t d, int64_t m);
size_t scan_scratch_bytes(int64_t n);

}  // namespace pwdice::cuda

namespace pwdice::cpu {

size_t infonce_scratch_bytes(int threads, int64_t n, int64_t d);
size_t transport_scratch_bytes(int threads, int64_t n, int64_t m, int64_t d);
size_t column_lse_scratch_bytes(int threads, int64_t m, int64_t d);

}  // namespace pwdice::cpu
