// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The fused functions: value and gradient against the formula in double, the gradient also when the loss is
// not the root of the sweep (then it must be scaled), and a second derivative refused. The formulas of the
// ops have tests of their own; here it is the wiring.
#include <cmath>

#include "../host/functions.h"
#include "reference.h"
#include "tape_case.h"

namespace pwdice::test {
namespace {

class FusedFunctions : public TapeTest {
 protected:
  using Build = std::function<Tensor(const std::vector<Tensor>&)>;
  using Want = std::function<double(const Values&)>;

  void expect_loss(const char* name, const std::vector<Shape>& shapes, const Build& build, const Want& want) {
    SCOPED_TRACE(name);
    std::vector<float> host;
    for (const Shape& s : shapes) {
      for (const float value : normal(s.size(), 10 + host.size())) host.push_back(value);
    }
    const auto x = to<double>(host);
    const Function f = [&](const std::vector<double>& at) { return want(split(shapes, at)); };
    for (const bool root : {true, false}) {
      tape_.begin();
      std::vector<Tensor> inputs;
      int64_t offset = 0;
      for (const Shape& s : shapes) {
        const std::vector<float> part(host.begin() + offset, host.begin() + offset + s.size());
        inputs.push_back(tape_.variable(in_memory(part, s.rows, s.cols)));
        offset += s.size();
      }
      const Tensor loss = build(inputs);
      expect_within(download_scalar(ctx_, loss), f(x), 1e-5, 1e-6);
      std::vector<Tensor> gradients(inputs.size());
      tape_.gradient(root ? loss : scale(tape_, loss, -3.0f), inputs, gradients, {});
      std::vector<float> gradient;
      for (const Tensor& g : gradients) {
        for (const float value : download(ctx_, g)) gradient.push_back(root ? value : value / -3.0f);
      }
      expect_gradient(gradient, f, x, 1e-4);
      expect_error(ErrorCode::Unsupported, "no second derivative",
                   [&] { tape_.gradient(loss, inputs, gradients, {.create_graph = true}); });
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, FusedFunctions, testing::ValuesIn(test_backends()), backend_name);

TEST_P(FusedFunctions, Bce) {
  expect_loss(
      "bce", {{7, 1}}, [&](const std::vector<Tensor>& x) { return bce(tape_, x[0], 3); },
      [](const Values& v) {
        double loss = 0;
        for (size_t i = 0; i < 7; ++i) {
          loss += i < 3 ? reference::softplus(-v[0][i]) / 3 : reference::softplus(v[0][i]) / 4;
        }
        return loss;
      });
}

TEST_P(FusedFunctions, RowNormalise) {
  const auto w = normal(12, 5);
  const Mat<const float> weights = in_memory(w, 4, 3);
  expect_loss(
      "row_normalise", {{4, 3}},
      [&](const std::vector<Tensor>& x) {
        return sum(tape_, mul(tape_, row_normalise(tape_, x[0]), tape_.constant(weights)));
      },
      [&](const Values& v) {
        double total = 0;
        for (size_t i = 0; i < 4; ++i) {
          const double* r = v[0].data() + 3 * i;
          const double norm = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
          for (size_t j = 0; j < 3; ++j) total += static_cast<double>(w[3 * i + j]) * r[j] / norm;
        }
        return total;
      });
}

// The paper's score: rows of length one, M = softplus(W0) softplus(W0)^T.
double infonce_want(const Values& v, int64_t n, int64_t d) {
  reference::Matrix<double> z(2 * n, d, v[0]), s(d, d, v[1]);
  for (double& value : s.data) value = reference::softplus(value);
  const auto m = reference::product(s, reference::transpose(s));
  for (int64_t i = 0; i < 2 * n; ++i) {
    double norm = 0;
    for (int64_t k = 0; k < d; ++k) norm += z(i, k) * z(i, k);
    for (int64_t k = 0; k < d; ++k) z(i, k) /= std::sqrt(norm);
  }
  const auto zm = reference::product(z, m);
  double loss = 0;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> scores(static_cast<size_t>(n), 0.0);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < d; ++k) scores[static_cast<size_t>(j)] += zm(i, k) * z(n + j, k);
    }
    loss += (reference::logsumexp(scores) - scores[static_cast<size_t>(i)]) / static_cast<double>(n);
  }
  return loss;
}

TEST_P(FusedFunctions, InfoNce) {
  expect_loss(
      "infonce", {{12, 8}, {8, 8}}, [&](const std::vector<Tensor>& x) { return infonce(tape_, x[0], x[1]); },
      [](const Values& v) { return infonce_want(v, 6, 8); });
}

struct TransportData {
  static constexpr int64_t n = 6, m = 5, d = 8;
  static constexpr double beta = 0.3, eps = 0.7;
  std::vector<float> x = normal(n * d, 50), y = normal(m * d, 51), reward = normal(n, 52),
                     q = {.1f, .2f, .3f, .4f, 0};

  double cost(size_t i, size_t j) const {
    double total = 0;
    for (size_t k = 0; k < d; ++k) {
      const double gap = static_cast<double>(x[d * i + k]) - static_cast<double>(y[d * j + k]);
      total += gap * gap;
    }
    return beta * total - static_cast<double>(reward[i]);
  }
  // y_ij for the potentials v = {a, b}
  double score(const Values& v, size_t i, size_t j) const { return (v[0][i] + v[1][j] - cost(i, j)) / eps; }
};

TEST_P(FusedFunctions, TransportOfBothPotentials) {
  const TransportData data;
  const int64_t n = data.n, m = data.m, d = data.d;
  const float eps = 0.7f;
  const PairCost cost{Distance::SquaredEuclidean, 0.3f, in_memory(data.x, n, d), in_memory(data.y, m, d),
                      in_memory(data.reward)};
  const Vec<const float> q = in_memory(data.q);
  expect_loss(
      "joint", {{n, 1}, {m, 1}},
      [&](const std::vector<Tensor>& x) { return transport_joint(tape_, cost, x[0], x[1], q, eps); },
      [&](const Values& v) {
        double total = 0;
        for (size_t i = 0; i < 6; ++i) {
          for (size_t j = 0; j < 5; ++j) {
            total += static_cast<double>(data.q[j]) / 6 * std::exp(data.score(v, i, j));
          }
        }
        return data.eps * std::log(total);
      });
  expect_loss(
      "chi2", {{n, 1}, {m, 1}},
      [&](const std::vector<Tensor>& x) {
        return transport_chi2(tape_, cost, x[0], x[1], q, eps, Divergence::Chi2);
      },
      [&](const Values& v) {
        double total = 0;
        for (size_t i = 0; i < 6; ++i) {
          for (size_t j = 0; j < 5; ++j) {
            const double y = data.score(v, i, j) + 1;
            total += static_cast<double>(data.q[j]) / 6 * y * y / 2;
          }
        }
        return data.eps * total;
      });
}

TEST_P(FusedFunctions, TransportSemidualAndPaired) {
  const TransportData data;
  const int64_t n = data.n, m = data.m, d = data.d;
  const float eps = 0.7f;
  const PairCost cost{Distance::SquaredEuclidean, 0.3f, in_memory(data.x, n, d), in_memory(data.y, m, d),
                      in_memory(data.reward)};
  const Vec<const float> q = in_memory(data.q);
  expect_loss(
      "semidual", {{n, 1}},
      [&](const std::vector<Tensor>& x) { return transport_semidual(tape_, cost, x[0], q, eps); },
      [&](const Values& v) {
        double total = 0;
        for (size_t j = 0; j < 5; ++j) {
          double column = 0;
          for (size_t i = 0; i < 6; ++i) column += std::exp((v[0][i] - data.cost(i, j)) / data.eps) / 6;
          total += static_cast<double>(data.q[j]) * data.eps * std::log(column);
        }
        return total;
      });
  const PairCost square{Distance::SquaredEuclidean, 0.3f, cost.x.slice_rows(0, m), cost.y,
                        cost.reward.slice(0, m)};
  expect_loss(
      "paired", {{m, 1}, {m, 1}},
      [&](const std::vector<Tensor>& x) {
        return transport_paired(tape_, square, x[0], x[1], eps, Divergence::Kl);
      },
      [&](const Values& v) {
        double total = 0;
        for (size_t i = 0; i < 5; ++i) total += std::exp(data.score(v, i, i)) / 5;
        return data.eps * std::log(total);
      });
}

TEST_P(FusedFunctions, Bellman) {
  const std::vector<float> discount = {0.9f, 0, 0.9f, 0.9f, 0};
  const Vec<const float> discounts = in_memory(discount);
  expect_loss(
      "bellman", {{5, 1}, {5, 1}, {5, 1}, {3, 1}},
      [&](const std::vector<Tensor>& x) {
        return bellman(tape_, x[0], x[1], x[2], discounts, x[3], {.init_weight = 0.1f, .eps = 0.5f});
      },
      [&](const Values& v) {
        double total = 0;
        for (size_t i = 0; i < 5; ++i) {
          total += std::exp((v[0][i] - static_cast<double>(discount[i]) * v[1][i] - v[2][i]) / 0.5);
        }
        return 0.5 * std::log(total / 5) - static_cast<double>(0.1f) * reference::sum(v[3]) / 3;
      });
}

TEST_P(FusedFunctions, PolicyNll) {
  const auto action = uniform(8, -0.9f, 0.9f, 60), weight = uniform(4, 0.1f, 1.0f, 61);
  const Mat<const float> actions = in_memory(action, 4, 2);
  const Vec<const float> weights = in_memory(weight);
  expect_loss(
      "policy_nll", {{4, 4}},
      [&](const std::vector<Tensor>& x) { return policy_nll(tape_, x[0], actions, weights); },
      [&](const Values& v) {
        double loss = 0;
        for (size_t i = 0; i < 4; ++i) {
          for (size_t k = 0; k < 2; ++k) {
            const double a = static_cast<double>(action[2 * i + k]);
            const double logvar = 7 * std::tanh(v[0][4 * i + 2 + k]) - 3;
            const double gap = std::atanh(a) - v[0][4 * i + k];
            const double log_prob = -0.5 * (std::log(2 * M_PI) + logvar + gap * gap * std::exp(-logvar)) -
                                    std::log(1 - a * a + 1e-10);
            loss -= static_cast<double>(weight[i]) * log_prob / 4;
          }
        }
        return loss;
      });
}

}  // namespace
}  // namespace pwdice::test
