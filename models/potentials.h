// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "../datasets/sampler.h"
#include "../host/functions.h"
#include "../host/layers.h"
#include "../host/optim.h"
#include "../host/rng.h"
#include "../kernels/capture.h"

namespace pwdice {

enum class DualMethod {
  Semidual,  // PW-DICE, the expert's potential eliminated in closed form: heads l0, l1
  Joint,     // PW-DICE over all pairs: heads l0, l1, l2
  Paired,    // PW-DICE as the released code estimates it: heads l0, l1, l2
  Smodice,   // head l0 = -V, and u = -R in place of l1
};

struct PotentialsOptions {
  DualMethod method = DualMethod::Semidual;
  Divergence divergence = Divergence::Kl;
  float gamma = 0.998f, eps1 = 0.5f, eps2 = 0.5f;
  Distance distance = Distance::SquaredEuclidean;
  float beta = 5;
  int64_t batch = 512;
  int64_t expert_batch = 0;  // drawn from rho_E each step; 0 = all expert states, weighted by rho_E
  int64_t init_batch = 512;
  bool shared = true;  // the transport term sees the Bellman term's batch; false: a draw of its own, as in the code
  float regulariser = 0;
  AdamOptions adam{.learning_rate = 3e-4f};
};

// What the cost is made of, frozen by now: features of the table's states and of the expert's, and -R.
struct CostTables {
  Mat<const float> features;  // (table rows, f): g(s), or s itself
  Mat<const float> expert;    // (m, f)
  Vec<const float> reward;    // (table rows), already scaled; zeros for a cost without R
};

// The dual potentials: one trunk S -> 256 -> 256, ReLU, and its heads (paper, section 3.4).
//   loss = transport(l1, l2) + bellman(l0, l1) - (1 - gamma) mean l0(s0) - mean l2(E) [+ regulariser]
class Potentials {
 public:
  static constexpr int64_t kWidth = 256;
  static constexpr int64_t kPartRows = 65536;  // transitions that a pass over all pairs looks at together

  Potentials(Context& ctx, const DataTables& data, const CostTables& tables, const PotentialsOptions& options,
             uint64_t seed);

  void step(Context& ctx);

  // Weights of behaviour cloning for every transition of I, largest 1: exp((l0 - gamma l0' - l1)/e2) and its
  // chi2 forms, as one streamed pass over the data.
  void weights(Context& ctx, Vec<float> w) const;

  // The dual objective over the whole data set, all pairs, no estimate, for every divergence. Memory: up to seven floats
  // per transition (the heads of its state and what follows from them), and beyond that bounded. Reads back: for logging.
  double objective(Context& ctx, int64_t part_rows = kPartRows) const;

  Optimiser& optimiser() { return optimiser_; }
  int64_t heads() const { return net_.out(); }
  std::vector<StateSpan> state() const;

 private:
  void draw(Context& ctx);
  Tensor loss(Context& ctx);
  Tensor transport(const Tensor& head);
  void predict(Context& ctx, Mat<const float> states, Mat<float> heads) const;
  Mat<float> predict_all(Context& ctx) const;  // heads of every state of the table
  struct Columns {
    Vec<float> v, v_next, u;  // l0(s), l0(s') and l1(s) of all transitions
  };
  Columns columns(Context& ctx, Mat<const float> heads) const;
  void residual(Context& ctx, Mat<const float> heads, Vec<float> y) const;
  template <class Body>
  void over_pairs(Context& ctx, Mat<const float> heads, int64_t part_rows, const Body& body) const;
  std::vector<double> column_lse_of_data(Context& ctx, Mat<const float> heads, int64_t part_rows) const;
  double transport_chi2_of_data(Context& ctx, Mat<const float> heads, Vec<const float> b, int64_t part_rows) const;
  double transport_objective(Context& ctx, Mat<const float> heads, int64_t part_rows) const;
  double bellman_objective(Context& ctx, Mat<const float> heads, int64_t part_rows) const;
  Tensor initial_head(const Tensor& head);                                      // l0 of the drawn initial states
  Tensor expert_head(const Tensor& head, Vec<const int32_t> index, int64_t begin);  // l2 of drawn expert states
  bool has_expert_head() const { return options_.method == DualMethod::Joint || options_.method == DualMethod::Paired; }
  bool draws_experts() const { return options_.expert_batch > 0; }
  bool draws_twice() const { return has_expert_head() && draws_experts() && !options_.shared; }
  int64_t expert_rows() const;

  const DataTables& data_;
  CostTables tables_;
  PotentialsOptions options_;
  ParamStore params_{"potentials"};
  Mlp net_;
  RandomStream transitions_, pairs_, expert_, expert_linear_, initial_;
  StepCounter counter_;

  // Rows of all sub-batches, through the trunk in one call: s | s' | s0 | s1 | t | t' (those the method needs). Where
  // more states are drawn than there are (one trajectory of 1,000 states for two draws of 1,024), all of them stand
  // there once and for all, and the draws pick from the heads: no state passes through the network twice.
  int64_t begin_next_ = 0, begin_init_ = 0, begin_pair_ = 0, begin_expert_ = 0, begin_linear_ = 0, rows_ = 0;
  bool every_initial_ = false, every_expert_ = false;
  Array<float> x_;
  Array<int32_t> index_, next_, init_index_, expert_index_, linear_index_;
  Array<float> discount_, reward_, features_, expert_features_, q_;
  Array<float> heads_, columns_;  // of a pass: heads of all states; Columns of all transitions
  Optimiser optimiser_;
  Tape tape_;
  CapturedStep captured_;
};

}  // namespace pwdice
