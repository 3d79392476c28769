// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../datasets/episode_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "../datasets/maze.h"
#include "../kernels/error.h"
#include "hdf5_library.h"

namespace pwdice {
namespace {

using test::counting;
using test::scratch_file;
using Shape = std::vector<int64_t>;

// A small flat file whose parts can be left out or replaced.
struct Flat {
  int64_t rows = 6;
  Shape flag_shape = {6};
  Hdf5Storage storage;
  std::function<void(Hdf5Writer&)> more;
  bool observations = true, actions = true, terminals = true, timeouts = true;

  Hdf5Reader file() const {
    Hdf5Writer out;
    if (observations) out.write<float>("observations", counting(rows * 3), Shape{rows, 3}, storage);
    if (actions) out.write<float>("actions", counting(rows * 2), Shape{rows, 2}, storage);
    if (terminals) out.write_bool("terminals", std::vector<uint8_t>{0, 0, 1, 0, 0, 0}, flag_shape);
    if (timeouts) out.write_bool("timeouts", std::vector<uint8_t>{0, 0, 0, 0, 0, 1}, flag_shape);
    if (more) more(out);
    return {out.bytes(), "flat.hdf5"};
  }
  std::string refusal() const {
    try {
      read_episodes(file());
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadFile);
      return error.what();
    }
  }
};

TEST(EpisodeFile, FlatLayout) {
  Flat flat;
  flat.more = [](Hdf5Writer& f) {
    f.write<float>("rewards", counting(6), Shape{6, 1});
    f.write<float>("next_observations", counting(18), Shape{6, 3});
    f.attribute("", "env_id", "Hopper-v4");
  };
  const Hdf5Reader file = flat.file();
  EXPECT_EQ(detect_layout(file), EpisodeLayout::D4rl);
  const Episodes e = read_episodes(file);
  EXPECT_EQ(e.env_id, "Hopper-v4");
  EXPECT_EQ(e.state_dim, 3);
  EXPECT_EQ(e.action_dim, 2);
  EXPECT_EQ(e.observations, counting(18));
  EXPECT_EQ(e.rewards, counting(6));
  EXPECT_TRUE(e.has_next());
  EXPECT_EQ(find_episodes(e, 1000).size(), 2u);
}

TEST(EpisodeFile, ColumnsAndTypesOfFlags) {
  Flat flat;
  flat.flag_shape = {6, 1};
  flat.storage = {{4, 1}, 6, true};
  EXPECT_EQ(read_episodes(flat.file()).terminals, (std::vector<uint8_t>{0, 0, 1, 0, 0, 0}));
  flat.timeouts = false;
  EXPECT_TRUE(read_episodes(flat.file()).timeouts.empty());
  flat.more = [](Hdf5Writer& f) {
    f.write<float>("timeouts", std::vector<float>{0, 0, 0, 1, 0, 0}, Shape{6, 1});
  };
  EXPECT_EQ(read_episodes(flat.file()).timeouts[3], 1);
  flat.more = [](Hdf5Writer& f) {
    f.write<uint8_t>("timeouts", std::vector<uint8_t>{0, 0, 0, 0, 1, 0}, Shape{6});
  };
  EXPECT_EQ(read_episodes(flat.file()).timeouts[4], 1);
  flat.more = [](Hdf5Writer& f) {
    f.write<int64_t>("rewards", std::vector<int64_t>{1, 2, 3, 4, 5, 6}, Shape{6});
  };
  EXPECT_EQ(read_episodes(flat.file()).rewards[5], 6.f);
}

TEST(EpisodeFile, EachMistakeHasItsSentence) {
  const auto expect = [](const Flat& flat, const char* reason) {
    const std::string sentence = flat.refusal();
    EXPECT_NE(sentence.find(reason), std::string::npos) << sentence;
    EXPECT_EQ(sentence.rfind("flat.hdf5", 0), 0u) << sentence;
  };
  Flat flat;
  flat.observations = false;
  expect(flat, "has neither 'observations' (D4RL) nor 'episode_0' (Minari)");
  flat = {};
  flat.actions = false;
  flat.more = [](Hdf5Writer& f) { f.write<float>("actions", counting(10), Shape{5, 2}); };
  expect(flat, "'actions' has shape 5 x 2, expected 6 rows");
  flat.more = [](Hdf5Writer& f) { f.write<int64_t>("actions", std::vector<int64_t>(6), Shape{6, 1}); };
  expect(flat, "'actions' does not hold floats");
  flat.more = [](Hdf5Writer& f) { f.write<float>("actions", counting(12), Shape{6, 2, 1}); };
  expect(flat, "'actions' has shape 6 x 2 x 1");
  flat = {};
  flat.terminals = false;
  expect(flat, "'terminals' does not exist");
  flat.more = [](Hdf5Writer& f) { f.write<uint8_t>("terminals", std::vector<uint8_t>(6, 7), Shape{6}); };
  expect(flat, "'terminals' holds values other than 0 and 1");
  flat.more = [](Hdf5Writer& f) { f.write<float>("terminals", std::vector<float>(6, 0.5f), Shape{6}); };
  expect(flat, "'terminals' holds values other than 0 and 1");
  flat.more = [](Hdf5Writer& f) { f.write<uint8_t>("terminals", std::vector<uint8_t>(7), Shape{7}); };
  expect(flat, "'terminals' has shape 7, expected 6 values");
  flat = {};
  flat.more = [](Hdf5Writer& f) { f.write<float>("next_observations", counting(12), Shape{6, 2}); };
  expect(flat, "'next_observations' has 2 columns, observations have 3");
  flat.more = [](Hdf5Writer& f) {
    std::vector<float> values = counting(18);
    values[10] = NAN;
    f.write<float>("next_observations", values, Shape{6, 3});
  };
  expect(flat, "next_observations is nan in row 3, column 1");
  flat.more = [](Hdf5Writer& f) { f.write<float>("rewards", std::vector<float>(6, INFINITY), Shape{6}); };
  expect(flat, "rewards is inf in row 0, column 0");
}

Hdf5Writer minari(int episodes, int64_t extra_columns = 0) {
  Hdf5Writer out;
  for (int k = 0; k < episodes; ++k) {
    const std::string group = "episode_" + std::to_string(k) + "/";
    const int64_t steps = 2 + k % 3, s = 3 + (k == 5 ? extra_columns : 0);
    std::vector<float> states = counting((steps + 1) * s);
    states[0] = static_cast<float>(1000 + k);
    std::vector<uint8_t> terminations(steps, 0), truncations(steps, 0);
    (k % 2 == 0 ? terminations : truncations).back() = 1;
    out.write<float>(group + "observations", states, Shape{steps + 1, s});
    out.write<float>(group + "actions", counting(steps * 2), Shape{steps, 2});
    out.write<double>(group + "rewards", std::vector<double>(steps, 1), Shape{steps});
    out.write_bool(group + "terminations", terminations, Shape{steps});
    out.write_bool(group + "truncations", truncations, Shape{steps});
  }
  return out;
}

TEST(EpisodeFile, MinariLayoutInNumericalOrder) {
  const Hdf5Reader file(minari(12).bytes(), "minari.hdf5");
  EXPECT_EQ(detect_layout(file), EpisodeLayout::Minari);
  const Episodes e = read_episodes(file);
  const auto episodes = find_episodes(e, 1000);
  ASSERT_EQ(episodes.size(), 12u);
  for (size_t k = 0; k < 12; ++k) {  // episode_10 comes after episode_9, not after episode_1
    EXPECT_EQ(e.observations[episodes[k].begin * 3], static_cast<float>(1000 + k));
    EXPECT_EQ(episodes[k].length(), static_cast<int64_t>(2 + k % 3));
    EXPECT_EQ(episodes[k].terminal, k % 2 == 0);
  }
  const Transitions t = build_transitions(e, TransitionRule::Exact, AbsorbingRule::None, 1000);
  EXPECT_EQ(t.size(), e.rows());
  EXPECT_EQ(t.table_rows(), e.rows() + 12);  // T + 1 observations of each episode, each once
}

TEST(EpisodeFile, MinariDirectoryAndMistakes) {
  const auto directory = scratch_file("minari");
  std::filesystem::create_directories(directory / "data");
  const std::vector<std::byte> bytes = minari(2).bytes();
  std::vector<char> raw(bytes.size());
  std::transform(bytes.begin(), bytes.end(), raw.begin(), [](std::byte b) { return static_cast<char>(b); });
  EXPECT_THROW(read_episodes(directory), Error);
  test::write_bytes(directory / "data" / "main_data.hdf5", raw);
  EXPECT_EQ(read_episodes(directory).rows(), 2 + 3);
  EXPECT_THROW(read_episodes(Hdf5Reader(minari(6, 1).bytes(), "minari.hdf5")), Error);
  Hdf5Writer dictionary;
  dictionary.write<float>("episode_0/observations/achieved_goal", counting(6), Shape{3, 2});
  EXPECT_THROW(read_episodes(Hdf5Reader(dictionary.bytes(), "minari.hdf5")), Error);
}

TEST(EpisodeFile, WrittenFilesComeBack) {
  MazeDataOptions options;
  options.transitions = 3000;
  const Episodes data = maze_offline_data(options);
  const auto path = scratch_file("maze.hdf5");
  write_episodes(path, data, {{"seed", "0"}});
  const Episodes back = read_episodes(path);
  EXPECT_EQ(back.observations, data.observations);
  EXPECT_EQ(back.next_observations, data.next_observations);
  EXPECT_EQ(back.actions, data.actions);
  EXPECT_EQ(back.rewards, data.rewards);
  EXPECT_EQ(back.terminals, data.terminals);
  EXPECT_EQ(back.timeouts, data.timeouts);
  EXPECT_EQ(back.env_id, data.env_id);
  EXPECT_EQ(Hdf5Reader(path).string_attribute("", "seed"), "0");
  MixtureSpec spec;
  spec.max_episode_steps = 125;
  write_episodes(scratch_file("expert.hdf5"), maze_expert_data({}));
  const Mixture m = read_mixture(scratch_file("expert.hdf5"), {path}, spec);
  EXPECT_EQ(m.offline.size(), data.rows());
  EXPECT_EQ(m.expert.size(), 125);
}

}  // namespace
}  // namespace pwdice
