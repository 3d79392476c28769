// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <memory>
#include <optional>

#include "../host/checkpoint.h"
#include "config.h"
#include "discriminator.h"
#include "encoder.h"
#include "policy.h"
#include "potentials.h"

namespace pwdice {

// The order of training: each phase stands on what the one before has learned, which is frozen by then.
enum class Phase { Contrastive, Discriminator, Dual, Done };
const char* name(Phase phase) noexcept;

// PW-DICE and its baselines: data in, policy out. The caller owns the loop, so that logging, checkpoints and
// evaluation happen where it wants them:
//   Trainer trainer(ctx, config, std::move(mixture));
//   while (trainer.phase() != Phase::Done) trainer.advance(ctx);
//   save_policy("policy.h5", trainer.policy(ctx));
class Trainer {
 public:
  Trainer(Context& ctx, const Config& config, Mixture&& mixture, std::string env_id = "");

  Phase phase() const { return phase_; }
  int64_t step() const { return step_; }  // steps done of the phase
  int64_t phase_steps(Phase phase) const;

  // One step of the phase; in the dual phase a dual step and the policy steps that follow it. A loss that is not
  // finite throws NotFinite, naming phase and step, and leaves the parameters of the step before: on the CPU at once,
  // on a GPU when check() next asks. After an error another call takes the step up where it failed.
  void advance(Context& ctx);
  void check(Context& ctx);  // reads back a flag

  struct Losses {
    Optimiser::Report main;                   // of the phase's network
    std::optional<Optimiser::Report> policy;  // in the dual phase, once it trains
  };
  Losses losses(Context& ctx, Phase phase);  // of that phase's last step; reads back: for logging

  PolicyData policy(Context& ctx) const { return actor_.export_policy(ctx, env_id_); }
  bool has_weights() const { return have_weights_; }  // other than equal ones
  std::vector<float> weights(Context& ctx) const { return download(ctx, actor_.weights()); }
  std::vector<float> embeddings(Context& ctx, Mat<const float> host_states);  // g, or empty without one
  double objective(Context& ctx, int64_t part_rows = Potentials::kPartRows) const { return potentials_->objective(ctx, part_rows); }
  bool has_objective() const { return potentials_ != nullptr; }
  int64_t policy_steps() const { return policy_steps_; }
  const DataTables& data() const { return data_; }
  size_t table_bytes() const;

  // Everything a resumed run needs to go on bit for bit.
  void save(Context& ctx, Checkpoint& checkpoint) const;
  void restore(Context& ctx, const Checkpoint& checkpoint);

 private:
  void begin_phase(Context& ctx);
  void end_phase(Context& ctx);
  void build_tables(Context& ctx);
  void follow_schedule(Context& ctx);
  void dual_step(Context& ctx);
  int64_t policy_steps_after(Context& ctx, int64_t dual_step);
  [[noreturn]] void fail_in_phase(const Error& error) const;
  void refresh_weights(Context& ctx);
  void check_weights(Context& ctx);  // reads back
  int64_t planned_policy_steps(int64_t dual_steps) const;
  int64_t policy_start() const { return config_.method == "bc" ? 0 : config_.policy.start; }
  int64_t dual_epoch() const;  // dual steps that see as many transitions as there are
  void check_policy_trains() const;
  bool uses_encoder() const;
  bool uses_discriminator() const { return config_.method != "bc"; }
  std::vector<StateSpan> state() const;

  Config config_;
  std::string env_id_;
  DataTables data_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Discriminator> discriminator_;
  std::unique_ptr<Potentials> potentials_;  // from the dual phase on: it needs the tables
  Actor actor_;
  Array<float> features_, expert_features_, reward_, largest_weight_, bad_weights_;
  Phase phase_ = Phase::Contrastive;
  int64_t step_ = 0, policy_steps_ = 0;
  bool have_weights_ = false;
  Phase checked_phase_ = Phase::Contrastive;  // of the last step taken, for check()
  int64_t checked_step_ = 0;
  // Of a step that failed on its way: whether its dual part is done, and how many policy steps it still owes.
  bool dual_stepped_ = false;
  std::optional<int64_t> policy_due_;
};

// What a config says, in the options of each part.
EncoderOptions encoder_options(const Config& config);
DiscriminatorOptions discriminator_options(const Config& config);
PotentialsOptions potentials_options(const Config& config);
ActorOptions actor_options(const Config& config);

}  // namespace pwdice
