// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// make_corpus DIR: small valid inputs for each fuzz target, in DIR/<target>/, for the fuzzer to mutate.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../datasets/hdf5_file.h"
#include "../../host/checkpoint.h"

namespace {

using namespace pwdice;
namespace fs = std::filesystem;

void save(const fs::path& path, const void* data, size_t bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

void save(const fs::path& path, Hdf5Writer& file) {
  const std::vector<std::byte> bytes = file.bytes();
  save(path, bytes.data(), bytes.size());
}

std::vector<float> ramp(int64_t n) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(i % 7) * 0.25f - 0.5f);
  return out;
}

// The flat layout, stored in one of the ways that files in the wild are.
void flat(const fs::path& path, const Hdf5Storage& wide, const Hdf5Storage& column, bool as_columns) {
  const int64_t rows = 9;
  const std::vector<int64_t> states = {rows, 3}, actions = {rows, 2};
  const std::vector<int64_t> flags = as_columns ? std::vector<int64_t>{rows, 1} : std::vector<int64_t>{rows};
  const std::vector<uint8_t> terminals = {0, 0, 0, 1, 0, 0, 0, 0, 0}, timeouts = {0, 0, 0, 0, 0, 0, 1, 0, 0};
  Hdf5Writer file;
  file.write<float>("observations", ramp(rows * 3), states, wide);
  file.write<float>("actions", ramp(rows * 2), actions, wide);
  file.write<float>("rewards", ramp(rows), flags, column);
  if (!as_columns) file.write<float>("next_observations", ramp(rows * 3), states, wide);
  file.write_bool("terminals", terminals, flags, column);
  if (!as_columns) file.write<uint8_t>("timeouts", timeouts, flags, column);
  file.attribute("", "env_id", "Hopper-v4");
  save(path, file);
}

void minari(const fs::path& path) {
  Hdf5Writer file;
  for (int64_t k = 0; k < 2; ++k) {
    const std::string group = "episode_" + std::to_string(k) + "/";
    const int64_t steps = 3 + k;
    const std::vector<int64_t> states = {steps + 1, 3}, actions = {steps, 2}, column = {steps};
    const std::vector<uint8_t> flags(steps, 0);
    file.write<float>(group + "observations", ramp((steps + 1) * 3), states);
    file.write<float>(group + "actions", ramp(steps * 2), actions);
    file.write<float>(group + "rewards", ramp(steps), column);
    file.write_bool(group + "terminations", flags, column);
    file.write_bool(group + "truncations", flags, column);
  }
  save(path, file);
}

void policy(const fs::path& path) {
  Hdf5Writer file;
  const std::vector<int64_t> first = {4, 3}, last = {2, 4}, hidden = {4}, s = {3}, a = {2};
  file.write<float>("policy/layers/0/weight", ramp(12), first);
  file.write<float>("policy/layers/0/bias", ramp(4), hidden);
  file.write<float>("policy/layers/1/weight", ramp(8), last);
  file.write<float>("policy/layers/1/bias", ramp(2), a);
  file.write<float>("policy/obs_mean", std::vector<float>(3, 0.f), s);
  file.write<float>("policy/obs_std", std::vector<float>(3, 1.f), s);
  file.write<float>("policy/action_scale", std::vector<float>(2, 1.f), a);
  file.write<float>("policy/action_bias", std::vector<float>(2, 0.f), a);
  file.attribute("policy", "activation", "relu");
  file.attribute("policy", "output", "tanh_mean");
  file.attribute("policy", "env_id", "Hopper-v4");
  save(path, file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus DIR\n");
    return 2;
  }
  try {
    const fs::path out = argv[1];
    flat(out / "dataset_fuzz" / "contiguous", {}, {}, false);
    flat(out / "dataset_fuzz" / "gzip", {{4, 3}, 6, true}, {{4}, 6, false}, false);
    flat(out / "dataset_fuzz" / "columns", {{5, 1}, 6, false}, {{5, 1}, 1, true}, true);
    minari(out / "dataset_fuzz" / "minari");
    policy(out / "policy_fuzz" / "policy");
    const std::string config = "profile = \"paper\"\ngamma = 0.99\n[dual]\nsteps = 10\n";
    save(out / "config_fuzz" / "toml", config.data(), config.size());
    Checkpoint checkpoint;
    checkpoint.put<int64_t>("step", 12);
    checkpoint.put_text("config", config);
    checkpoint.save((fs::temp_directory_path() / "pwdice_corpus_checkpoint").string());
    const std::string bytes =
        read_file((fs::temp_directory_path() / "pwdice_corpus_checkpoint").string(), 1 << 20);
    save(out / "checkpoint_fuzz" / "checkpoint", bytes.data(),
         bytes.size() - 4);  // the target adds the checksum
    fs::remove(fs::temp_directory_path() / "pwdice_corpus_checkpoint");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_corpus: %s\n", error.what());
    return 1;
  }
  return 0;
}
