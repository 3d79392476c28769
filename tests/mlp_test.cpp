// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <limits>

#include "mlp_case.h"
#include "simd_targets.h"

namespace pwdice::test {
namespace {

using Problem = MlpProblem;

class MlpOp : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, MlpOp, testing::ValuesIn(test_backends()), backend_name);

// Rows around chunks, blocks and slices; widths around the tiles, the heads of dot products and the padding
// of hidden rows.
std::vector<Problem> problems() {
  std::vector<Problem> list;
  const Activation acts[] = {Activation::Relu, Activation::Tanh, Activation::None};
  size_t turn = 0;
  for (const int64_t n : {0, 1, 4, 5, 49, 97, 113, 257}) {
    for (const auto& sizes :
         {std::vector<int64_t>{1, 1}, {3, 8}, {11, 33, 3}, {5, 16, 17, 1}, {33, 40, 9, 40, 9}})
      list.emplace_back(n, sizes, acts[turn++ % 3]);
  }
  list.emplace_back(130, std::vector<int64_t>{11, 256, 256, 6}, Activation::Relu);
  list.emplace_back(97, std::vector<int64_t>{111, 128, 129, 1}, Activation::Tanh);
  list.emplace_back(70, std::vector<int64_t>{300, 8, 260, 2}, Activation::Tanh);
  list.emplace_back(300, std::vector<int64_t>{11, 128, 128, 32}, Activation::Relu);
  // four slices, four with few inputs, eight
  list.emplace_back(1025, std::vector<int64_t>{7, 18, 5}, Activation::Relu);
  list.emplace_back(1030, std::vector<int64_t>{32, 37, 15, 3}, Activation::Tanh);
  list.emplace_back(4099, std::vector<int64_t>{2, 9, 1}, Activation::Relu);
  return list;
}

TEST_P(MlpOp, OutputsMatchReference) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    p.compare_outputs(run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, false); }));
  }
}

TEST_P(MlpOp, GradientsMatchReference) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    p.compare_gradients(run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, true); }));
  }
}

TEST(MlpCpu, ManyThreads) {
  for (const int64_t n : {200, 1100, 4100}) {
    const Problem p(n, {11, 48, 40, 3}, Activation::Relu);
    expect_same_bits_on_many_threads([&](const Context&) { return p.scratch_bytes(); },
                                     [&](OpRun& op) { p.call(op, true); });
  }
}

TEST_P(MlpOp, GradientsMatchReferenceWithoutTheInputs) {
  const Problem p(150, {11, 40, 33, 3}, Activation::Tanh);
  p.compare_gradients(run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, true, false); }), false);
}

TEST_P(MlpOp, MatchesReferenceOnEveryData) {
  for (const Data data : kAllData) {
    for (const Activation act : {Activation::Relu, Activation::Tanh}) {
      if (data == Data::Huge && act == Activation::Tanh) continue;  // linear_test.cpp: a matter of luck
      SCOPED_TRACE(name(data));
      for (const Problem& p :
           {Problem(61, {17, 40, 24, 3}, act, data), Problem(61, {17, 64, 64, 1}, act, data)}) {
        p.compare_outputs(run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, false); }));
        p.compare_gradients(run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, true); }));
      }
    }
  }
}

TEST_P(MlpOp, GradientsAgreeWithCentralDifferences) {
  const Problem p(9, {5, 12, 7, 3}, Activation::Tanh);
  const Outputs got = run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, true); });
  const auto loss = [&](const Problem& at, const std::vector<double>& x,
                        const std::vector<std::vector<double>>& w,
                        const std::vector<std::vector<double>>& b) {
    Matrix<double> h(at.n, at.sizes[0], x);
    for (size_t l = 0; l < at.layers(); ++l)
      h = reference::linear(h, Matrix<double>(at.sizes[l + 1], at.sizes[l], w[l]), b[l], at.activation(l));
    return reference::dot(h.data, to<double>(at.d_pre));
  };
  std::vector<std::vector<double>> w, b;
  for (size_t l = 0; l < p.layers(); ++l) w.push_back(to<double>(p.w[l])), b.push_back(to<double>(p.b[l]));
  expect_gradient(
      got["d_x"], [&](const std::vector<double>& v) { return loss(p, v, w, b); }, to<double>(p.x));
  for (size_t l = 0; l < p.layers(); ++l) {
    const auto with_w = [&](const std::vector<double>& v) {
      auto moved = w;
      moved[l] = v;
      return loss(p, to<double>(p.x), moved, b);
    };
    const auto with_b = [&](const std::vector<double>& v) {
      auto moved = b;
      moved[l] = v;
      return loss(p, to<double>(p.x), w, moved);
    };
    expect_gradient(got["d_w" + std::to_string(l)], with_w, w[l]);
    expect_gradient(got["d_b" + std::to_string(l)], with_b, b[l]);
  }
}

// Nobody has to own memory for no rows, and the sums over them are zero.
TEST_P(MlpOp, NoRowsHaveZeroGradients) {
  const std::vector<float> w(6, 1.f), b2(2, 1.f), b3(3, 1.f);
  const Outputs got = run(mlp_scratch_bytes(0, std::vector<int64_t>{3, 2, 3}), [&](OpRun& op) {
    const std::array<MlpLayer, 2> list{
        MlpLayer{op.in(w, 2, 3), op.in(b2), Activation::Relu, {nullptr, 0, 2}},
        MlpLayer{op.in(w, 3, 2), op.in(b3), Activation::None, {nullptr, 0, 3}}};
    const std::array<MlpGradient, 2> to{MlpGradient{op.out("d_w0", 2, 3), op.out("d_b0", 2)},
                                        MlpGradient{op.out("d_w1", 3, 2), op.out("d_b1", 3)}};
    mlp_backward(op.ctx, {{nullptr, 0, 3}, list, {nullptr, 0, 3}, to, {}});
  });
  for (const char* name : {"d_w0", "d_b0", "d_w1", "d_b1"}) {
    for (const float v : got[name]) EXPECT_EQ(v, 0.f) << name;
  }
}

// What predict() relies on: the outputs of every other layer may lie in the same place.
TEST_P(MlpOp, LayersThatDoNotTouchMayShareMemory) {
  const Problem p(200, {7, 20, 20, 20, 20, 2}, Activation::Relu);
  const Outputs got = run(p.scratch_bytes(), [&](OpRun& op) {
    const std::array<Mat<float>, 2> turns = {op.out("even", p.n, 20), op.out("odd", p.n, 20)};
    std::array<MlpLayer, 5> list;
    for (size_t l = 0; l < 5; ++l) {
      list[l] = {op.in(p.w[l], p.sizes[l + 1], p.sizes[l]), op.in(p.b[l]), p.activation(l),
                 l < 4 ? turns[l % 2] : op.out("y", p.n, 2)};
    }
    mlp_forward(op.ctx, {op.in(p.x, p.n, 7), list});
  });
  expect_close(got["y"], p.outputs<double>()[4].data, p.outputs<float>()[4].data);
}

// The strides of shared memory must agree: rows are taken through all layers a few at a time.
TEST_P(MlpOp, SharedMemoryAtTwoStridesIsRefused) {
  const Problem p(200, {7, 20, 20, 12, 2}, Activation::Relu);
  expect_error(ErrorCode::InvalidArgument, "mlp_forward: layers share memory at strides", [&] {
    OpRun op(context(), 0);
    const Mat<float> even = op.out("even", p.n, 20), odd = op.out("odd", p.n, 20);
    const Mat<float> y[] = {even, odd, {even.data, p.n, 12}, op.out("y", p.n, 2)};
    std::array<MlpLayer, 4> list;
    for (size_t l = 0; l < 4; ++l)
      list[l] = {op.in(p.w[l], p.sizes[l + 1], p.sizes[l]), op.in(p.b[l]), p.activation(l), y[l]};
    mlp_forward(op.ctx, {op.in(p.x, p.n, 7), list});
  });
}

TEST_P(MlpOp, NanStaysInItsRow) {
  Problem p(29, {7, 40, 3}, Activation::Relu);
  p.x[5 * 7 + 2] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, false); })["y1"];
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 3 == 5);
}

TEST_P(MlpOp, RefusesWrongShapes) {
  const std::vector<float> f6(6, 1.f), f3(3, 1.f), f2(2, 1.f);
  const auto refuse = [&](const std::string& part, const std::function<void(OpRun&)>& body) {
    expect_error(ErrorCode::InvalidArgument, part, [&] {
      OpRun op(context(), 0);
      body(op);
    });
  };
  const auto layer = [&](OpRun& op) {
    return MlpLayer{op.in(f6, 3, 2), op.in(f3), Activation::None, op.out("y", 3, 3)};
  };
  refuse("mlp_forward: w expects 2 columns, its input has 3", [&](OpRun& op) {
    const std::array<MlpLayer, 2> list{layer(op), layer(op)};
    mlp_forward(op.ctx, {op.in(f6, 3, 2), list});
  });
  refuse("mlp_forward: 0 layers, expected 1 to 8", [&](OpRun& op) {
    mlp_forward(op.ctx, {op.in(f6, 3, 2), {}});
  });
  refuse("mlp_forward: b has 2 values, expected 3", [&](OpRun& op) {
    const std::array<MlpLayer, 1> list{
        MlpLayer{op.in(f6, 3, 2), op.in(f2), Activation::None, op.out("y", 3, 3)}};
    mlp_forward(op.ctx, {op.in(f6, 3, 2), list});
  });
  refuse("mlp_forward: act is 3, expected 0 to 2", [&](OpRun& op) {
    const std::array<MlpLayer, 1> list{
        MlpLayer{op.in(f6, 3, 2), op.in(f3), static_cast<Activation>(3), op.out("y", 3, 3)}};
    mlp_forward(op.ctx, {op.in(f6, 3, 2), list});
  });
  refuse("mlp_backward: 0 gradients for 1 layers", [&](OpRun& op) {
    const std::array<MlpLayer, 1> list{layer(op)};
    mlp_backward(op.ctx, {op.in(f6, 3, 2), list, op.out("d", 3, 3), {}, {}});
  });
  refuse("mlp_backward: d_w is 2 x 3, expected 3 x 2", [&](OpRun& op) {
    const std::array<MlpLayer, 1> list{layer(op)};
    const std::array<MlpGradient, 1> to{MlpGradient{op.out("d_w", 2, 3), op.out("d_b", 3)}};
    mlp_backward(op.ctx, {op.in(f6, 3, 2), list, op.out("d", 3, 3), to, {}});
  });
}

TEST(MlpOpCpu, SmallScratchIsAnErrorThatNamesTheOp) {
  ContextOptions options;
  options.scratch_bytes = 256, options.threads = 1;
  Context ctx(options);
  const Problem p(64, {64, 64, 2}, Activation::None);
  expect_error(ErrorCode::OutOfMemory, "mlp_forward: needs", [&] {
    OpRun op(ctx, 0);
    p.call(op, true);
  });
  EXPECT_EQ(ctx.scratch().used(), 0u);
}

TEST(MlpOpCpu, EveryTargetMatchesReference) {
  ContextOptions options;
  options.threads = 1;
  Context ctx(options);
  on_every_target([&] {
    for (const Problem& p :
         {Problem(300, {17, 40, 45, 6}, Activation::Tanh), Problem(3, {29, 31, 9}, Activation::Relu),
          Problem(300, {17, 64, 96, 1}, Activation::Relu)}) {
      SCOPED_TRACE(p.text());
      OpRun op(ctx, 1);
      p.call(op, true);
      p.compare_gradients(op.finish());
    }
  });
}

}  // namespace
}  // namespace pwdice::test
