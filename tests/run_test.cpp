// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The program as a user meets it: train, kill, resume, evaluate, export, report. PWDICE_PROGRAM is its path.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "../host/checkpoint.h"
#include "../models/policy_file.h"
#include "../models/run/directory_lock.h"

namespace pwdice {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

struct Outcome {
  int code;  // 128 + signal when killed
  std::string output;
};

class RunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::temp_directory_path() / ("pwdice_run_" + std::to_string(::getpid()) + "_" + info->name());
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  // A run of a few seconds that goes through every phase.
  std::vector<std::string> train(const std::string& run, std::vector<std::string> extra = {}) const {
    std::vector<std::string> arguments{"train", "--out", path(run), "--json"};
    for (const char* setting : {"threads=2", "contrastive.steps=30", "contrastive.batch=256", "discriminator.steps=40",
                                "discriminator.batch=64", "dual.steps=120", "dual.batch=64", "dual.init_batch=64",
                                "policy.start=20", "policy.weights_every=25", "policy.batch=64", "evaluation.every=60",
                                "evaluation.episodes=2", "run.log_every=10", "run.checkpoint_every=20",
                                "data.maze_transitions=3000"}) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return arguments;
  }

  pid_t spawn(const std::vector<std::string>& arguments, const std::string& output) const {
    const pid_t child = fork();
    if (child != 0) return child;
    if (std::freopen(output.c_str(), "w", stdout) == nullptr) _exit(126);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    std::vector<char*> argv{const_cast<char*>("pwdice")};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(PWDICE_PROGRAM, argv.data());
    _exit(127);
  }

  static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  Outcome run(const std::vector<std::string>& arguments) const {
    const std::string output = path("output.txt");
    const int code = wait_for(spawn(arguments, output));
    return {code, read_file(output, 1 << 24)};
  }

  fs::path directory_;
};

// Everything but the clock: parameters, moments, weights, counters and the record of the run.
void expect_same_run(const std::string& a, const std::string& b) {
  const Checkpoint x = Checkpoint::load(a + "/checkpoints/last.ckpt"), y = Checkpoint::load(b + "/checkpoints/last.ckpt");
  size_t compared = 0;
  for (const std::string& section : x.names()) {
    if (section.starts_with("log/") || section == "config") continue;
    EXPECT_EQ(x.get_text(section), y.get_text(section)) << section;
    ++compared;
  }
  EXPECT_GT(compared, 15u);
  EXPECT_EQ(policy_checksum(load_policy(a + "/policy.h5")), policy_checksum(load_policy(b + "/policy.h5")));
  const auto without_clock = [](const std::string& path) {
    std::ifstream in(path);
    std::string out;
    for (std::string line; std::getline(in, line);) {  // phase,step,seconds,name,value
      const size_t second = line.find(',', line.find(',') + 1), third = line.find(',', second + 1);
      out += line.substr(0, second) + line.substr(third) + "\n";
    }
    return out;
  };
  EXPECT_EQ(without_clock(a + "/metrics.csv"), without_clock(b + "/metrics.csv"));
}

TEST_F(RunTest, TrainsEvaluatesExportsAndReports) {
  const Outcome trained = run(train("a"));
  ASSERT_EQ(trained.code, 0) << trained.output;
  for (const char* file : {"config.toml", "environment.json", "metrics.csv", "metrics.jsonl", "policy.h5",
                           "diagnostics.json", "checkpoints/last.ckpt", "checkpoints/best.ckpt"}) {
    EXPECT_TRUE(fs::exists(path("a/") + file)) << file;
  }
  const Outcome evaluated = run({"eval", path("a/policy.h5"), "--episodes", "3", "--json"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.output;
  EXPECT_NE(evaluated.output.find("\"episodes\":3"), std::string::npos);
  const Outcome exported = run({"export", path("a/policy.h5"), "--check", "--header", path("policy.h"), "--name", "maze"});
  EXPECT_EQ(exported.code, 0) << exported.output;
  EXPECT_NE(read_file(path("policy.h"), 1 << 24).find("MAZE_OBSERVATION_SIZE 4"), std::string::npos);
  const Outcome reported = run({"report", path("a")});
  EXPECT_EQ(reported.code, 0) << reported.output;
  EXPECT_NE(read_file(path("a/report.html"), 1 << 26).find("<svg"), std::string::npos);
  const Outcome again = run(train("a"));
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.output.find("already holds a run"), std::string::npos) << again.output;
  const Outcome resumed = run({"resume", path("a")});
  EXPECT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("this run has finished"), std::string::npos) << resumed.output;
}

// The moments are shares of the time the whole run took, so that a faster machine is killed in the midst of it too.
TEST_F(RunTest, KilledAtRandomPointsAndResumedEndsWithTheSameBits) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(run(train("whole")).code, 0);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
  std::random_device entropy;
  const unsigned seed = entropy();
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto go_on = [&] {
    if (fs::exists(path("killed/checkpoints/last.ckpt"))) return spawn({"resume", path("killed"), "--quiet"}, path("output.txt"));
    fs::remove_all(path("killed"));  // killed before the run existed: begin again
    return spawn(train("killed"), path("output.txt"));
  };
  int kills = 0;
  for (int attempt = 0; kills < 5; ++attempt) {
    ASSERT_LT(attempt, 40) << "only " << kills << " of the runs were still going when they were to be killed";
    const pid_t child = go_on();
    std::this_thread::sleep_for(whole * std::uniform_real_distribution<double>(0.02, 0.6)(random));
    kill(child, SIGKILL);
    if (wait_for(child) == 128 + SIGKILL) {
      ++kills;
    } else {
      fs::remove_all(path("killed"));  // it ended first: begin again
    }
  }
  ASSERT_EQ(wait_for(go_on()), 0) << read_file(path("output.txt"), 1 << 24);
  expect_same_run(path("whole"), path("killed"));
}

TEST_F(RunTest, InterruptWritesACheckpointAndResumeGoesOn) {
  ASSERT_EQ(run(train("whole")).code, 0);
  const pid_t child = spawn(train("stopped"), path("output.txt"));
  while (!fs::exists(path("stopped/checkpoints/last.ckpt"))) std::this_thread::sleep_for(milliseconds(5));
  std::this_thread::sleep_for(milliseconds(20));
  kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 0) << read_file(path("output.txt"), 1 << 24);
  const Outcome resumed = run({"resume", path("stopped"), "--quiet"});
  ASSERT_EQ(resumed.code, 0) << resumed.output;
  expect_same_run(path("whole"), path("stopped"));
}

TEST_F(RunTest, SameBitsOnOneAndTwoThreads) {
  ASSERT_EQ(run(train("two")).code, 0);
  ASSERT_EQ(run(train("one", {"--set", "threads=1"})).code, 0);
  expect_same_run(path("two"), path("one"));
}

TEST_F(RunTest, EveryMethodAndTransportTrains) {
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"method=smodice"}, {"method=bc"},
                                                   {"transport=joint", "cost.distance=cosine"},
                                                   {"transport=paired", "policy.schedule=epoch", "policy.sampling=uniform"},
                                                   {"transport=joint", "divergence=chi2", "cost.distance=manhattan"},
                                                   {"method=smodice", "divergence=chi2_exact"},
                                                   {"cost.distance=none", "data.absorbing=pwdice"},
                                                   {"data.distorted=true", "cost.distance=squared_euclidean", "dual.regulariser=1e-5"},
                                                   {"contrastive.metric=learned_sphere", "cost.distance=learned_cosine"}}) {
    std::vector<std::string> extra;
    std::string label;
    for (const auto& setting : settings) extra.insert(extra.end(), {"--set", setting}), label += setting + " ";
    fs::remove_all(path("a"));
    const Outcome outcome = run(train("a", extra));
    EXPECT_EQ(outcome.code, 0) << label << outcome.output;
    EXPECT_TRUE(fs::exists(path("a/policy.h5"))) << label;
  }
}

TEST_F(RunTest, BadInputIsOneSentence) {
  const auto expect = [&](const std::vector<std::string>& arguments, const std::string& sentence) {
    const Outcome outcome = run(arguments);
    EXPECT_NE(outcome.code, 0);
    EXPECT_NE(outcome.output.find(sentence), std::string::npos) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  };
  expect({"train", path("none.toml")}, "none.toml: no such file");
  expect({"train", "--set", "gama=0.9"}, "config: there is no key gama");
  expect({"train", "--set", "gamma"}, "--set gamma: expected key=value");
  expect({"train", "--out", path("a"), "--set", "data.source=files", "--set", "data.expert=/no/such.h5", "--set",
          "data.agnostic=/no/such.h5"}, "/no/such.h5");
  expect({"train", "--out", path("a"), "--set", "data.expert=/no/such.h5"}, "needs data.expert and data.agnostic");
  expect({"train", "--out", path("a"), "--profile", "pwdice"}, "needs data.expert and data.agnostic");
  expect({"train", "--out", path("a"), "--set", "dual.steps=100"}, "dual.steps = 100 leaves no policy step");
  expect({"train", "--out", path("a"), "--set", "evaluation.episodes=0"}, "evaluation.episodes = 0, expected at least 1");
  expect({"trian"}, "there is no command trian");
  expect({"data", "inof"}, "there is no command inof");
  expect({"train", "--out", path("a"), "--set", "backend=cuda"}, "backend = \"cuda\"");
  expect({"resume", path("nothing")}, "config.toml: no such file");
  expect({"eval", path("none.h5")}, "none.h5");
  EXPECT_FALSE(fs::exists(path("a")));
  std::ofstream(path("garbage.h5")) << "not a policy";
  expect({"eval", path("garbage.h5")}, "garbage.h5");
  expect({"export", path("garbage.h5"), "--check"}, "garbage.h5");
}

// What a run was begun with is what it goes on with.
TEST_F(RunTest, ResumeRefusesAnotherConfigOrDamageAndSaysWhatToDo) {
  ASSERT_EQ(run(train("a")).code, 0);
  const std::string config = path("a/config.toml"), text = read_file(config, 1 << 20);
  const auto resume_with = [&](const std::string& from, const std::string& to) {
    std::string edited = text;
    const size_t at = edited.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    std::ofstream(config) << edited.replace(at, from.size(), to);
    return run({"resume", path("a")});
  };
  const Outcome other = resume_with("gamma = 0.98", "gamma = 0.97");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.output.find("config.toml has gamma = 0.97, the run was begun with 0.98"), std::string::npos) << other.output;
  EXPECT_EQ(resume_with("threads = 2", "threads = 1").code, 0);
  std::ofstream(path("a/checkpoints/last.ckpt"), std::ios::app) << "x";
  const Outcome damaged = run({"resume", path("a")});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_NE(damaged.output.find("best.ckpt"), std::string::npos) << damaged.output;
}

TEST_F(RunTest, OneProcessAtATimeAndADirectoryThatNeverBegan) {
  fs::create_directories(path("a"));
  std::ofstream(path("a/config.toml")) << "left by a process that was killed at once";
  {
    const DirectoryLock held(path("a"));
    const Outcome second = run(train("a"));
    EXPECT_EQ(second.code, 1);
    EXPECT_NE(second.output.find("another process is training this run"), std::string::npos) << second.output;
  }
  EXPECT_EQ(run(train("a")).code, 0);
}

TEST_F(RunTest, DivergenceStopsWithPhaseStepAndCheckpoint) {
  const Outcome outcome = run(train("a", {"--set", "dual.lr=1e30"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.output.find("dual phase, step"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("the last good checkpoint is "), std::string::npos) << outcome.output;
  EXPECT_NO_THROW(Checkpoint::load(path("a/checkpoints/last.ckpt")));
}

}  // namespace
}  // namespace pwdice
