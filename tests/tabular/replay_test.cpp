// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// The stream of the published instances, and the published results it leads to.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "../../models/tabular/lobsdice.h"
#include "../../models/tabular/metrics.h"
#include "../../models/tabular/published.h"
#include "../../models/tabular/smodice.h"

namespace pwdice::tabular {
namespace {

// Draws of numpy.random.RandomState(20240601), in this order.
TEST(Replay, LegacyDrawsEqualNumpy) {
  LegacyRandom random(20240601);
  EXPECT_EQ(random.uniform(), 0.4045199754869767);
  EXPECT_EQ(random.uniform(), 0.4561015432594192);
  EXPECT_EQ(random.choose_distinct(20, 4), (std::vector<int>{8, 19, 2, 16}));
  EXPECT_EQ(random.choose_distinct(7, 3), (std::vector<int>{1, 6, 0}));
  for (const size_t hot : {2u, 1u, 2u, 2u, 1u, 3u}) EXPECT_EQ(random.one_hot(4)[hot], 1);
  const auto y = random.dirichlet_ones(4);
  EXPECT_EQ(y[0], 0.059342335864469464);
  EXPECT_EQ(y[1], 0.2768249685728885);
  EXPECT_EQ(y[2], 0.25674281359828743);
  EXPECT_EQ(y[3], 0.40708988196435464);
  const std::array<double, 4> p{0.1, 0.2, 0.3, 0.4};
  for (const int index : {0, 3, 1, 0, 2, 2, 2, 2}) EXPECT_EQ(random.choose(p), index);
  EXPECT_EQ(random.uniform(), 0.14144701979175411);
}

struct Published {
  double tv_ss, tv_s, regret;
};

// SMODICE-KL, expert size 10, agnostic size 10, eta 1, estimated model: the raw published results.
constexpr std::array<Published, 10> kDeterministic{{
    {1.3463747512230828, 0.763900260907572, 0.10690198959032574},
    {1.7024385089681857, 0.884959590507131, 0.09951315340858402},
    {1.699775054511954, 0.878698860226767, 0.07880088313751354},
    {1.6708789327089058, 0.97472727421372, 0.14467122387156398},
    {1.6448366826044238, 0.7832259626328668, 0.09946560545473668},
    {1.6067550057471864, 0.9398896203992247, 0.06664960613026974},
    {1.700178679431026, 0.9022449601841883, 0.15107385031210724},
    {1.0605082201808418, 0.4800969151134823, 0.07529755422544213},
    {1.5829182274823177, 0.7283643615294211, 0.11254487334599579},
    {1.3869228528174982, 0.5655966683894398, 0.0935889582511899},
}};
constexpr std::array<Published, 10> kSoftmax{{
    {1.0788281351288989, 0.5106141916466698, 0.009419135220622096},
    {1.0525721194573407, 0.4629643568856307, -0.007921363958798167},
    {1.0390056358129323, 0.46372083173754863, -0.021616140576423158},
    {0.9047223034155828, 0.35144098705466187, 0.021848494378582377},
    {0.9651304572048383, 0.4973377539298791, 0.01175188914277191},
    {0.917345342572065, 0.3556377522464188, 0.0026913136552020912},
    {0.868772230454091, 0.4289480275513071, 0.007074161644868529},
    {0.7022871194011251, 0.20720704219161734, -0.009834244007583266},
    {0.8218842782236104, 0.43896519177296367, 0.01749834079291818},
    {0.8148761745592513, 0.32370889439902145, -0.003522838699018982},
}};

TEST(Replay, SmodiceKlMatchesThePublishedInstances) {
  int compared = 0;
  replay_published([&](const CellKey& cell, int index, Instance&& instance) {
    if (cell.expert_size > 10) return false;
    if (cell.eta != 1.0) return true;
    for (const ExpertKind kind : {ExpertKind::Deterministic, ExpertKind::Softmax}) {
      const auto& published =
          (kind == ExpertKind::Deterministic ? kDeterministic : kSoftmax)[static_cast<size_t>(index)];
      const Problem problem =
          estimate_problem(instance.agnostic, instance.expert(kind), 4, instance.mdp.p0, {});
      const Metrics metrics =
          evaluate(instance.mdp, instance.experts.of(kind), solve_smodice_kl(problem).policy);
      EXPECT_NEAR(metrics.regret, published.regret, 5e-6) << name(kind) << " " << index;
      EXPECT_NEAR(metrics.tv_s, published.tv_s, 2e-5) << name(kind) << " " << index;
      EXPECT_NEAR(metrics.tv_ss, published.tv_ss, 2e-5) << name(kind) << " " << index;
      ++compared;
    }
    return true;
  });
  EXPECT_EQ(compared, 20);
}

// All 480 instances: cell means against the table, which has four digits.
TEST(Replay, CellMeansMatchThePublishedTable) {
  GridOptions options;
  options.replay_published = true;
  options.experts = {ExpertKind::Deterministic};
  options.methods = {Method::Reg, Method::SmodiceKl, Method::LobsdiceAsRun};
  const auto cells = summarise(run_grid(options).records);
  EXPECT_EQ(cells.size(), 48u * 3);
  const std::map<Method, double> tolerance{
      {Method::Reg, 5.5e-4}, {Method::SmodiceKl, 5.5e-5}, {Method::LobsdiceAsRun, 3e-4}};
  for (const CellSummary& c : cells) {
    const auto published = published_regret(c.cell, c.method);
    ASSERT_TRUE(published.has_value());
    EXPECT_EQ(c.count, 10);
    EXPECT_NEAR(c.regret.mean, published->mean, tolerance.at(c.method))
        << name(c.method) << " " << c.cell.expert_size << " " << c.cell.agnostic_size << " " << c.cell.eta;
  }
}

}  // namespace
}  // namespace pwdice::tabular
