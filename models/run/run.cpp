// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "run.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "../../host/crc32.h"

#include "../policy_file.h"
#include "diagnostics.h"
#include "environment_report.h"
#include "task.h"

namespace pwdice {
namespace fs = std::filesystem;
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr size_t kScratchBytes = size_t{192} << 20;

ContextOptions context_options(const Config& config) {
  ContextOptions options;
  options.backend = choose_backend(config, nullptr);
  options.threads = static_cast<int>(config.threads);
  options.scratch_bytes = kScratchBytes;
  return options;
}

// Recorded inputs and outputs that travel with the policy, so that any copy of it can be checked.
PolicyCheck make_check(const PolicyData& policy) {
  constexpr size_t kRows = 16;
  PolicyCheck check;
  PolicyRuntime runtime(policy);
  const size_t s = policy.obs_mean.size(), a = policy.action_scale.size();
  const RandomStream stream = random_stream(0, "policy/check");
  for (size_t i = 0; i < kRows * s; ++i) {
    const float u = uniform01(stream.at(0, i).v[0]);
    check.observations.push_back(policy.obs_mean[i % s] + (4 * u - 2) * policy.obs_std[i % s]);
  }
  check.actions.resize(kRows * a);
  for (size_t i = 0; i < kRows; ++i) {
    const ActStatus status = runtime.act(check.observations.data() + i * s, s, check.actions.data() + i * a, a);
    if (status != ActStatus::Ok) fail(ErrorCode::NotFinite, "policy: {}", describe(status));
  }
  return check;
}

// Of everything that is learned from, so that a run does not go on with other data.
uint32_t checksum(const Mixture& mixture) {
  uint32_t crc = 0;
  const auto add = [&crc](const auto& values) { crc = crc32_ieee(values.data(), values.size() * sizeof(values[0]), crc); };
  const Transitions& offline = mixture.offline;
  add(offline.states), add(offline.actions), add(offline.next), add(offline.step), add(offline.done);
  add(mixture.expert.states), add(mixture.expert.weight);
  return crc;
}

// What may differ when a run goes on: where and how it runs, not what it computes.
bool may_change(const std::string& key) {
  return key == "threads" || key == "backend" || key == "data.expert" || key == "data.agnostic" || key.starts_with("run.");
}

void check_same_config(const Config& now, const std::string& saved, const std::string& origin) {
  const std::vector<ConfigEntry> after = entries(now), before = entries(config_from_toml(saved, origin));
  for (size_t i = 0; i < after.size(); ++i) {
    PWDICE_CHECK(after[i].value == before[i].value || may_change(after[i].key),
                 "resume: config.toml has {} = {}, the run was begun with {}; put that back, or begin a new run", after[i].key,
                 after[i].value, before[i].value);
  }
}

}  // namespace

Backend choose_backend(const Config& config, std::string* why) {
  const CudaAvailability cuda = cuda_availability();
  if (why != nullptr) *why = cuda.reason;
  if (config.backend == "cuda" && !cuda.available) {
    fail(ErrorCode::Unsupported, "backend = \"cuda\": {}; backend = \"cpu\" gives the same results", cuda.reason);
  }
  return config.backend != "cpu" && cuda.available ? Backend::Cuda : Backend::Cpu;
}

std::string run_directory(const Config& config) {
  if (!config.run.directory.empty()) return config.run.directory;
  const std::string task = environment_name(config);
  return "runs/" + (task.empty() ? "data" : task) + "-" + config.method + "-" + std::to_string(config.seed);
}

Run::Run(const Config& config, RunObserver& observer, const std::atomic<bool>& stop)
    : config_(config),
      observer_(observer),
      stop_(stop),
      directory_(run_directory(config)),
      ctx_(context_options(config)),
      environment_(make_environment(config)) {
  const std::string env_id = environment_ ? environment_()->info().name : "";
  Mixture mixture = make_mixture(config_);
  data_crc_ = checksum(mixture);
  trainer_ = std::make_unique<Trainer>(ctx_, config_, std::move(mixture), env_id);
  if (environment_) {
    const EnvironmentInfo info = environment_()->info();
    const PolicyData policy = trainer_->policy(ctx_);
    const auto states = static_cast<int64_t>(policy.obs_mean.size()), actions = static_cast<int64_t>(policy.action_scale.size());
    PWDICE_CHECK(states == info.observation_dim && actions == info.action_dim,
                 "data.environment: the data has {} state and {} action dimensions, {} has {} and {}", states, actions,
                 info.name, info.observation_dim, info.action_dim);
  }
}

RunResult Run::start(const Config& config, RunObserver& observer, const std::atomic<bool>& stop) {
  validate(config);
  const std::string directory = run_directory(config);
  const auto require_empty = [&] {
    PWDICE_CHECK(!fs::exists(directory + "/checkpoints/last.ckpt"),
                 "{}: already holds a run; resume it, or choose another directory with run.directory", directory);
  };
  require_empty();
  Run run(config, observer, stop);
  std::error_code error;
  fs::create_directories(directory + "/checkpoints", error);
  if (error) fail(ErrorCode::BadFile, "{}: cannot make the directory: {}", directory, error.message());
  run.lock_ = DirectoryLock(directory);
  require_empty();  // another process may have begun one while the data was read
  write_file_atomically(directory + "/config.toml", to_toml(config));
  write_file_atomically(directory + "/environment.json", environment_report(run.ctx_));
  run.log_ = std::make_unique<MetricsLog>(directory);
  run.checkpoint("last");
  return run.loop();
}

RunResult Run::resume(const std::string& directory, RunObserver& observer, const std::atomic<bool>& stop) {
  Config config = load_config(directory + "/config.toml");
  config.run.directory = directory;
  validate(config);
  DirectoryLock lock(directory);
  Run run(config, observer, stop);
  run.lock_ = std::move(lock);
  run.log_ = std::make_unique<MetricsLog>(directory);
  run.restore();
  return run.loop();
}

double Run::seconds() const { return seconds_before_ + now() - started_; }

RunResult Run::loop() {
  started_ = rate_time_ = now();
  rate_phase_ = trainer_->phase(), rate_step_ = trainer_->step();
  const auto megabytes = [](size_t bytes) { return static_cast<int64_t>(bytes >> 20); };
  observer_.started(format_message(
      "{}: {} transitions and {} expert states in {} MiB, tables {} MiB, scratch up to {} MiB; {} backend, {} threads{}", {directory_,
      trainer_->data().transitions(), trainer_->data().expert_states().rows, megabytes(trainer_->data().bytes()),
      megabytes(trainer_->table_bytes()), megabytes(kScratchBytes), ctx_.on_gpu() ? "CUDA" : "CPU", ctx_.threads(),
      environment_ ? "" : "; no data.environment, so the policy is not evaluated"}));
  try {
    while (trainer_->phase() != Phase::Done && !stop_.load(std::memory_order_relaxed)) {
      const Phase phase = trainer_->phase();
      const int64_t step = trainer_->step() + 1;
      const bool last = step == trainer_->phase_steps(phase);
      trainer_->advance(ctx_);
      const auto due = [&](int64_t every) { return last || step % every == 0; };
      const bool evaluates = phase == Phase::Dual && environment_ && due(config_.evaluation.every);
      if (due(config_.run.log_every) || evaluates || due(config_.run.checkpoint_every)) trainer_->check(ctx_);
      if (due(config_.run.log_every)) log_row(phase, step);
      if (evaluates) evaluate(step);
      if (due(config_.run.checkpoint_every)) {
        checkpoint("last");
        if (phase == Phase::Dual) checkpoint("step-" + std::to_string(step));
        prune_checkpoints();
      }
    }
    trainer_->check(ctx_);
  } catch (const Error& error) {
    if (last_checkpoint_.empty()) throw;
    fail(error.code(), "{}; the last good checkpoint is {}", error.what(), last_checkpoint_);
  }
  RunResult result{trainer_->phase() == Phase::Done, directory_, "", last_evaluation_, score()};
  if (result.finished) {
    finish();
    result.policy_path = path("policy.h5");
  } else {
    checkpoint("last");
  }
  return result;
}

void Run::log_row(Phase phase, int64_t step) {
  const Trainer::Losses losses = trainer_->losses(ctx_, phase);
  MetricsRow row{name(phase), step, seconds(), {{"loss", losses.main.loss}, {"gradient_norm", losses.main.gradient_norm}}};
  if (losses.policy) {
    row.values.emplace_back("policy_loss", losses.policy->loss);
    row.values.emplace_back("policy_gradient_norm", losses.policy->gradient_norm);
    row.values.emplace_back("policy_steps", static_cast<double>(trainer_->policy_steps()));
  }
  if (config_.run.objective && phase == Phase::Dual && trainer_->has_objective()) {
    row.values.emplace_back("objective", trainer_->objective(ctx_));
  }
  log_->write(row);

  const double time = now();
  if (phase != rate_phase_) rate_step_ = 0, rate_phase_ = phase;
  const double rate = static_cast<double>(step - rate_step_) / std::max(time - rate_time_, 1e-9);
  rate_time_ = time, rate_step_ = step;
  const int64_t steps = trainer_->phase_steps(phase);
  observer_.progress({phase, step, steps, rate, losses.main.loss,
                      losses.policy ? std::optional<double>(losses.policy->loss) : std::nullopt, seconds(),
                      static_cast<double>(steps - step) / rate});
}

void Run::evaluate(int64_t step) {
  PolicyRuntime runtime(trainer_->policy(ctx_));
  const auto act = [&runtime](Mat<const float> observations, Mat<float> actions) {
    for (int64_t i = 0; i < observations.rows; ++i) {
      const ActStatus status = runtime.act(observations.row(i), static_cast<size_t>(observations.cols), actions.row(i),
                                           static_cast<size_t>(actions.cols));
      if (status != ActStatus::Ok) fail(ErrorCode::NotFinite, "evaluation: {}", describe(status));
    }
  };
  constexpr uint64_t kFirstEpisode = 10000;  // away from the seeds that made the data
  last_evaluation_ = pwdice::evaluate(environment_, act, {config_.evaluation.episodes, kFirstEpisode, ctx_.threads()});
  const Evaluation& e = *last_evaluation_;
  scores_.push_back(e.score);
  log_->write({"evaluation", step, seconds(), {{"score", e.score}, {"return", e.mean}, {"deviation", e.deviation},
                                               {"least", e.least}, {"greatest", e.greatest}}});
  if (trainer_->has_weights()) {
    const WeightSummary w = summarise(trainer_->weights(ctx_), trainer_->data().source());
    log_->write({name(Phase::Dual), step, seconds(), {{"weights_ess", w.effective}, {"weights_expert_share", w.expert_share}}});
  }
  observer_.evaluated(step, e);
  if (scores_.size() == 1 || e.score > best_) {
    best_ = e.score;
    checkpoint("best");
  }
}

std::optional<double> Run::score() const {
  if (scores_.empty()) return std::nullopt;
  const size_t count = std::max<size_t>(1, scores_.size() / 5);
  double sum = 0;
  for (size_t i = scores_.size() - count; i < scores_.size(); ++i) sum += scores_[i];
  return sum / static_cast<double>(count);
}

void Run::checkpoint(const std::string& name) {
  Checkpoint out;
  trainer_->save(ctx_, out);
  const auto position = log_->position();
  out.put("log/position", position);
  out.put("log/seconds", started_ == 0 ? 0.0 : seconds());
  out.put("scores", scores_.data(), scores_.size());
  out.put("best", best_);
  out.put("data/crc", data_crc_);
  const std::string file = path("checkpoints/" + name + ".ckpt");
  out.save(file);
  if (name == "last") last_checkpoint_ = file;
}

// A damaged file is no reason to lose the run when an older one is there.
Checkpoint Run::load_checkpoint(const std::string& last) const {
  try {
    return Checkpoint::load(last);
  } catch (const Error& error) {
    std::string others;
    std::error_code unreadable;
    for (const auto& entry : fs::directory_iterator(path("checkpoints"), unreadable)) {
      if (entry.path().extension() == ".ckpt" && entry.path() != fs::path(last)) others += " " + entry.path().filename().string();
    }
    if (others.empty()) throw;
    fail(error.code(), "{}; copy one of{} over it to go on from there", error.what(), others);
  }
}

void Run::restore() {
  last_checkpoint_ = path("checkpoints/last.ckpt");
  const Checkpoint in = load_checkpoint(last_checkpoint_);
  check_same_config(config_, in.get_text("config"), last_checkpoint_);
  PWDICE_CHECK(in.get<uint32_t>("data/crc") == data_crc_, "resume: the data is not what {} was made with", last_checkpoint_);
  trainer_->restore(ctx_, in);
  log_->rewind(in.get<MetricsLog::Position>("log/position"));
  seconds_before_ = in.get<double>("log/seconds");
  scores_.resize(in.bytes_of("scores") / sizeof(double));
  in.get("scores", scores_.data(), scores_.size());
  best_ = in.get<double>("best");
  const bool finished = trainer_->phase() == Phase::Done;
  observer_.note(finished ? format_message("{}: this run has finished; nothing is left to train", {config_.run.directory})
                          : format_message("resumed from {}: {} phase, step {}",
                                           {last_checkpoint_, name(trainer_->phase()), trainer_->step()}));
}

// Keeps last, best and the newest `keep_checkpoints` numbered ones.
void Run::prune_checkpoints() {
  std::vector<std::pair<int64_t, fs::path>> numbered;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(path("checkpoints"), unreadable)) {
    const std::string stem = entry.path().stem().string();
    int64_t number = 0;
    const char* end = stem.data() + stem.size();
    if (!stem.starts_with("step-") || entry.path().extension() != ".ckpt") continue;
    const auto [at, error] = std::from_chars(stem.data() + 5, end, number);  // what somebody else named is theirs
    if (error == std::errc() && at == end) numbered.emplace_back(number, entry.path());
  }
  std::sort(numbered.begin(), numbered.end());
  const auto keep = static_cast<size_t>(std::max<int64_t>(0, config_.run.keep_checkpoints));
  std::error_code ignored;
  for (size_t i = 0; i + keep < numbered.size(); ++i) fs::remove(numbered[i].second, ignored);
}

void Run::finish() {
  const PolicyData policy = trainer_->policy(ctx_);
  save_policy(path("policy.h5"), policy, make_check(policy));
  write_file_atomically(path("diagnostics.json"), diagnostics_json(ctx_, config_, *trainer_, environment_));
}

}  // namespace pwdice
