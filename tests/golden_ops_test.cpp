// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Every op against the values another implementation computed in double. Each test takes all files of its
// kind.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "../kernels/adam.h"
#include "../kernels/bce.h"
#include "../kernels/bellman.h"
#include "../kernels/block.h"
#include "../kernels/elementwise.h"
#include "../kernels/infonce.h"
#include "../kernels/policy_nll.h"
#include "../kernels/reduce.h"
#include "../kernels/transport.h"
#include "golden.h"
#include "hdf5_library.h"
#include "op_case.h"

namespace pwdice::test {
namespace {

class GoldenOps : public OpTest {
 protected:
  static float number(const GoldenFile& file, const char* name) {
    return static_cast<float>(file.number(name));
  }
};
INSTANTIATE_TEST_SUITE_P(, GoldenOps, testing::ValuesIn(test_backends()), backend_name);

TEST(GoldenFiles, EveryFileIsKnown) {
  const std::string exact[] = {"clip_norm", "costs",    "discriminator", "dual_network",
                               "policy",    "mlp_relu", "mlp_tanh"};
  const std::string prefixes[] = {"adam_wd_",      "bellman_eps",   "infonce_",
                                  "reward_alpha_", "transport_eps", "transport_paired_eps"};
  for (const auto& path : golden_paths()) {
    const std::string stem = path.stem().string();
    const bool known = std::find(std::begin(exact), std::end(exact), stem) != std::end(exact) ||
                       std::any_of(std::begin(prefixes), std::end(prefixes),
                                   [&](const std::string& p) { return stem.compare(0, p.size(), p) == 0; });
    EXPECT_TRUE(known) << path << " is no golden file this test knows what to do with";
  }
}

TEST(GoldenFiles, NoFileIsAnError) {
  EXPECT_THROW(golden_files("no_such_op"), std::runtime_error);
  EXPECT_FALSE(golden_files("transport_eps").empty());
}

// PWDICE_GOLDEN_DIR for as long as this lives.
class GivenDirectory {
 public:
  explicit GivenDirectory(const std::string& value) {
    if (const char* outer = std::getenv(kName)) outer_ = outer;
    setenv(kName, value.c_str(), 1);
  }
  ~GivenDirectory() { outer_ ? setenv(kName, outer_->c_str(), 1) : unsetenv(kName); }
  GivenDirectory(const GivenDirectory&) = delete;
  GivenDirectory& operator=(const GivenDirectory&) = delete;

 private:
  static constexpr const char* kName = "PWDICE_GOLDEN_DIR";
  std::optional<std::string> outer_;
};

TEST(GoldenFiles, AGivenDirectoryAddsItsOps) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / ("golden_given_" + std::to_string(getpid()));
  fs::create_directories(root);
  const auto count = [](const std::string& directory) {
    const GivenDirectory given(directory);
    return golden_paths().size();
  };
  const size_t ours = count("");
  EXPECT_THROW(count(root), std::runtime_error);
  fs::create_directory(root / "tabular");
  EXPECT_EQ(count(root), ours);
  fs::create_directory(root / "ops");
  fs::copy_file(golden_files("costs").front().path(), root / "ops" / "costs.h5");
  std::ofstream(root / "ops" / "README.md") << "what is in here\n";
  EXPECT_EQ(count(root), ours + 1);
  fs::remove_all(root);
  EXPECT_THROW(count(root), std::runtime_error);
}

TEST(GoldenFiles, AnAttributeOfSeveralNumbersIsAnError) {
  const std::string path = scratch_file("attribute.h5").string();
  {
    const LibraryFile file(path);
    const hsize_t count = 200;
    const hid_t space = H5Screate_simple(1, &count, nullptr);
    H5Aclose(H5Acreate2(file.id, "eps", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  }
  try {
    const GoldenFile read(path);
    ADD_FAILURE() << "read " << path;
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), path + ": attribute eps is not one number");
  }
}

TEST_P(GoldenOps, Adam) {
  for (const GoldenFile& file : golden_files("adam_wd_")) {
    SCOPED_TRACE(file.path());
    const int64_t steps = file.rows("grads"), n = file.cols("grads");
    const auto grads = file.input("grads");
    const std::vector<float> zero(static_cast<size_t>(n));
    const Outputs got = run(0, [&](OpRun& op) {
      const Vec<float> param = op.in_out("param", file.input("p0")), m = op.in_out("m", zero),
                       v = op.in_out("v", zero);
      const Vec<int64_t> t = op.in_out("t", std::vector<int64_t>{0});
      const Vec<const float> lr = op.in(number(file, "lr")), one = op.in(1.f);
      const Mat<const float> grad = op.in(grads, steps, n);
      const Mat<float> params = op.out("params", steps, n);
      for (int64_t i = 0; i < steps; ++i) {
        const Vec<const float> g{grad.row(i), n};
        adam(op.ctx, {0.9f, 0.999f, 1e-8f, number(file, "weight_decay"), lr, one, one, t, g, param, m, v});
        affine(op.ctx, {param, 1.f, 0.f, {params.row(i), n}});
      }
    });
    expect_golden(file, got);
    expect_all_used(file);
  }
}

TEST_P(GoldenOps, ClipNorm) {
  for (const GoldenFile& file : golden_files("clip_norm")) {
    SCOPED_TRACE(file.path());
    std::vector<float> grad;  // g0, g1, ... one after another, as in a flat parameter buffer
    std::vector<double> clipped;
    for (int k = 0; file.has("g" + std::to_string(k)); ++k) {
      const auto part = file.input("g" + std::to_string(k));
      const auto& want = file.want("clipped" + std::to_string(k));
      grad.insert(grad.end(), part.begin(), part.end());
      clipped.insert(clipped.end(), want.begin(), want.end());
    }
    const auto n = static_cast<int64_t>(grad.size());
    const Outputs got = run(reduce_scratch_bytes(n), [&](OpRun& op) {
      const Vec<float> scale = op.out("scale", 1);
      const Vec<const float> g = op.in(grad);
      clip_scale(op.ctx, {g, 1.f, op.out("total_norm", 1), scale});
      scale_by(op.ctx, {g, scale, op.out("clipped", n)});
    });
    expect_golden(file, got);
    expect_within(got["clipped"], clipped, file.rtol());
    expect_all_used(file);
  }
}

TEST_P(GoldenOps, Policy) {
  for (const GoldenFile& file : golden_files("policy")) {
    SCOPED_TRACE(file.path());
    const int64_t n = file.rows("action"), width = file.cols("action");
    const auto mean = file.input("mean"), raw = file.input("raw_logvar");
    std::vector<float> head;
    for (int64_t i = 0; i < n; ++i) {
      head.insert(head.end(), mean.begin() + i * width, mean.begin() + (i + 1) * width);
      head.insert(head.end(), raw.begin() + i * width, raw.begin() + (i + 1) * width);
    }
    const Outputs got = run(policy_nll_scratch_bytes(n), [&](OpRun& op) {
      const Mat<const float> h = op.in(head, n, 2 * width), a = op.in(file.input("action"), n, width);
      const Vec<const float> w = op.in(file.input("weight"));
      policy_nll_forward(op.ctx, {h, a, w, op.out("logp", n), op.out("loss", 1)});
      const Mat<float> d_head = op.out("d_head", n, 2 * width);
      policy_nll_backward(op.ctx, {h, a, w, op.in(1.f), d_head});
      copy_block(op.ctx, {{d_head.data, n, width, d_head.stride}, op.out("dmean", n, width)});
      copy_block(op.ctx, {{d_head.data + width, n, width, d_head.stride}, op.out("draw_logvar", n, width)});
    });
    expect_golden(file, got);
    expect_all_used(file);
  }
}

TEST(GoldenReward, IsTheLogitUpToAConstant) {
  for (const GoldenFile& file : golden_files("reward_alpha_")) {
    SCOPED_TRACE(file.path());
    std::vector<float> reward;
    for (float z : file.input("z"))
      reward.push_back(discriminator_reward(z, static_cast<float>(file.number("alpha"))));
    expect_within(reward, file.want("R"), file.rtol());
    expect_all_used(file);
  }
}

TEST_P(GoldenOps, InfoNce) {
  for (const GoldenFile& file : golden_files("infonce_")) {
    SCOPED_TRACE(file.path());
    const int64_t n = file.rows("v1"), d = file.cols("v1");
    const auto v1 = file.input("v1"), v2 = file.input("v2"), w0 = file.input("W0");
    const size_t scratch = infonce_scratch_bytes(context(), n, d);
    const auto problem = [&](OpRun& op) {
      return InfoNce{op.in(v1, n, d), op.in(v2, n, d), op.in(w0, d, d), ScoreMetric::SoftplusGram, true, 1.f};
    };
    expect_golden(file, run(scratch, [&](OpRun& op) {
                    const InfoNce in = problem(op);
                    const Vec<float> lse = op.out("row_lse", n);
                    infonce_forward(op.ctx, {in, lse, op.out("loss", 1)});
                    infonce_backward(op.ctx, {in, lse, op.in(1.f), op.out("dv1", n, d), op.out("dv2", n, d),
                                              op.out("dW0", d, d)});
                  }));
    expect_golden(file, run(scratch, [&](OpRun& op) {
                    infonce_train(op.ctx, {problem(op), op.out("loss", 1), op.out("dv1", n, d),
                                           op.out("dv2", n, d), op.out("dW0", d, d)});
                  }));
    expect_all_used(file);
  }
}

TEST_P(GoldenOps, Costs) {
  const std::pair<const char*, Distance> plain[] = {{"euclidean2", Distance::SquaredEuclidean},
                                                    {"euclidean", Distance::Euclidean},
                                                    {"manhattan", Distance::Manhattan},
                                                    {"cosine", Distance::Cosine}};
  for (const GoldenFile& file : golden_files("costs")) {
    SCOPED_TRACE(file.path());
    const int64_t n = file.rows("x"), m = file.rows("y"), d = file.cols("x"), e = file.cols("gI");
    const std::vector<float> none(static_cast<size_t>(n));
    const size_t scratch = pair_cost_scratch_bytes(context(), n, m, std::max(d, e));
    expect_golden(
        file, run(scratch, [&](OpRun& op) {
          const Mat<const float> x = op.in(file.input("x"), n, d), y = op.in(file.input("y"), m, d);
          const Mat<const float> gi = op.in(file.input("gI"), n, e), ge = op.in(file.input("gE"), m, e);
          const Vec<const float> zero = op.in(none), reward = op.in(file.input("R"));
          const float beta = number(file, "beta");
          for (const auto& [name, distance] : plain) {
            cost_matrix(op.ctx, {{distance, 1.f, x, y, zero}, op.out(name, n, m)});
          }
          cost_matrix(op.ctx, {{Distance::SquaredEuclidean, beta, gi, ge, zero}, op.out("learned", n, m)});
          cost_matrix(op.ctx,
                      {{Distance::SquaredEuclidean, beta, gi, ge, reward}, op.out("learned_minus_R", n, m)});
        }));
    expect_all_used(file);
  }
}

TEST_P(GoldenOps, Transport) {
  for (const GoldenFile& file : golden_files("transport_eps")) {
    SCOPED_TRACE(file.path());
    const int64_t n = file.rows("gI"), m = file.rows("gE"), d = file.cols("gI");
    const float eps = number(file, "eps");
    expect_golden(file, run(transport_scratch_bytes(context(), n, m, d), [&](OpRun& op) {
                    const PairCost cost{Distance::SquaredEuclidean, number(file, "beta"),
                                        op.in(file.input("gI"), n, d), op.in(file.input("gE"), m, d),
                                        op.in(file.input("R"))};
                    const Vec<const float> a = op.in(file.input("a")), b = op.in(file.input("b")),
                                           q = op.in(file.input("q"));
                    transport_joint(op.ctx, {cost, a, b, q, eps, op.out("joint", 1), op.out("djoint_da", n),
                                             op.out("djoint_db", m)});
                    transport_semidual(op.ctx, {cost, a, q, eps, op.out("semidual", 1),
                                                op.out("dsemidual_da", n), op.out("col_lse", m)});
                    transport_chi2(op.ctx, {cost, a, b, q, eps, Divergence::Chi2, op.out("chi2", 1),
                                            op.out("dchi2_da", n), op.out("dchi2_db", m)});
                    column_lse(op.ctx, {cost, a, eps, op.out("column_lse", m)});
                  }));
    expect_all_used(file);
  }
}

TEST_P(GoldenOps, TransportPaired) {
  for (const GoldenFile& file : golden_files("transport_paired_eps")) {
    SCOPED_TRACE(file.path());
    const int64_t n = file.rows("gI"), d = file.cols("gI");
    expect_golden(
        file, run(transport_scratch_bytes(context(), n, n, d), [&](OpRun& op) {
          const PairCost cost{Distance::SquaredEuclidean, number(file, "beta"), op.in(file.input("gI"), n, d),
                              op.in(file.input("gE"), n, d), op.in(file.input("R"))};
          transport_paired(op.ctx, {cost, op.in(file.input("a")), op.in(file.input("b")), number(file, "eps"),
                                    Divergence::Kl, op.out("loss", 1), op.out("da", n), op.out("db", n)});
        }));
    expect_all_used(file);
  }
}

TEST_P(GoldenOps, Bellman) {
  for (const GoldenFile& file : golden_files("bellman_eps")) {
    SCOPED_TRACE(file.path());
    const int64_t n = file.size("v");
    const float eps = number(file, "eps");
    std::vector<float> discount;
    for (double terminal : file.want("terminal")) {
      discount.push_back(static_cast<float>(file.number("gamma") * (1 - terminal)));
    }
    expect_golden(file, run(bellman_scratch_bytes(n), [&](OpRun& op) {
                    const Vec<const float> v = op.in(file.input("v")), v_next = op.in(file.input("vn")),
                                           u = op.in(file.input("u")), g = op.in(discount), init = op.in(0.f);
                    bellman(op.ctx,
                            {v, v_next, u, g, init, 0.f, eps, Divergence::Kl, op.out("loss", 1),
                             op.out("dv", n), op.out("dvn", n), op.out("du", n), op.out("d_init", 1)});
                    bellman(op.ctx, {v, v_next, u, g, init, 0.f, eps, Divergence::Chi2, op.out("chi2", 1),
                                     op.out("dchi2_dv", n), op.out("dchi2_dvn", n), op.out("dchi2_du", n),
                                     op.out("d_init_chi2", 1)});
                    const Vec<float> y = op.out("y", n);
                    bellman_residual(op.ctx, {v, v_next, u, g, eps, y});
                    policy_weights(op.ctx, {y, Divergence::Kl, op.out("weight", n)});
                  }));
    expect_all_used(file);
  }
}

}  // namespace
}  // namespace pwdice::test
