// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// One step of a task, as gymnasium's v4 environments take it:
//   ctrl = action; frame_skip steps of MuJoCo; rnePostConstraint
//   reward = (x' - x)/dt + healthy_reward - ctrl_weight |action|^2 [- contact_weight |contact|^2]
//   observation = (qpos without the first 1 or 2, qvel [clipped to +-10] [, contact forces clipped to +-1])
// A task with healthy ranges ends when it leaves them.
#include "mujoco_env.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "../host/rng.h"
#include "../kernels/error.h"
#include "mujoco_library.h"
#include "mujoco_renderer.h"
#include "random_numbers.h"

namespace pwdice {
namespace {

struct Task {
  const char *name, *env_id, *model;
  int frame_skip;
  int hidden_positions;   // coordinates that are not observed
  bool clip_velocity;     // to +-10
  bool contact_forces;
  double ctrl_weight, healthy_reward;
  double low_z, high_z, low_angle, high_angle, state_limit;  // infinite where the task has no such range
  bool torso_velocity;    // x of the torso's frame instead of qpos[0]
  double reset_noise;
  bool normal_velocity;   // reset: qvel normal instead of uniform
  double random_return, expert_return;
};

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kContactWeight = 5e-4;
constexpr std::array<Task, 5> kTasks{{
    {"hopper", "Hopper-v4", "hopper.xml", 4, 1, true, false, 1e-3, 1, 0.7, kInf, -0.2, 0.2, 100, false, 5e-3, false, -20.272305, 3234.3},
    {"halfcheetah", "HalfCheetah-v4", "half_cheetah.xml", 5, 1, false, false, 0.1, 0, -kInf, kInf, -kInf, kInf, kInf, false, 0.1, true,
     -280.178953, 12135.0},
    {"walker2d", "Walker2d-v4", "walker2d.xml", 4, 1, true, false, 1e-3, 1, 0.8, 2, -1, 1, kInf, false, 5e-3, false, 1.629008, 4592.3},
    {"ant", "Ant-v4", "ant.xml", 5, 2, false, false, 0.5, 1, 0.2, 1, -kInf, kInf, kInf, true, 0.1, true, -325.6, 3879.7},
    {"ant111", "Ant-v4", "ant.xml", 5, 2, false, true, 0.5, 1, 0.2, 1, -kInf, kInf, kInf, true, 0.1, true, -325.6, 3879.7},
}};

const Task* find_task(const std::string& name) noexcept {
  for (const Task& task : kTasks) {
    if (name == task.name) return &task;
  }
  return nullptr;
}

class Simulation : public MujocoEnvironment {
 public:
  explicit Simulation(const Task& task) : task_(task), mj_(MujocoLibrary::get()) {
    char why[500] = "";
    model_.reset(mj_.load_xml(mujoco_model_path(task.model).c_str(), nullptr, why, sizeof why));
    if (!model_) fail(ErrorCode::BadFile, "MuJoCo: {} cannot be loaded: {}", task.model, why);
    data_.reset(mj_.make_data(model_.get()));
    if (!data_) fail(ErrorCode::OutOfMemory, "MuJoCo: no memory for a simulation of {}", task.model);
    torso_ = mj_.name_to_id(model_.get(), mjOBJ_BODY, "torso");
    info_.name = task.env_id;
    info_.observation_dim = model_->nq - task.hidden_positions + model_->nv + (task.contact_forces ? 6 * model_->nbody : 0);
    info_.action_dim = model_->nu;
    info_.max_steps = 1000;
    info_.random_return = task.random_return, info_.expert_return = task.expert_return;
  }

  const EnvironmentInfo& info() const override { return info_; }

  void reset(uint64_t seed, Vec<float> observation) override {
    mj_.reset_data(model_.get(), data_.get());
    RandomNumbers random(random_stream(seed, "mujoco/reset"));
    for (int i = 0; i < model_->nq; ++i) data_->qpos[i] += task_.reset_noise * (2 * random.uniform() - 1);
    for (int i = 0; i < model_->nv; ++i) {
      data_->qvel[i] += task_.reset_noise * (task_.normal_velocity ? random.normal() : 2 * random.uniform() - 1);
    }
    mj_.forward(model_.get(), data_.get());
    observe(observation);
  }

  void set_state(std::span<const double> qpos, std::span<const double> qvel, Vec<float> observation) override {
    PWDICE_CHECK(std::ssize(qpos) == model_->nq && std::ssize(qvel) == model_->nv, "{}: state of {} + {} values, expected {} + {}",
                 task_.name, qpos.size(), qvel.size(), static_cast<int64_t>(model_->nq), static_cast<int64_t>(model_->nv));
    mj_.reset_data(model_.get(), data_.get());
    std::copy(qpos.begin(), qpos.end(), data_->qpos);
    std::copy(qvel.begin(), qvel.end(), data_->qvel);
    mj_.forward(model_.get(), data_.get());
    observe(observation);
  }

  double seconds_per_step() const override { return model_->opt.timestep * task_.frame_skip; }

  Image draw(int width, int height) override {
    if (!renderer_ || renderer_->width() != width || renderer_->height() != height) {
      renderer_.reset();
      renderer_ = std::make_unique<MujocoRenderer>(model_.get(), width, height);
    }
    return renderer_->draw(model_.get(), data_.get());
  }

  StepResult step(Vec<const float> action, Vec<float> observation) override {
    PWDICE_CHECK(action.size == info_.action_dim, "{}: action of {} values, expected {}", task_.name, action.size, info_.action_dim);
    double effort = 0;
    for (int64_t k = 0; k < action.size; ++k) {
      data_->ctrl[k] = action[k];
      effort += static_cast<double>(action[k]) * action[k];
    }
    const double before = x();
    for (int k = 0; k < task_.frame_skip; ++k) mj_.step(model_.get(), data_.get());
    check_stable();
    mj_.rne_post_constraint(model_.get(), data_.get());
    const double velocity = (x() - before) / seconds_per_step();
    StepResult result{velocity + task_.healthy_reward - task_.ctrl_weight * effort - contact_cost(), !healthy()};
    observe(observation);
    if (!std::isfinite(result.reward)) fail(ErrorCode::NotFinite, "{}: the simulation became unstable", task_.name);
    return result;
  }

 private:
  struct DeleteModel {
    void operator()(mjModel* model) const { MujocoLibrary::get().delete_model(model); }
  };
  struct DeleteData {
    void operator()(mjData* data) const { MujocoLibrary::get().delete_data(data); }
  };

  // MuJoCo answers a state that is not finite, or huge, by going back to the initial one; here it is an error.
  void check_stable() const {
    for (const int kind : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC}) {
      if (data_->warning[kind].number > 0) fail(ErrorCode::NotFinite, "{}: the simulation became unstable", task_.name);
    }
  }

  double x() const { return task_.torso_velocity ? data_->xpos[3 * torso_] : data_->qpos[0]; }

  double contact_cost() const {
    if (!task_.contact_forces) return 0;
    double sum = 0;
    for (int64_t k = 0; k < 6 * model_->nbody; ++k) sum += std::pow(std::clamp<double>(data_->cfrc_ext[k], -1, 1), 2);
    return kContactWeight * sum;
  }

  bool healthy() const {
    if (task_.torso_velocity) {  // the ant: height alone, bounds included
      return data_->qpos[2] >= task_.low_z && data_->qpos[2] <= task_.high_z;
    }
    if (task_.healthy_reward == 0) return true;
    for (int64_t i = 2; i < model_->nq + model_->nv; ++i) {
      const double v = i < model_->nq ? data_->qpos[i] : data_->qvel[i - model_->nq];
      if (!(std::abs(v) < task_.state_limit)) return false;
    }
    const double z = data_->qpos[1], angle = data_->qpos[2];
    return z > task_.low_z && z < task_.high_z && angle > task_.low_angle && angle < task_.high_angle;
  }

  void observe(Vec<float> observation) const {
    PWDICE_CHECK(observation.size == info_.observation_dim, "{}: room for {} observed values, expected {}", task_.name,
                 observation.size, info_.observation_dim);
    int64_t at = 0;
    const auto put = [&](double v) { observation[at++] = static_cast<float>(v); };
    for (int64_t i = task_.hidden_positions; i < model_->nq; ++i) put(data_->qpos[i]);
    const double limit = task_.clip_velocity ? 10 : kInf;
    for (int64_t i = 0; i < model_->nv; ++i) put(std::clamp<double>(data_->qvel[i], -limit, limit));
    for (int64_t i = 0; task_.contact_forces && i < 6 * model_->nbody; ++i) put(std::clamp<double>(data_->cfrc_ext[i], -1, 1));
    for (int64_t i = 0; i < at; ++i) {
      if (!std::isfinite(observation[i])) fail(ErrorCode::NotFinite, "{}: the simulation became unstable", task_.name);
    }
  }

  const Task& task_;
  const MujocoLibrary& mj_;
  std::unique_ptr<mjModel, DeleteModel> model_;
  std::unique_ptr<mjData, DeleteData> data_;
  std::unique_ptr<MujocoRenderer> renderer_;  // made by the first draw()
  int torso_ = 0;
  EnvironmentInfo info_;
};

}  // namespace

bool is_mujoco_task(const std::string& name) noexcept { return find_task(name) != nullptr; }

std::unique_ptr<MujocoEnvironment> make_mujoco(const std::string& name) {
  const Task* task = find_task(name);
  if (task == nullptr) fail(ErrorCode::Unsupported, "environment {}: there are hopper, halfcheetah, walker2d, ant, ant111", name);
  return std::make_unique<Simulation>(*task);
}

}  // namespace pwdice
