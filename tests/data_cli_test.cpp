// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// `pwdice data`, called as a user calls it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../datasets/episode_file.h"
#include "../kernels/error.h"
#include "hdf5_library.h"

namespace pwdice {
namespace {

using test::scratch_file;

struct Result {
  std::string out, error;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// PWDICE_PROGRAM is the program's path; no argument here holds a quote.
Result run(const std::vector<std::string>& arguments) {
  const auto out = scratch_file("stdout.txt"), error = scratch_file("stderr.txt");
  std::string command = std::string("'") + PWDICE_PROGRAM + "' data";
  for (const auto& argument : arguments) command += " '" + argument + "'";
  command += " >'" + out.string() + "' 2>'" + error.string() + "'";
  const int status = std::system(command.c_str());
  Result result{read(out), read(error)};
  EXPECT_EQ(status == 0, result.error.empty()) << result.error;
  if (result.error.starts_with("pwdice: ")) result.error.erase(0, 8);
  if (result.error.ends_with("\n")) result.error.pop_back();
  return result;
}

std::string file(const char* name) { return scratch_file(name).string(); }

// A maze data set, made once by the command itself.
const std::filesystem::path& maze() {
  static const std::filesystem::path directory = [] {
    const auto path = scratch_file("maze");
    EXPECT_EQ(
        run({"generate", "--out", path.string(), "--transitions", "2000", "--expert-episodes", "4"}).error,
        "");
    return path;
  }();
  return directory;
}
std::string expert() { return (maze() / "maze_expert.hdf5").string(); }
std::string offline() { return (maze() / "maze_offline.hdf5").string(); }

TEST(DataCommand, InfoAsTextAndJson) {
  const Result text = run({"info", expert(), "--max-episode-steps", "125"});
  EXPECT_EQ(text.error, "");
  EXPECT_NE(text.out.find("4 in a timeout (4 of full length)"), std::string::npos) << text.out;
  const auto json = nlohmann::json::parse(run({"info", expert(), offline(), "--json"}).out);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["rows"], 500);
  EXPECT_EQ(json[0]["episodes"], 4);
  EXPECT_EQ(json[0]["observation_dim"], 4);
  EXPECT_GE(json[1]["transitions"], 2000);
  EXPECT_TRUE(json[1].contains("return"));
}

TEST(DataCommand, ValidateNamesOddities) {
  const auto json = nlohmann::json::parse(run({"validate", offline(), "--json"}).out);
  EXPECT_EQ(json[0]["valid"], true);
  EXPECT_TRUE(json[0]["notes"].empty());
  Episodes odd = read_episodes(offline());
  odd.actions[0] = 2, odd.timeouts.clear(), odd.next_observations[0] += 1;
  write_episodes(file("odd.hdf5"), odd);
  const Result result = run({"validate", file("odd.hdf5")});
  EXPECT_NE(result.out.find("1 action values lie outside [-1, 1]"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("there are no timeouts"), std::string::npos);
  EXPECT_NE(result.out.find("differs from the following row"), std::string::npos);
}

TEST(DataCommand, SubsetTakesEpisodesByNumber) {
  EXPECT_EQ(run({"subset", expert(), "--out", file("some.hdf5"), "--episodes", "3,0-1"}).error, "");
  const Episodes all = read_episodes(expert()), some = read_episodes(file("some.hdf5"));
  EXPECT_EQ(some.rows(), 375);
  EXPECT_EQ(some.observations[0], all.observations[3 * 125 * 4]);
  EXPECT_EQ(some.observations[125 * 4], all.observations[0]);
  EXPECT_NE(run({"subset", expert(), "--out", file("s.hdf5"), "--episodes", "4"}).error.find("only 4"),
            std::string::npos);
  EXPECT_NE(run({"subset", expert(), "--out", file("s.hdf5"), "--episodes", "1,x"}).error.find("'x' is not"),
            std::string::npos);
  EXPECT_NE(
      run({"subset", offline(), "--out", file("s.hdf5"), "--full-length"}).error.find("no episode is left"),
      std::string::npos);
}

TEST(DataCommand, MergeMakesThePapersMixture) {
  const Result result =
      run({"merge", offline(), "--expert", expert(), "--expert-out", file("E.hdf5"), "--out", file("I.hdf5"),
           "--offline-expert", "2", "--expert-episode", "1", "--max-episode-steps", "125", "--json"});
  EXPECT_EQ(result.error, "");
  const Episodes e = read_episodes(file("E.hdf5")), i = read_episodes(file("I.hdf5"));
  const Episodes all = read_episodes(expert()), rest = read_episodes(offline());
  EXPECT_EQ(e.rows(), 125);
  EXPECT_EQ(e.action_dim, 0);  // states alone
  EXPECT_FALSE(e.has_rewards());
  EXPECT_EQ(e.observations[0], all.observations[125 * 4]);
  EXPECT_EQ(i.rows(), 250 + rest.rows());
  EXPECT_EQ(i.observations[125 * 4], all.observations[2 * 125 * 4]);  // episodes 0 and 2: 1 is E
  EXPECT_EQ(nlohmann::json::parse(result.out).size(), 2u);
  EXPECT_NE(run({"merge", "--out", file("x.hdf5")}).error.find("nothing to put together"), std::string::npos);
  EXPECT_NE(run({"merge", "--expert", expert(), "--out", file("x.hdf5")}).error.find("--expert-out"),
            std::string::npos);
}

TEST(DataCommand, BadFilesAreOneSentence) {
  for (const char* command : {"info", "validate"}) {
    const Result result = run({command, file("nothing.hdf5")});
    EXPECT_EQ(result.error, file("nothing.hdf5") + " does not exist");
    EXPECT_EQ(result.out, "");
  }
  const Result several = run({"validate", expert(), file("nothing.hdf5"), offline(), "--json"});
  EXPECT_EQ(several.error, "1 of 3 files cannot be used");
  const nlohmann::json verdicts = nlohmann::json::parse(several.out);
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_TRUE(verdicts[0]["valid"] && !verdicts[1]["valid"] && verdicts[2]["valid"]);
  EXPECT_NE(run({"generate", "--out", "/proc/no"}).error.find("is not a directory"), std::string::npos);
}

}  // namespace
}  // namespace pwdice
