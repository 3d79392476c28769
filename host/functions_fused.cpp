// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The fused functions: one kernel op each, first order. Losses whose gradient comes with the value save it
// and only scale it on the way back, and not even that when the loss is the root of the sweep.
#include "../kernels/bce.h"
#include "../kernels/policy_nll.h"
#include "../kernels/row_norm.h"
#include "functions.h"

namespace pwdice {
namespace {

using Node = Tape::Node;

Vec<float> flat(Mat<float> m) { return {m.data, m.size()}; }

// Gradients of a scalar by each input, computed with its value.
struct SavedGradients {
  const char* function;
  const float* by_input[Tape::kMaxInputs];
};

void saved_gradients_rule(Tape& tape, const Node& node, const Tensor& d_loss) {
  const auto saved = node.payload<SavedGradients>();
  tape.require_first_order(saved.function);
  for (int k = 0; k < node.inputs_count; ++k) {
    const Tensor& input = node.inputs[static_cast<size_t>(k)];
    if (!tape.wants(input)) continue;
    const Tensor gradient = tape.constant(Mat<const float>(saved.by_input[k], input.rows(), input.cols()));
    tape.contribute(input, d_loss.unit ? gradient : scale_by(tape, gradient, d_loss));
  }
}

void check_vector(const char* function, const char* argument, const Tensor& x) {
  PWDICE_CHECK(x.cols() == 1, "{}: {} is {} x {}, expected one column", function, argument, x.rows(),
               x.cols());
}

struct RowNormSaved {
  const float* inv_norm;
};
struct BceSaved {
  int64_t positives;
};
struct PolicySaved {
  Mat<const float> action;
  Vec<const float> weight;
};

}  // namespace

Tensor row_normalise(Tape& tape, const Tensor& v) {
  const Mat<float> z = tape.output(v.rows(), v.cols());
  const Vec<float> inv_norm = tape.arena().take<float>(v.rows());
  row_norm_forward(tape.context(), {v.view, z, inv_norm});
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    t.require_first_order("row_normalise");
    const Tensor& z_out = node.out;
    const Mat<float> d_v = t.output(z_out.rows(), z_out.cols());
    row_norm_backward(t.context(),
                      {z_out.view, d.view, {node.payload<RowNormSaved>().inv_norm, z_out.rows()}, d_v});
    t.contribute(node.inputs[0], t.constant(d_v));
  };
  return tape.record(z, rule, {v}, RowNormSaved{inv_norm.data});
}

Tensor bce(Tape& tape, const Tensor& logits, int64_t positives) {
  check_vector("bce", "logits", logits);
  const Mat<float> loss = tape.output(1, 1);
  bce_forward(tape.context(), {logits.vec(), positives, flat(loss)});
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    t.require_first_order("bce");
    const Tensor& h = node.inputs[0];
    const Mat<float> d_h = t.output(h.rows(), 1);
    bce_backward(t.context(), {h.vec(), node.payload<BceSaved>().positives, d.vec(), flat(d_h)});
    t.contribute(h, t.constant(d_h));
  };
  return tape.record(loss, rule, {logits}, BceSaved{positives});
}

Tensor infonce(Tape& tape, const Tensor& v, const Tensor& w0, const InfoNceOptions& options) {
  PWDICE_CHECK(v.rows() % 2 == 0, "infonce: {} rows do not form pairs", v.rows());
  const int64_t n = v.rows() / 2;
  const Mat<float> loss = tape.output(1, 1);
  const Mat<float> d_v = tape.output(v.rows(), v.cols());
  const Mat<float> d_w0 = tape.output(w0.rows(), w0.cols());
  const Mat<const float> v1 = v.view.slice_rows(0, n), v2 = v.view.slice_rows(n, n);
  infonce_train(tape.context(), {{v1, v2, w0.view, options.metric, options.normalise, options.inv_tau},
                                 flat(loss),
                                 d_v.slice_rows(0, n),
                                 d_v.slice_rows(n, n),
                                 d_w0});
  return tape.record(loss, saved_gradients_rule, {v, w0}, SavedGradients{"infonce", {d_v.data, d_w0.data}});
}

Tensor transport_joint(Tape& tape, const PairCost& cost, const Tensor& a, const Tensor& b, Vec<const float> q,
                       float eps) {
  check_vector("transport_joint", "a", a);
  check_vector("transport_joint", "b", b);
  const Mat<float> loss = tape.output(1, 1), d_a = tape.output(a.rows(), 1), d_b = tape.output(b.rows(), 1);
  transport_joint(tape.context(), {cost, a.vec(), b.vec(), q, eps, flat(loss), flat(d_a), flat(d_b)});
  return tape.record(loss, saved_gradients_rule, {a, b},
                     SavedGradients{"transport_joint", {d_a.data, d_b.data}});
}

Tensor transport_semidual(Tape& tape, const PairCost& cost, const Tensor& a, Vec<const float> q, float eps) {
  check_vector("transport_semidual", "a", a);
  const Mat<float> loss = tape.output(1, 1), d_a = tape.output(a.rows(), 1);
  const Vec<float> col_lse = tape.arena().take<float>(cost.y.rows);
  transport_semidual(tape.context(), {cost, a.vec(), q, eps, flat(loss), flat(d_a), col_lse});
  return tape.record(loss, saved_gradients_rule, {a}, SavedGradients{"transport_semidual", {d_a.data}});
}

Tensor transport_chi2(Tape& tape, const PairCost& cost, const Tensor& a, const Tensor& b, Vec<const float> q,
                      float eps, Divergence divergence) {
  check_vector("transport_chi2", "a", a);
  check_vector("transport_chi2", "b", b);
  const Mat<float> loss = tape.output(1, 1), d_a = tape.output(a.rows(), 1), d_b = tape.output(b.rows(), 1);
  transport_chi2(tape.context(),
                 {cost, a.vec(), b.vec(), q, eps, divergence, flat(loss), flat(d_a), flat(d_b)});
  return tape.record(loss, saved_gradients_rule, {a, b},
                     SavedGradients{"transport_chi2", {d_a.data, d_b.data}});
}

Tensor transport_paired(Tape& tape, const PairCost& cost, const Tensor& a, const Tensor& b, float eps,
                        Divergence divergence) {
  check_vector("transport_paired", "a", a);
  check_vector("transport_paired", "b", b);
  const Mat<float> loss = tape.output(1, 1), d_a = tape.output(a.rows(), 1), d_b = tape.output(b.rows(), 1);
  transport_paired(tape.context(),
                   {cost, a.vec(), b.vec(), eps, divergence, flat(loss), flat(d_a), flat(d_b)});
  return tape.record(loss, saved_gradients_rule, {a, b},
                     SavedGradients{"transport_paired", {d_a.data, d_b.data}});
}

Tensor bellman(Tape& tape, const Tensor& v, const Tensor& v_next, const Tensor& u, Vec<const float> discount,
               const Tensor& v_init, const BellmanOptions& options) {
  check_vector("bellman", "v", v);
  check_vector("bellman", "v_next", v_next);
  check_vector("bellman", "u", u);
  check_vector("bellman", "v_init", v_init);
  const Mat<float> loss = tape.output(1, 1), d_v = tape.output(v.rows(), 1),
                   d_next = tape.output(v_next.rows(), 1), d_u = tape.output(u.rows(), 1),
                   d_init = tape.output(v_init.rows(), 1);
  bellman(tape.context(),
          {v.vec(), v_next.vec(), u.vec(), discount, v_init.vec(), options.init_weight, options.eps,
           options.divergence, flat(loss), flat(d_v), flat(d_next), flat(d_u), flat(d_init)});
  return tape.record(loss, saved_gradients_rule, {v, v_next, u, v_init},
                     SavedGradients{"bellman", {d_v.data, d_next.data, d_u.data, d_init.data}});
}

Tensor policy_nll(Tape& tape, const Tensor& head, Mat<const float> action, Vec<const float> weight) {
  const Mat<float> loss = tape.output(1, 1);
  const Vec<float> log_prob = tape.arena().take<float>(head.rows());
  policy_nll_forward(tape.context(), {head.view, action, weight, log_prob, flat(loss)});
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    t.require_first_order("policy_nll");
    const auto saved = node.payload<PolicySaved>();
    const Tensor& h = node.inputs[0];
    const Mat<float> d_head = t.output(h.rows(), h.cols());
    policy_nll_backward(t.context(), {h.view, saved.action, saved.weight, d.vec(), d_head});
    t.contribute(h, t.constant(d_head));
  };
  return tape.record(loss, rule, {head}, PolicySaved{action, weight});
}

}  // namespace pwdice
