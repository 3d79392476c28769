// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Saving and restoring a Trainer: every piece of state as bytes, so that a resumed run goes on exactly.
#include "pwdice.h"

namespace pwdice {

std::vector<StateSpan> Trainer::state() const {
  std::vector<StateSpan> spans = actor_.state();
  const auto add = [&spans](std::vector<StateSpan> more) { spans.insert(spans.end(), more.begin(), more.end()); };
  if (encoder_) add(encoder_->state());
  if (discriminator_) add(discriminator_->state());
  if (potentials_) add(potentials_->state());
  return spans;
}

void Trainer::save(Context& ctx, Checkpoint& checkpoint) const {
  checkpoint.put_text("config", to_toml(config_));
  checkpoint.put("phase", static_cast<int32_t>(phase_));
  checkpoint.put("step", step_);
  checkpoint.put("policy_steps", policy_steps_);
  checkpoint.put("have_weights", static_cast<int32_t>(have_weights_));
  checkpoint.put("transitions", data_.transitions());
  std::vector<char> bytes;
  for (const StateSpan& span : state()) {
    bytes.resize(span.bytes);
    download(ctx, bytes.data(), span.data, span.bytes);
    checkpoint.put("state/" + span.name, bytes.data(), bytes.size());
  }
}

void Trainer::restore(Context& ctx, const Checkpoint& checkpoint) {
  const auto phase = checkpoint.get<int32_t>("phase");
  if (phase < 0 || phase > static_cast<int32_t>(Phase::Done)) {
    fail(ErrorCode::BadFile, "checkpoint: there is no phase {}", phase);
  }
  const auto transitions = checkpoint.get<int64_t>("transitions");
  PWDICE_CHECK(transitions == data_.transitions(), "checkpoint: made with {} transitions, the data now has {}", transitions,
               data_.transitions());
  // The potentials exist from the dual phase on, and stand on networks that are restored first.
  const auto load = [&](const std::vector<StateSpan>& spans) {
    std::vector<char> bytes;
    for (const StateSpan& span : spans) {
      bytes.resize(span.bytes);
      checkpoint.get("state/" + span.name, bytes.data(), span.bytes);
      upload(ctx, span.data, bytes.data(), span.bytes);
    }
  };
  load(state());
  if (discriminator_) discriminator_->restored(ctx);
  while (static_cast<int32_t>(phase_) < phase) end_phase(ctx);
  if (potentials_) load(potentials_->state());
  step_ = checkpoint.get<int64_t>("step");
  policy_steps_ = checkpoint.get<int64_t>("policy_steps");
  have_weights_ = checkpoint.get<int32_t>("have_weights") != 0;
  load(actor_.state());  // build_tables may have replaced the weights
  if (have_weights_) actor_.use_weights(ctx);
}

std::vector<float> Trainer::embeddings(Context& ctx, Mat<const float> host_states) {
  if (!encoder_) return {};
  const Array<float> states(ctx, host_states.size()), g(ctx, host_states.rows * Encoder::kEmbedding);
  upload(ctx, states.view().data, host_states.data, static_cast<size_t>(host_states.size()) * sizeof(float));
  encoder_->embed(ctx, states.matrix(host_states.rows, host_states.cols), g.matrix(host_states.rows, Encoder::kEmbedding));
  return download(ctx, g.view());
}

}  // namespace pwdice
