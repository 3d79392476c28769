// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "pwdice.h"

#include <cmath>

#include "../kernels/elementwise.h"
#include "../kernels/reduce.h"

namespace pwdice {
namespace {

Divergence divergence(const Config& config) {
  return config.divergence == "kl" ? Divergence::Kl : config.divergence == "chi2" ? Divergence::Chi2 : Divergence::Chi2Exact;
}

Distance distance(const Config& config) {
  const std::string& name = config.cost.distance;
  if (name == "learned" || name == "squared_euclidean" || name == "none") return Distance::SquaredEuclidean;
  if (name == "learned_cosine" || name == "cosine") return Distance::Cosine;
  if (name == "euclidean") return Distance::Euclidean;
  if (name == "manhattan") return Distance::Manhattan;
  return Distance::ExpManhattan;
}

DualMethod dual_method(const Config& config) {
  if (config.method == "smodice") return DualMethod::Smodice;
  return config.transport == "semidual" ? DualMethod::Semidual
         : config.transport == "joint"  ? DualMethod::Joint
                                        : DualMethod::Paired;
}

std::optional<float> when_positive(double value) {
  return value > 0 ? std::optional<float>(static_cast<float>(value)) : std::nullopt;
}

AdamOptions adam(double lr, double weight_decay) {
  return {.learning_rate = static_cast<float>(lr), .weight_decay = static_cast<float>(weight_decay)};
}

}  // namespace

const char* name(Phase phase) noexcept {
  switch (phase) {
    case Phase::Contrastive: return "contrastive";
    case Phase::Discriminator: return "discriminator";
    case Phase::Dual: return "dual";
    case Phase::Done: return "done";
  }
  return "unknown";
}

EncoderOptions encoder_options(const Config& config) {
  EncoderOptions options{config.contrastive.metric, config.contrastive.batch, adam(config.contrastive.lr, 0)};
  options.adam.clip_norm = when_positive(config.contrastive.clip_norm);
  return options;
}

DiscriminatorOptions discriminator_options(const Config& config) {
  return {config.discriminator.batch, static_cast<float>(config.discriminator.penalty), config.discriminator.mixing,
          adam(config.discriminator.lr, 0)};
}

PotentialsOptions potentials_options(const Config& config) {
  PotentialsOptions options;
  options.method = dual_method(config);
  options.divergence = divergence(config);
  options.gamma = static_cast<float>(config.gamma);
  options.eps1 = static_cast<float>(config.eps1), options.eps2 = static_cast<float>(config.eps2);
  options.distance = distance(config);
  options.beta = config.cost.distance == "none" ? 0.f : static_cast<float>(config.cost.beta);
  options.batch = config.dual.batch;
  options.expert_batch = config.dual.expert_batch;
  options.init_batch = config.dual.init_batch;
  options.regulariser = static_cast<float>(config.dual.regulariser);
  options.adam = adam(config.dual.lr, config.dual.weight_decay);
  options.adam.ema_decay = when_positive(config.dual.average);
  return options;
}

ActorOptions actor_options(const Config& config) {
  const auto& p = config.policy;
  ActorOptions options{p.sampling == "weighted", p.keep,       p.lookahead, p.power,
                       p.balance == "steps",     p.cap,        p.batch,     config.gamma,
                       p.units == "expert",      adam(p.lr, p.weight_decay)};
  options.adam.ema_decay = when_positive(config.policy.average);
  return options;
}

Trainer::Trainer(Context& ctx, const Config& config, Mixture&& mixture, std::string env_id)
    : config_(config),
      env_id_(std::move(env_id)),
      data_(ctx, std::move(mixture), config.gamma),
      actor_(ctx, data_, actor_options(config), static_cast<uint64_t>(config.seed)),
      largest_weight_(ctx, 1),
      bad_weights_(ctx, 1) {
  fill(ctx, bad_weights_.view(), 0);
  validate(config);
  const auto seed = static_cast<uint64_t>(config.seed);
  if (uses_encoder()) encoder_ = std::make_unique<Encoder>(ctx, data_, encoder_options(config), seed);
  if (uses_discriminator()) {
    discriminator_ = std::make_unique<Discriminator>(ctx, data_, discriminator_options(config), seed);
  }
  check_policy_trains();
  begin_phase(ctx);
}

// A run must not end with the policy it began with.
void Trainer::check_policy_trains() const {
  const int64_t steps = config_.dual.steps;
  if (steps == 0) return;
  if (config_.policy.schedule == "epoch") {
    const int64_t epoch = dual_epoch(), last = steps / epoch * epoch;
    PWDICE_CHECK(last > 0 && last >= policy_start(),
                 "config: dual.steps = {} leaves no policy step: the first follows a whole dual epoch of {} steps after "
                 "policy.start = {}", steps, epoch, policy_start());
  } else {
    PWDICE_CHECK(planned_policy_steps(steps) > 0,
                 "config: dual.steps = {} leaves no policy step: policy.start = {}, policy.steps_per_dual = {}", steps,
                 policy_start(), config_.policy.steps_per_dual);
  }
}

int64_t Trainer::dual_epoch() const { return (data_.transitions() + config_.dual.batch - 1) / config_.dual.batch; }

bool Trainer::uses_encoder() const {
  return config_.method == "pwdice" && config_.cost.distance.starts_with("learned") && config_.cost.beta > 0;
}

int64_t Trainer::phase_steps(Phase phase) const {
  switch (phase) {
    case Phase::Contrastive: return encoder_ ? config_.contrastive.steps : 0;
    case Phase::Discriminator: return discriminator_ ? config_.discriminator.steps : 0;
    case Phase::Dual: return config_.dual.steps;
    case Phase::Done: return 0;
  }
  return 0;
}

// Passes over phases that have no steps; makes what the phase works on.
void Trainer::begin_phase(Context& ctx) {
  while (phase_ != Phase::Done && step_ >= phase_steps(phase_)) end_phase(ctx);
}

void Trainer::end_phase(Context& ctx) {
  phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
  step_ = 0;
  if (phase_ == Phase::Dual) build_tables(ctx);
}

// g and R of every state, once: both networks are frozen from here on.
void Trainer::build_tables(Context& ctx) {
  const Mat<const float> states = data_.states(), expert = data_.expert_states();
  if (config_.method == "bc") return actor_.use_equal_weights(ctx);
  CostTables tables{states, expert, {}};
  if (encoder_) {
    features_ = Array<float>(ctx, states.rows * Encoder::kEmbedding);
    expert_features_ = Array<float>(ctx, expert.rows * Encoder::kEmbedding);
    encoder_->embed(ctx, states, features_.matrix(states.rows, Encoder::kEmbedding));
    encoder_->embed(ctx, expert, expert_features_.matrix(expert.rows, Encoder::kEmbedding));
    tables.features = features_.matrix(states.rows, Encoder::kEmbedding);
    tables.expert = expert_features_.matrix(expert.rows, Encoder::kEmbedding);
  }
  reward_ = Array<float>(ctx, states.rows);
  discriminator_->reward(ctx, states, reward_.view());
  affine(ctx, {reward_.view(), static_cast<float>(config_.cost.reward), 0, reward_.view()});
  tables.reward = reward_.view();
  potentials_ = std::make_unique<Potentials>(ctx, data_, tables, potentials_options(config_), static_cast<uint64_t>(config_.seed));
}

size_t Trainer::table_bytes() const {
  const int64_t heads = config_.method == "smodice" ? 1 : config_.transport == "semidual" ? 2 : 3;
  const int64_t pass = config_.method == "bc" ? 0 : heads * data_.states().rows + 3 * data_.transitions();
  const size_t pass_bytes = static_cast<size_t>(pass) * sizeof(float);
  return static_cast<size_t>(data_.states().rows) * ((encoder_ ? Encoder::kEmbedding : 0) + 1) * sizeof(float) +
         static_cast<size_t>(data_.transitions()) * (sizeof(float) + sizeof(double)) + pass_bytes + actor_.order_bytes();
}

void Trainer::advance(Context& ctx) {
  try {
    switch (phase_) {
      case Phase::Contrastive: encoder_->step(ctx); break;
      case Phase::Discriminator: discriminator_->step(ctx); break;
      case Phase::Dual: dual_step(ctx); break;
      case Phase::Done: return;
    }
  } catch (const Error& error) {
    fail_in_phase(error);
  }
  checked_phase_ = phase_, checked_step_ = step_ + 1;
  ++step_;
  begin_phase(ctx);
}

void Trainer::check(Context& ctx) {
  try {
    if (encoder_) encoder_->optimiser().check(ctx);
    if (discriminator_) discriminator_->optimiser().check(ctx);
    if (potentials_) potentials_->optimiser().check(ctx);
    if (have_weights_) check_weights(ctx);
    actor_.optimiser().check(ctx);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::NotFinite) throw;
    fail(ErrorCode::NotFinite, "{} phase, in or before step {}: {}", name(checked_phase_), checked_step_, error.what());
  }
}

void Trainer::fail_in_phase(const Error& error) const {
  if (error.code() != ErrorCode::NotFinite) throw error;
  fail(ErrorCode::NotFinite, "{} phase, step {}: {}", name(phase_), step_ + 1, error.what());
}

// Learning rates live in the backend's memory, so a schedule moves them now and then, not at every step.
void Trainer::follow_schedule(Context& ctx) {
  constexpr int64_t kEvery = 50;
  if (step_ % kEvery != 0) return;
  const double left = 1 - static_cast<double>(step_) / static_cast<double>(config_.dual.steps);
  if (potentials_ && config_.dual.decay_lr) {
    potentials_->optimiser().set_learning_rate(ctx, static_cast<float>(config_.dual.lr * left));
  }
  if (config_.policy.decay_lr) actor_.optimiser().set_learning_rate(ctx, static_cast<float>(config_.policy.lr * left));
}

void Trainer::dual_step(Context& ctx) {
  if (!dual_stepped_) {
    follow_schedule(ctx);
    if (potentials_) potentials_->step(ctx);
    dual_stepped_ = true;
  }
  if (!policy_due_) policy_due_ = policy_steps_after(ctx, step_ + 1);
  for (; *policy_due_ > 0; --*policy_due_, ++policy_steps_) actor_.step(ctx);
  dual_stepped_ = false, policy_due_.reset();
}

// schedule = step: floor((k - start) r) policy steps are due after k dual steps.
int64_t Trainer::planned_policy_steps(int64_t dual_steps) const {
  const int64_t start = policy_start();
  return dual_steps <= start ? 0 : static_cast<int64_t>(std::floor(static_cast<double>(dual_steps - start) * config_.policy.steps_per_dual));
}

void Trainer::refresh_weights(Context& ctx) {
  if (!potentials_) return;
  potentials_->weights(ctx, actor_.weights());
  actor_.shape_weights(ctx);
  // NaN from here on unless 0 < the largest weight < infinity: log is finite only then.
  reduce_max(ctx, {actor_.weights(), largest_weight_.view()});
  unary_map(ctx, {Unary::Log, largest_weight_.view(), largest_weight_.view()});
  accumulate(ctx, {largest_weight_.view(), 0, bad_weights_.view()});
  if (!ctx.on_gpu()) check_weights(ctx);
  actor_.use_weights(ctx);
  have_weights_ = true;
}

void Trainer::check_weights(Context& ctx) {
  float bad;
  pwdice::download(ctx, &bad, bad_weights_.view().data, sizeof bad);  // a vector would be an allocation in every pass
  if (bad == 0) return;
  fill(ctx, bad_weights_.view(), 0);
  fail(ErrorCode::NotFinite, "the largest weight of the policy is not a positive finite number");
}

// How many are due after k dual steps; their weights are made anew where that is due as well.
int64_t Trainer::policy_steps_after(Context& ctx, int64_t k) {
  if (config_.policy.schedule == "epoch") {
    const int64_t epoch = dual_epoch();
    if (k % epoch != 0 || k < policy_start()) return 0;
    refresh_weights(ctx);
    return (actor_.kept() + config_.policy.batch - 1) / config_.policy.batch;
  }
  const int64_t due = planned_policy_steps(k) - planned_policy_steps(k - 1);
  if (have_weights_ ? k % config_.policy.weights_every == 0 : due > 0) refresh_weights(ctx);
  return due;
}

Trainer::Losses Trainer::losses(Context& ctx, Phase phase) {
  Losses out;
  switch (phase) {
    case Phase::Contrastive: out.main = encoder_->optimiser().report(ctx); break;
    case Phase::Discriminator: out.main = discriminator_->optimiser().report(ctx); break;
    case Phase::Dual:
    case Phase::Done:
      if (potentials_) out.main = potentials_->optimiser().report(ctx);
      if (policy_steps_ > 0) out.policy = actor_.optimiser().report(ctx);
  }
  return out;
}

}  // namespace pwdice
