// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "../../datasets/environment.h"
#include "../config.h"
#include "../pwdice.h"
#include "directory_lock.h"
#include "metrics_log.h"

namespace pwdice {

// What a run tells while it goes on. All calls come from the thread that runs it.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  struct Progress {
    Phase phase;
    int64_t step, steps;        // of the phase
    double steps_per_second;    // of the phase, lately
    double loss;
    std::optional<double> policy_loss;
    double seconds, seconds_left;  // of the whole run; left: at the present rate of this phase
  };
  virtual void started(const std::string& summary) = 0;
  virtual void progress(const Progress& progress) = 0;
  virtual void evaluated(int64_t step, const Evaluation& evaluation) = 0;
  virtual void note(const std::string& message) = 0;
};

struct RunResult {
  bool finished = false;  // false: stopped by request; resume goes on
  std::string directory, policy_path;
  std::optional<Evaluation> final_evaluation;
  // Mean normalised score of the last evaluations (a fifth of them, at least one): a result is not the best one.
  std::optional<double> score;
};

// One training run in a directory of its own:
//   config.toml  environment.json  metrics.csv  metrics.jsonl  events.out.tfevents.*  evaluations.csv
//   checkpoints/{last,best,step-*}.ckpt  policy.h5  diagnostics.json (for `pwdice report`)
// start() refuses a directory that already holds a run; resume() goes on from its last checkpoint, and ends with
// the same bits as a run that was never interrupted. One process at a time trains a run.
class Run {
 public:
  static RunResult start(const Config& config, RunObserver& observer, const std::atomic<bool>& stop);
  static RunResult resume(const std::string& directory, RunObserver& observer, const std::atomic<bool>& stop);

 private:
  Run(const Config& config, RunObserver& observer, const std::atomic<bool>& stop);
  RunResult loop();
  void restore();
  Checkpoint load_checkpoint(const std::string& last) const;
  void log_row(Phase phase, int64_t step);
  void evaluate(int64_t step);
  void checkpoint(const std::string& name);
  void prune_checkpoints();
  void finish();
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  double seconds() const;
  std::optional<double> score() const;

  Config config_;
  RunObserver& observer_;
  const std::atomic<bool>& stop_;
  std::string directory_;
  DirectoryLock lock_;
  uint32_t data_crc_ = 0;
  Context ctx_;
  EnvironmentFactory environment_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<MetricsLog> log_;
  std::vector<double> scores_;  // of every evaluation so far
  std::optional<Evaluation> last_evaluation_;
  std::string last_checkpoint_ = "none";
  double best_ = 0, seconds_before_ = 0, started_ = 0;
  double rate_time_ = 0;  // for the step rate
  Phase rate_phase_ = Phase::Contrastive;
  int64_t rate_step_ = 0;
};

Backend choose_backend(const Config& config, std::string* why);
std::string run_directory(const Config& config);

}  // namespace pwdice
