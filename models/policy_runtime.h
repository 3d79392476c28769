// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The embedding surface: one trained policy, from an observation to an action. C++17, no dependency, no training
// code. Build it once outside the control loop; act() allocates nothing, takes no lock, throws nothing and does
// the same amount of work every time.

#include <cstddef>
#include <string>
#include <vector>

namespace pwdice {

enum class ActStatus {
  Ok,
  WrongSize,  // observation or action has another length than the policy's
  NotFinite,  // the observation or the resulting action holds NaN or infinity; the action is not written
};

const char* describe(ActStatus status) noexcept;

enum class PolicyActivation { Relu, Tanh };

// A policy as data: what the policy file and the generated C header hold.
//   x = (observation - obs_mean) / obs_std      x = f(W_i x + b_i) for all layers but the last
//   action = action_scale * tanh(W x + b) + action_bias
struct PolicyData {
  struct Layer {
    int rows = 0, cols = 0;     // outputs, inputs
    std::vector<float> weight;  // rows * cols, row-major
    std::vector<float> bias;    // rows
  };
  PolicyActivation activation = PolicyActivation::Relu;
  std::vector<Layer> layers;
  std::vector<float> obs_mean, obs_std;
  std::vector<float> action_scale, action_bias;
  std::string env_id;
};

// Empty when the data is a valid policy, else one sentence that says what is wrong with it.
std::string find_defect(const PolicyData& data);

class PolicyRuntime {
 public:
  // Throws std::invalid_argument with find_defect's sentence.
  explicit PolicyRuntime(const PolicyData& data);

  int observation_size() const noexcept { return observation_size_; }
  int action_size() const noexcept { return action_size_; }

  // One object serves one thread at a time: the hidden layers live in it.
  ActStatus act(const float* observation, size_t observation_size, float* action, size_t action_size) noexcept;

 private:
  struct Layer {
    int inputs, outputs, padded;  // outputs rounded up to whole vectors
    std::vector<float> weight;    // (inputs, padded): the transpose, so that the inner loop runs over outputs
    std::vector<float> bias;      // padded
  };
  PolicyActivation activation_;
  int observation_size_, action_size_;
  std::vector<Layer> layers_;
  std::vector<float> mean_, inv_std_, scale_, shift_;
  std::vector<float> in_, out_;
};

// A self-contained C99 header: sizes, arrays and `int <name>_act(const float* observation, float* action)`, without state or
// allocation. Throws std::invalid_argument for a name that C would not take.
std::string policy_c_header(const PolicyData& data, const std::string& name);

}  // namespace pwdice
