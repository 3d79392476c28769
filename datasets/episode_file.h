// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "episodes.h"
#include "hdf5_file.h"
#include "mixture.h"

namespace pwdice {

enum class EpisodeLayout {
  D4rl,    // flat arrays observations, actions, terminals, .. of N rows
  Minari,  // groups episode_0, episode_1, .. with T + 1 observations and T actions each
};

EpisodeLayout detect_layout(const Hdf5Reader& file);

// Either layout, found out from the file; `path` may also be the directory of a Minari data set. Values that
// are not finite, shapes that disagree and wrong types throw BadFile.
Episodes read_episodes(const std::filesystem::path& path, const Hdf5Limits& limits = {});
Episodes read_episodes(const Hdf5Reader& file);

// The D4RL layout, chunked, deflate and shuffle; attributes are added to the root.
using FileAttributes = std::vector<std::pair<std::string, std::variant<std::string, int64_t, double>>>;
void write_episodes(const std::filesystem::path& path, const Episodes& data,
                    const FileAttributes& attributes = {});

// build_mixture from files.
Mixture read_mixture(const std::filesystem::path& expert, const std::vector<std::filesystem::path>& offline,
                     const MixtureSpec& spec, const Hdf5Limits& limits = {});

}  // namespace pwdice
