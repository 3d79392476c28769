// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The golden networks, twice: op by op, and through the tape and its layers.
#include <algorithm>
#include <filesystem>

#include "../host/functions.h"
#include "../host/layers.h"
#include "../kernels/bce.h"
#include "../kernels/block.h"
#include "../kernels/elementwise.h"
#include "../kernels/gradient_penalty.h"
#include "../kernels/linear.h"
#include "../kernels/reduce.h"
#include "../kernels/transport.h"
#include "golden.h"
#include "op_case.h"

namespace pwdice::test {
namespace {

// A network as a golden file holds it: W0, b0, W1, b1, ...
struct GoldenNet {
  const GoldenFile& file;
  Activation hidden;
  std::vector<int64_t> sizes;

  GoldenNet(const GoldenFile& f, Activation h) : file(f), hidden(h), sizes{f.cols("W0")} {
    for (int k = 0; f.has(weight(k)); ++k) sizes.push_back(f.rows(weight(k)));
  }
  static std::string weight(int k) { return "W" + std::to_string(k); }
  static std::string bias(int k) { return "b" + std::to_string(k); }
  int layers() const { return static_cast<int>(sizes.size()) - 1; }
  Activation act(int k) const { return k + 1 < layers() ? hidden : Activation::None; }
  size_t scratch(int64_t n) const {
    size_t bytes = 0;
    for (size_t k = 0; k + 1 < sizes.size(); ++k)
      bytes = std::max(bytes, linear_scratch_bytes(n, sizes[k], sizes[k + 1]));
    return bytes;
  }
};

// The network op by op; keeps what backward needs.
class NetOps {
 public:
  NetOps(OpRun& op, const GoldenNet& net, Mat<const float> x) : op_(op), net_(net), h_{x} {
    for (int k = 0; k < net.layers(); ++k) {
      const int64_t in = net.sizes[static_cast<size_t>(k)], out = net.sizes[static_cast<size_t>(k) + 1];
      w_.push_back(op.in(net.file.input(GoldenNet::weight(k)), out, in));
      b_.push_back(op.in(net.file.input(GoldenNet::bias(k))));
      const Mat<float> y = op.out("h" + std::to_string(k), x.rows, out);
      linear_forward(op.ctx, {h_.back(), w_.back(), b_.back(), net.act(k), y});
      h_.push_back(y);
    }
  }
  Mat<const float> y() const { return h_.back(); }
  Mat<const float> w(int k) const { return w_[static_cast<size_t>(k)]; }
  Vec<const float> b(int k) const { return b_[static_cast<size_t>(k)]; }

  // Gradients under the golden names, `prefix` before W0, b0, ..., and dx.
  void backward(Mat<const float> d_y, const std::string& prefix) {
    Mat<const float> d_pre = d_y;  // the last layer has no activation
    for (int k = net_.layers() - 1; k >= 0; --k) {
      const Mat<const float> x = h_[static_cast<size_t>(k)];
      const Mat<float> d_x = op_.out(k == 0 ? "dx" : "d_h" + std::to_string(k), x.rows, x.cols);
      linear_backward_params(op_.ctx, {d_pre, x, op_.out(prefix + GoldenNet::weight(k), d_pre.cols, x.cols),
                                       op_.out(prefix + GoldenNet::bias(k), d_pre.cols)});
      linear_backward_input(op_.ctx, {d_pre, w(k), x, k == 0 ? Activation::None : net_.hidden, d_x});
      d_pre = d_x;
    }
  }

 private:
  OpRun& op_;
  const GoldenNet& net_;
  std::vector<Mat<const float>> h_, w_;
  std::vector<Vec<const float>> b_;
};

// The same network in a ParamStore.
struct NetOnTape {
  ParamStore params{"golden"};
  Mlp net;
  Tape tape;

  NetOnTape(Context& ctx, const GoldenNet& golden)
      : net(params, "net", golden.sizes, golden.hidden), tape(ctx) {
    params.allocate(ctx);
    params.initialise(ctx, 1);
    for (int k = 0; k < golden.layers(); ++k) {
      const Linear& layer = net.layers()[static_cast<size_t>(k)];
      load(ctx, layer.w, golden.file.input(GoldenNet::weight(k)));
      load(ctx, layer.b, golden.file.input(GoldenNet::bias(k)));
    }
    tape.begin(params);
  }
  static void load(Context& ctx, Param param, const std::vector<float>& values) {
    upload(ctx, Vec<float>{param.value().data, param.value().size()}, values);
  }
};

class GoldenNetworks : public OpTest {
 protected:
  // Runs backward and compares the gradients of all layers with <prefix>W0, <prefix>b0, ...
  void expect_gradients(const GoldenFile& file, NetOnTape& on_tape, const Tensor& loss,
                        const std::string& prefix) {
    on_tape.tape.backward(loss);
    for (size_t k = 0; k < on_tape.net.layers().size(); ++k) {
      const Linear& layer = on_tape.net.layers()[k];
      const std::string number = std::to_string(k);
      SCOPED_TRACE("layer " + number);
      expect_within(values(layer.w.gradient()), file.want(prefix + "W" + number), file.rtol());
      expect_within(values(layer.b.gradient()), file.want(prefix + "b" + number), file.rtol());
    }
  }
  std::vector<float> values(Mat<const float> m) {
    return download(context(), Vec<const float>{m.data, m.size()});
  }
  float value(const Tensor& t) { return download_scalar(context(), t); }

  Mat<const float> device(const std::vector<float>& host, int64_t rows, int64_t cols) {
    memory_.emplace_back(context(), rows * cols);
    upload(context(), memory_.back().view(), host);
    return memory_.back().matrix(rows, cols);
  }
  Mat<const float> device(const GoldenFile& file, const std::string& name) {
    return device(file.input(name), file.rows(name), file.cols(name));
  }
  Vec<const float> device_vector(const std::vector<float>& host) {
    const auto n = static_cast<int64_t>(host.size());
    return {device(host, n, 1).data, n};
  }

  void TearDown() override { memory_.clear(); }  // before the Contexts

 private:
  std::vector<Array<float>> memory_;
};
INSTANTIATE_TEST_SUITE_P(, GoldenNetworks, testing::ValuesIn(test_backends()), backend_name);

std::vector<float> stacked(const GoldenFile& file, std::initializer_list<const char*> names) {
  std::vector<float> rows;
  for (const char* name : names) {
    const auto part = file.input(name);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

// -- mlp_relu, mlp_tanh
// -----------------------------------------------------------------------------------------

Activation activation_of(const GoldenFile& file) {
  return std::filesystem::path(file.path()).stem() == "mlp_relu" ? Activation::Relu : Activation::Tanh;
}

TEST_P(GoldenNetworks, MlpByOps) {
  for (const GoldenFile& file : golden_files("mlp_")) {
    SCOPED_TRACE(file.path());
    const GoldenNet net(file, activation_of(file));
    const int64_t n = file.rows("x");
    expect_golden(file, run(net.scratch(n), [&](OpRun& op) {
                    NetOps ops(op, net, op.in(file.input("x"), n, file.cols("x")));
                    copy_block(op.ctx, {ops.y(), op.out("y", n, file.cols("y"))});
                    ops.backward(op.in(file.input("dy"), n, file.cols("dy")), "d");
                  }));
    expect_all_used(file);
  }
}

TEST_P(GoldenNetworks, MlpOnTheTape) {
  for (const GoldenFile& file : golden_files("mlp_")) {
    SCOPED_TRACE(file.path());
    for (bool composed : {false, true}) {
      SCOPED_TRACE(composed ? "composed" : "fused");
      NetOnTape on_tape(context(), GoldenNet(file, activation_of(file)));
      Tape& tape = on_tape.tape;
      const Tensor x = tape.variable(device(file, "x")), dy = tape.constant(device(file, "dy"));
      const Tensor y = composed ? mlp_composed(tape, x, on_tape.net) : mlp(tape, x, on_tape.net);
      expect_within(download(context(), y), file.want("y"), file.rtol());
      const Tensor loss = sum(tape, mul(tape, y, dy));
      const Tensor dx = tape.gradient(loss, x, {});
      expect_within(download(context(), dx), file.want("dx"), file.rtol());
      expect_gradients(file, on_tape, loss, "d");
    }
  }
}

// -- discriminator
// ----------------------------------------------------------------------------------------------

TEST_P(GoldenNetworks, DiscriminatorByOps) {
  for (const GoldenFile& file : golden_files("discriminator")) {
    SCOPED_TRACE(file.path());
    const GoldenNet net(file, Activation::Tanh);
    ASSERT_EQ(net.layers(), 3);
    const int64_t experts = file.rows("sE"), others = file.rows("sI"), n = experts + others;
    const int64_t d = net.sizes[0], m = net.sizes[1], mixed = file.rows("u");
    const auto lambda = static_cast<float>(file.number("lam"));
    const size_t scratch = std::max(
        {net.scratch(n), bce_scratch_bytes(n), gradient_penalty_scratch_bytes(context(), mixed, d, m)});
    const Outputs got = run(scratch, [&](OpRun& op) {
      NetOps ops(op, net, op.in(stacked(file, {"sE", "sI"}), n, d));
      const Vec<const float> logits{ops.y().data, n};
      const Vec<float> d_logits = op.out("d_logits", n);
      copy_block(op.ctx, {ops.y().slice_rows(0, experts), op.out("logits_E", experts, 1)});
      copy_block(op.ctx, {ops.y().slice_rows(experts, others), op.out("logits_I", others, 1)});
      bce_forward(op.ctx, {logits, experts, op.out("bce", 1)});
      bce_backward(op.ctx, {logits, experts, op.in(1.f), d_logits});
      ops.backward({d_logits.data, n, 1}, "dbce_");

      const Mat<float> mix = op.out("mix", mixed, d);
      mix_rows(op.ctx, {op.in(file.input("sE"), mixed, d), op.in(file.input("sI"), mixed, d),
                        op.in(file.input("u")), mix});
      gradient_penalty(op.ctx, {mix,
                                ops.w(0),
                                ops.w(1),
                                ops.b(0),
                                ops.b(1),
                                {ops.w(2).data, m},
                                Activation::Tanh,
                                lambda,
                                op.out("grad_norm", mixed),
                                op.out("penalty", 1),
                                op.out("dpen_W0", m, d),
                                op.out("dpen_W1", m, m),
                                op.out("dpen_b0", m),
                                op.out("dpen_b1", m),
                                op.out("dpen_W2", m)});
    });
    expect_golden(file, got);
    for (const char* name : {"W0", "b0", "W1", "b1", "W2"}) {
      SCOPED_TRACE(name);
      auto total = got[std::string("dbce_") + name];
      const auto penalty = got[std::string("dpen_") + name];
      for (size_t i = 0; i < total.size(); ++i) total[i] += penalty[i];
      expect_within(total, file.want(std::string("d") + name), file.rtol());
    }
    expect_within(got["dbce_b2"], file.want("db2"), file.rtol());
    for (double g : file.want("dpen_b2")) EXPECT_EQ(g, 0) << "the op has no output for it";
    expect_all_used(file);
  }
}

TEST_P(GoldenNetworks, DiscriminatorOnTheTape) {
  for (const GoldenFile& file : golden_files("discriminator")) {
    SCOPED_TRACE(file.path());
    const int64_t experts = file.rows("sE"), n = experts + file.rows("sI"), d = file.cols("sE");
    const Mat<const float> batch = device(stacked(file, {"sE", "sI"}), n, d);
    Array<float> mix(context(), file.rows("u") * d);
    mix_rows(context(), {device(file, "sE"), device(file, "sI"), device_vector(file.input("u")),
                         mix.matrix(file.rows("u"), d)});
    const Mat<const float> mixed = mix.matrix(file.rows("u"), d);
    const auto lambda = static_cast<float>(file.number("lam"));
    for (bool composed : {false, true}) {
      SCOPED_TRACE(composed ? "composed" : "fused");
      NetOnTape on_tape(context(), GoldenNet(file, Activation::Tanh));
      Tape& tape = on_tape.tape;
      const Tensor logits = mlp(tape, tape.constant(batch), on_tape.net);
      const Tensor loss = bce(tape, logits, experts);
      const Tensor penalty = composed ? gradient_penalty_composed(tape, mixed, on_tape.net, lambda)
                                      : gradient_penalty(tape, mixed, on_tape.net, lambda);
      expect_within(value(loss), file.want("bce")[0], file.rtol());
      expect_within(value(penalty), file.want("penalty")[0], file.rtol());
      expect_gradients(file, on_tape, add(tape, loss, penalty), "d");

      NetOnTape alone(context(), GoldenNet(file, Activation::Tanh));
      expect_gradients(file, alone,
                       composed ? gradient_penalty_composed(alone.tape, mixed, alone.net, lambda)
                                : gradient_penalty(alone.tape, mixed, alone.net, lambda),
                       "dpen_");
    }
  }
}

// -- dual_network
// -------------------------------------------------------------------------------------------------

// Rows of the stacked batch: s | s_next | s_expert | s_init.
struct DualRows {
  int64_t n, experts, initial, total, d;
  explicit DualRows(const GoldenFile& f)
      : n(f.rows("s")),
        experts(f.rows("s_expert")),
        initial(f.rows("s_init")),
        total(2 * n + experts + initial),
        d(f.cols("s")) {}
};

std::vector<float> discounts(const GoldenFile& file) {
  std::vector<float> result;
  for (double terminal : file.want("terminal"))
    result.push_back(static_cast<float>(file.number("gamma") * (1 - terminal)));
  return result;
}

// linear_term = sum_j q_j lambda_2(sE_j), init_term = (1 - gamma) mean lambda_0(s0), which the op's Bellman
// loss has subtracted and the file's has not.
void dual_by_ops(OpRun& op, const GoldenFile& file, const GoldenNet& net) {
  const DualRows r(file);
  const auto number = [&](const char* name) { return static_cast<float>(file.number(name)); };
  NetOps ops(op, net, op.in(stacked(file, {"s", "s_next", "s_expert", "s_init"}), r.total, r.d));
  const auto head = [&](const char* name, int64_t column, int64_t row, int64_t count) {
    const Mat<float> to = op.out(name, count, 1);
    copy_block(op.ctx, {{ops.y().row(row) + column, count, 1, ops.y().stride}, to});
    return Vec<const float>{to.data, count};
  };
  const Vec<const float> v = head("v", 0, 0, r.n), u = head("u", 1, 0, r.n),
                         v_next = head("v_next", 0, r.n, r.n);
  const Vec<const float> b = head("b", 2, 2 * r.n, r.experts),
                         v_init = head("v_init", 0, 2 * r.n + r.experts, r.initial);
  const Vec<const float> q = op.in(file.input("q"));
  const PairCost cost{Distance::SquaredEuclidean, number("beta"),
                      op.in(file.input("gI"), r.n, file.cols("gI")),
                      op.in(file.input("gE"), r.experts, file.cols("gE")), op.in(file.input("R"))};
  const Vec<float> d_a = op.out("d_a", r.n), d_b = op.out("d_b", r.experts), d_v = op.out("d_v", r.n);
  const Vec<float> d_v_next = op.out("d_v_next", r.n), d_u = op.out("d_u", r.n),
                   d_init = op.out("d_init", r.initial);
  transport_joint(op.ctx, {cost, u, b, q, number("eps1"), op.out("transport", 1), d_a, d_b});
  bellman(op.ctx, {v, v_next, u, op.in(discounts(file)), v_init, 1.f - number("gamma"), number("eps2"),
                   Divergence::Kl, op.out("bellman_and_init", 1), d_v, d_v_next, d_u, d_init});
  dot(op.ctx, {q, b, op.out("linear_term", 1)});
  accumulate(op.ctx, {q, -1.f, d_b});

  const Mat<float> d_y = op.in_out("d_y", std::vector<float>(static_cast<size_t>(r.total * 3)), r.total, 3);
  const auto place = [&](Vec<float> from, int64_t column, int64_t row) {
    add_block(op.ctx, {{from.data, from.size, 1}, {d_y.row(row) + column, from.size, 1, d_y.stride}});
  };
  place(d_a, 1, 0), place(d_u, 1, 0), place(d_v, 0, 0), place(d_v_next, 0, r.n);
  place(d_b, 2, 2 * r.n), place(d_init, 0, 2 * r.n + r.experts);
  ops.backward(d_y, "d");
}

TEST_P(GoldenNetworks, DualNetworkByOps) {
  for (const GoldenFile& file : golden_files("dual_network")) {
    SCOPED_TRACE(file.path());
    const GoldenNet net(file, Activation::Relu);
    const DualRows r(file);
    const size_t scratch = std::max({net.scratch(r.total), bellman_scratch_bytes(std::max(r.n, r.initial)),
                                     transport_scratch_bytes(context(), r.n, r.experts, file.cols("gI")),
                                     reduce_scratch_bytes(r.experts)});
    const Outputs got = run(scratch, [&](OpRun& op) { dual_by_ops(op, file, net); });
    expect_golden(file, got);
    const float loss = got.value("transport") + got.value("bellman_and_init") - got.value("linear_term");
    expect_within(loss, file.want("loss")[0], file.rtol());
    double initial = 0;
    for (float v : got["v_init"]) initial += static_cast<double>(v) / static_cast<double>(r.initial);
    const double bellman_alone =
        static_cast<double>(got.value("bellman_and_init")) + (1 - file.number("gamma")) * initial;
    expect_within(static_cast<float>(bellman_alone), file.want("bellman")[0], file.rtol());
    expect_all_used(file);
  }
}

TEST_P(GoldenNetworks, DualNetworkOnTheTape) {
  for (const GoldenFile& file : golden_files("dual_network")) {
    SCOPED_TRACE(file.path());
    const DualRows r(file);
    const auto number = [&](const char* name) { return static_cast<float>(file.number(name)); };
    NetOnTape on_tape(context(), GoldenNet(file, Activation::Relu));
    Tape& tape = on_tape.tape;
    const Mat<const float> batch = device(stacked(file, {"s", "s_next", "s_expert", "s_init"}), r.total, r.d);
    const Tensor y = mlp(tape, tape.constant(batch), on_tape.net);
    const Tensor v = column(tape, y, 0, 0, r.n), u = column(tape, y, 1, 0, r.n),
                 v_next = column(tape, y, 0, r.n, r.n);
    const Tensor b = column(tape, y, 2, 2 * r.n, r.experts),
                 v_init = column(tape, y, 0, 2 * r.n + r.experts, r.initial);
    const Vec<const float> q = device_vector(file.input("q"));
    const PairCost cost{Distance::SquaredEuclidean, number("beta"), device(file, "gI"), device(file, "gE"),
                        device_vector(file.input("R"))};
    const Tensor transport = transport_joint(tape, cost, u, b, q, number("eps1"));
    const Tensor flow = bellman(tape, v, v_next, u, device_vector(discounts(file)), v_init,
                                {1.f - number("gamma"), number("eps2"), Divergence::Kl});
    const Tensor linear = sum(tape, mul(tape, b, tape.constant(q)));
    const Tensor loss = sub(tape, add(tape, transport, flow), linear);
    expect_within(value(transport), file.want("transport")[0], file.rtol());
    expect_within(value(loss), file.want("loss")[0], file.rtol());
    expect_gradients(file, on_tape, loss, "d");
  }
}

}  // namespace
}  // namespace pwdice::test
