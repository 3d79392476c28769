// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// `pwdice data collect` and `pwdice eval --record` in the real simulator. PWDICE_PROGRAM is the program's path.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "../../datasets/collect.h"
#include "../../datasets/episode_file.h"
#include "../../datasets/mujoco_env.h"
#include "../../host/checkpoint.h"
#include "../../kernels/error.h"
#include "../../models/policy_file.h"

namespace pwdice {
namespace {

namespace fs = std::filesystem;

class MujocoProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("pwdice_mujoco_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  // What it printed; no argument holds a quote.
  std::string run(const std::string& arguments, const std::string& environment = "") const {
    const std::string command = environment + " '" + PWDICE_PROGRAM + "' " + arguments + " >'" + path("out") + "' 2>&1";
    failed_ = std::system(command.c_str()) != 0;
    return read_file(path("out"), 1 << 20);
  }

  // A linear policy that leans on what it sees.
  std::string policy(const std::string& name, int observations, int actions) const {
    PolicyData data;
    data.layers.push_back({actions, observations, std::vector<float>(static_cast<size_t>(actions * observations), 0.1f),
                           std::vector<float>(static_cast<size_t>(actions), 0.f)});
    data.obs_mean.assign(static_cast<size_t>(observations), 0.f), data.obs_std.assign(static_cast<size_t>(observations), 1.f);
    data.action_scale.assign(static_cast<size_t>(actions), 1.f), data.action_bias.assign(static_cast<size_t>(actions), 0.f);
    save_policy(path(name), data);
    return path(name);
  }

  fs::path directory_;
  mutable bool failed_ = false;
};

TEST_F(MujocoProgram, CollectedRowsDoNotDependOnTheThreads) {
  const std::string noisy = policy("hopper.h5", 11, 3);
  for (const std::string& who : {std::string("random"), noisy + " --noise 0.2"}) {
    std::vector<Episodes> made;
    for (const char* threads : {"1", "2", "5"}) {
      const std::string out = path(std::string("t") + threads + (who == "random" ? "r" : "p") + ".hdf5");
      const std::string printed =
          run("data collect --env hopper --transitions 700 --seed 3 --policy " + who + " --threads " + threads + " --out " + out);
      EXPECT_FALSE(failed_) << printed;
      EXPECT_NE(printed.find("700 transitions of Hopper-v4"), std::string::npos) << printed;
      made.push_back(read_episodes(out));
      const Hdf5Reader file(out);
      EXPECT_EQ(file.integer_attribute("", "seed"), 3);
      EXPECT_EQ(file.info("terminals").type, Hdf5Type::Bool);
      EXPECT_GT(file.real_attribute("", "return_max"), file.real_attribute("", "return_min"));
    }
    for (const Episodes& data : made) {
      EXPECT_EQ(data.rows(), 700);
      EXPECT_EQ(data.observations, made[0].observations);
      EXPECT_EQ(data.actions, made[0].actions);
      EXPECT_EQ(data.rewards, made[0].rewards);
      EXPECT_EQ(data.timeouts.back() + data.terminals.back(), 1);  // the cut counts as a timeout
    }
    EXPECT_GT(find_episodes(made[0], 1000).size(), 3u);
  }
}

TEST_F(MujocoProgram, CollectedEpisodesAreTheEnvironments) {
  const auto made = collect([] { return make_mujoco("walker2d"); }, {}, {.episodes = 3, .seed = 8, .threads = 2});
  const auto environment = make_mujoco("walker2d");
  std::vector<float> seen(17);
  size_t row = 0;
  for (uint64_t episode = 0; episode < 3; ++episode) {
    environment->reset(8 + episode, {seen.data(), 17});
    for (bool ends = false; !ends; ++row) {
      ASSERT_TRUE(std::equal(seen.begin(), seen.end(), made.data.observations.begin() + static_cast<int64_t>(row) * 17));
      const StepResult result = environment->step({made.data.actions.data() + row * 6, 6}, {seen.data(), 17});
      ASSERT_EQ(made.data.rewards[row], static_cast<float>(result.reward));
      ends = made.data.terminals[row] || made.data.timeouts[row];
    }
  }
  EXPECT_EQ(static_cast<int64_t>(row), made.data.rows());
  EXPECT_EQ(made.returns.size(), 3u);
}

TEST_F(MujocoProgram, CollectSaysWhatIsWrongInOneSentence) {
  const auto says = [&](const std::string& arguments, const std::string& sentence, const std::string& environment = "") {
    const std::string printed = run("data collect " + arguments, environment);
    EXPECT_TRUE(failed_) << arguments;
    EXPECT_NE(printed.find(sentence), std::string::npos) << printed;
    EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1) << printed;
  };
  const std::string out = " --out " + path("x.hdf5");
  says("--env hoper --policy random --episodes 1" + out, "environment hoper: there are");
  says("--env hopper --policy " + policy("wide.h5", 17, 6) + " --episodes 1" + out, "the policy is 17 -> 6, Hopper-v4 is 11 -> 3");
  says("--env hopper --policy random --episodes 1" + out, "no model file /no/such", "PWDICE_MUJOCO_MODELS=/no/such");
  says("--env hopper --policy random --episodes 1" + out, "cannot be loaded", "PWDICE_MUJOCO_LIBRARY=/no/such");
  says("--env hopper --policy random" + out, "either --episodes or --transitions");
  EXPECT_FALSE(fs::exists(path("x.hdf5")));
  run("data collect --env maze --policy random --episodes 1" + out);
  EXPECT_FALSE(failed_);
  says("--env maze --policy random --episodes 1" + out, "exists already");
}

TEST_F(MujocoProgram, AnUnstableSimulationNamesEpisodeAndStep) {
  class Unstable : public Environment {
   public:
    const EnvironmentInfo& info() const override { return info_; }
    void reset(uint64_t, Vec<float> observation) override { observation[0] = 0; }
    StepResult step(Vec<const float>, Vec<float> observation) override {
      observation[0] = ++steps_ == 3 ? std::nanf("") : 0.f;
      return {};
    }

   private:
    EnvironmentInfo info_{"Shaky-v0", 1, 1, 10, 0, 1};
    int steps_ = 0;
  };
  try {
    collect([] { return std::make_unique<Unstable>(); }, {}, {.episodes = 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::NotFinite);
    EXPECT_EQ(std::string(error.what()), "collect: episode 0, step 2: Shaky-v0: the simulation became unstable");
  }
}

TEST_F(MujocoProgram, RecordDrawsAStripAndRefusesOtherFiles) {
  const std::string hopper = policy("hopper.h5", 11, 3);
  EXPECT_NE(run("eval " + hopper + " --env hopper --episodes 1 --record " + path("strip.png")).find("return"), std::string::npos);
  EXPECT_FALSE(failed_);
  const std::string png = read_file(path("strip.png"), 1 << 24);
  ASSERT_GT(png.size(), 5000u);
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png.substr(16, 8), std::string("\0\0\x06\x40\0\0\x01\xe0", 8));  // 1600 x 480
  EXPECT_NE(run("eval " + hopper + " --env hopper --record " + path("film.mp4")).find("ends in .png (a strip) or .apng"),
            std::string::npos);
  EXPECT_TRUE(failed_);
  run("eval " + policy("maze.h5", 4, 2) + " --env maze --episodes 1 --record " + path("way.svg"));
  EXPECT_FALSE(failed_);
  EXPECT_EQ(read_file(path("way.svg"), 1 << 20).substr(0, 4), "<svg");
}

TEST_F(MujocoProgram, PicturesFollowTheState) {
  const auto environment = make_mujoco("hopper");
  std::vector<float> seen(11), action(3, 1.f);
  environment->reset(0, {seen.data(), 11});
  const Image before = environment->draw(160, 120);
  EXPECT_EQ(before.rgb, environment->draw(160, 120).rgb);
  for (int k = 0; k < 30; ++k) environment->step({action.data(), 3}, {seen.data(), 11});
  const Image after = environment->draw(160, 120);
  EXPECT_NE(before.rgb, after.rgb);
  EXPECT_GT(std::set<uint8_t>(after.rgb.begin(), after.rgb.end()).size(), 20u);
}

}  // namespace
}  // namespace pwdice
