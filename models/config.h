// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pwdice {

// Everything a run depends on. A profile sets all values; a TOML file and --set key=value change single ones.
// Keys are the member names joined by dots, as in `dual.steps`; config.cpp lists them once.
struct Config {
  std::string profile = "pwdice";  // pwdice (ours), maze (ours, for the embedded maze), paper (the paper's table),
                                   // code (the released code)
  std::string method = "pwdice";   // pwdice, smodice, bc
  int64_t seed = 0;
  std::string backend = "auto";  // auto, cpu, cuda
  int64_t threads = 0;           // 0 = all cores

  struct Data {
    std::string source = "files";        // files, maze (embedded)
    std::string expert, agnostic;        // source = files: D4RL or Minari files; expert is used without actions
    std::string environment = "";        // for evaluation: maze, hopper, halfcheetah, walker2d, ant (27
                                         // dimensions), ant111; empty = none
    int64_t expert_trajectory = -1;      // which trajectory is E; -1 = the first of full length
    int64_t expert_trajectories = 1;     // how many are, from that one on; -1 = all
    int64_t expert_in_agnostic = -1;     // how many further expert trajectories join I, with their actions; -1 = all
    std::string rule = "exact";          // exact (s' as recorded), reference (the released code's rule)
    std::string absorbing = "none";      // absorbing states with a flag dimension: none, pwdice, smodice
    bool distorted = false;              // s <- (0.1 I + D') s, D' ~ N(0, 4^2): the paper's ablation
    std::string initial = "agnostic";    // whose trajectories' first states are p0: agnostic, expert, both
    std::string rho = "exp_tail";        // weights of expert states: uniform, exp, exp_tail, exp_code, uniform_goal,
                                         // exp_goal (datasets/expert.h)
    double normalise_eps = 1e-4;
    int64_t max_episode_steps = 1000;    // where a file does not say
    int64_t maze_transitions = 40000;    // source = maze: size of I
    int64_t maze_expert_episodes = 1;
  } data;

  double gamma = 0.998;
  double eps1 = 0.5, eps2 = 0.5;
  std::string divergence = "kl";         // kl, chi2 (the paper's), chi2_exact
  std::string transport = "semidual";    // semidual, joint (all pairs), paired (the released code's estimate)
  struct Cost {
    std::string distance = "learned";    // learned, learned_cosine, squared_euclidean, euclidean, manhattan,
                                         // exp_manhattan, cosine, none
    double beta = 5;                     // scale of the distance
    double reward = 1;                   // scale of R; 0 = a cost without it
  } cost;

  struct Contrastive {
    std::string metric = "learned_pd";   // learned_pd, learned_spd, learned_spd_normalised, learned,
                                         // learned_sphere (encoder.h)
    int64_t steps = 1500, batch = 1024;
    double lr = 1e-3, clip_norm = 1;
  } contrastive;
  struct Discriminator {
    int64_t steps = 2000, batch = 512;
    double lr = 3e-4, penalty = 10;
    double mixing = 0.01;                // probability that a negative batch is drawn from E
  } discriminator;
  struct Dual {
    int64_t steps = 1500, batch = 512, expert_batch = 0, init_batch = 256;  // expert_batch 0 = all of E
    double lr = 3e-4, weight_decay = 0;
    bool decay_lr = true;                // linearly to zero over the run
    double regulariser = 0;              // lambda of (mean l0)^2 + (mean l1)^2 + (mean l2)^2
    double average = 0;                  // decay of the averaged potentials used for the weights; 0 = off
  } dual;
  struct Policy {
    std::string schedule = "step";       // step (interleaved), epoch (a dual epoch, then a policy epoch)
    std::string sampling = "weighted";   // weighted (drawn in proportion to w), uniform (w in the loss)
    double steps_per_dual = 24;          // schedule = step
    int64_t start = 250;                 // dual steps before the first policy step
    int64_t weights_every = 250;         // dual steps between two passes over the data for w; schedule = step. Maze: 50 and
                                         // 250 end alike in the same time, 1000 learns later.
    int64_t batch = 256;
    double lr = 2e-3, weight_decay = 1e-3;
    bool decay_lr = true;                // linearly to zero over the run
    std::string units = "expert";        // of its inputs: mean and deviation of E's states (expert) or of I's (data)
    double average = 0.999;              // decay of the averaged policy that is evaluated and exported; 0 = off
    // kernels/cloning_weights.h says what these do to the weights.
    std::string balance = "steps";       // steps (every step of an episode the same mass), none
    int64_t lookahead = 40;              // transitions of an episode whose logarithms of weights are averaged
    double cap = 0.97;                   // balance = steps: share of a step's mass that is made of equal weights
    double power = 3;                    // of the weights; above 1 sharpens them as a smaller eps2 would
    double keep = 1e-6;                  // rows of smaller weight are dropped
  } policy;

  struct Evaluation {
    int64_t every = 150, episodes = 10;
  } evaluation;
  struct Run {
    std::string directory = "";          // empty = runs/<environment>-<method>-<seed>
    int64_t log_every = 250, checkpoint_every = 500, keep_checkpoints = 3;
    bool objective = false;              // log the exact dual objective over the whole data set
  } run;
};

// One key of the config with its value as text.
struct ConfigEntry {
  std::string key, value;
};

Config make_profile(const std::string& name);                  // throws InvalidArgument for an unknown name
void set_value(Config& config, const std::string& key, const std::string& value);  // value as in TOML
std::vector<ConfigEntry> entries(const Config& config);        // all keys in order, values as TOML
std::string to_toml(const Config& config);
void validate(const Config& config);                           // one sentence for the first value out of range

// The file's own `profile` key chooses the defaults for what it does not say. config_toml.cpp; component `run`.
Config config_from_toml(const std::string& text, const std::string& origin);
Config load_config(const std::string& path);

}  // namespace pwdice
