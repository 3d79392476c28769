// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../models/config.h"

#include <gtest/gtest.h>

#include "../kernels/error.h"

namespace pwdice {
namespace {

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Config, ProfilesAreValidAndDiffer) {
  for (const char* profile : {"pwdice", "maze", "paper", "code"}) EXPECT_NO_THROW(validate(make_profile(profile))) << profile;
  EXPECT_EQ(make_profile("paper").gamma, 0.998);
  EXPECT_EQ(make_profile("code").gamma, 0.999);
  EXPECT_EQ(make_profile("code").data.rho, "exp_code");
  EXPECT_EQ(make_profile("paper").transport, "paired");
  EXPECT_EQ(make_profile("pwdice").transport, "semidual");
  EXPECT_EQ(make_profile("code").policy.batch, 512);
  EXPECT_EQ(make_profile("paper").policy.batch, 1024);
  EXPECT_THROW(make_profile("papre"), Error);
}

TEST(Config, WritesAndReadsEveryKeyBack) {
  Config config = make_profile("code");
  config.seed = 7;
  config.cost.beta = 0.1;  // not exact in binary: the text must still read back the same
  config.eps1 = 1.0 / 3;
  config.data.expert = "a \"quoted\" name.hdf5";
  config.policy.decay_lr = true;
  const std::string text = to_toml(config);
  const Config back = config_from_toml(text, "test");
  EXPECT_EQ(to_toml(back), text);
  EXPECT_EQ(back.eps1, config.eps1);
  EXPECT_EQ(back.data.expert, config.data.expert);
  EXPECT_GT(entries(config).size(), 50u);
}

TEST(Config, SetTakesTomlValues) {
  Config config;
  set_value(config, "dual.steps", "123");
  set_value(config, "gamma", "0.9");
  set_value(config, "policy.decay_lr", "false");
  set_value(config, "cost.distance", "\"cosine\"");
  EXPECT_EQ(config.dual.steps, 123);
  EXPECT_EQ(config.gamma, 0.9);
  EXPECT_FALSE(config.policy.decay_lr);
  EXPECT_EQ(config.cost.distance, "cosine");
}

TEST(Config, ErrorsAreOneSentence) {
  Config config;
  EXPECT_EQ(message_of([&] { set_value(config, "dual.step", "1"); }), "config: there is no key dual.step");
  EXPECT_EQ(message_of([&] { set_value(config, "dual.steps", "many"); }), "config: dual.steps = many is not a whole number");
  EXPECT_EQ(message_of([&] { set_value(config, "gamma", "nan"); }), "config: gamma = nan is not a finite number");
  EXPECT_EQ(message_of([&] { set_value(config, "run.objective", "yes"); }), "config: run.objective = yes is not true or false");
  EXPECT_EQ(message_of([&] { config_from_toml("gamma = 0.9\n[dual]\nstep = 3\n", "my.toml"); }),
            "config: there is no key dual.step");
  EXPECT_NE(message_of([&] { config_from_toml("gamma = \n", "my.toml"); }).find("my.toml, line 1"), std::string::npos);
  EXPECT_NE(message_of([&] { config_from_toml("gamma = [1, 2]\n", "my.toml"); }).find("neither [table] nor key = value"), std::string::npos);
}

TEST(Config, ValidateNamesTheKey) {
  const auto with = [](const char* key, const char* value) {
    Config config;
    set_value(config, key, value);
    return message_of([&] { validate(config); });
  };
  EXPECT_EQ(with("gamma", "1.0"), "config: gamma = 1, expected from 0 to below 1");
  EXPECT_EQ(with("eps1", "0.0"), "config: eps1 = 0 and eps2 = 0.5, expected positive numbers");
  EXPECT_EQ(with("dual.batch", "0"), "config: dual.batch = 0, expected at least 1");
  EXPECT_EQ(with("method", "smodise"), "config: method = \"smodise\" is none of pwdice, smodice, bc");
  EXPECT_NE(with("divergence", "chi2").find("semidual"), std::string::npos);
  EXPECT_EQ(with("seed", "-1"), "config: seed = -1, expected at least 0");
}

// toml++ must never see these: it takes for granted that a name follows.
TEST(Config, ALineIsATableOrAValue) {
  for (const char* text : {"[", "[\n=1", "gamma = 0.9\n [ \t\n", "[[[x", "[[data]]", "[]", "[=x]", "[data] x", "gamma", "= 1", "gamma = ", "seed = [1, 2]", "seed = \"1", "gamma = .5", "gamma = 1 2"}) {
    try {
      config_from_toml(text, "test.toml");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadFile);
      EXPECT_NE(std::string(error.what()).find("neither [table] nor key = value"), std::string::npos) << error.what();
    }
  }
}

TEST(Config, LettersBeyondAsciiBelongInQuotes) {
  const Config config = config_from_toml("[data]\nexpert = \"donn\u00e9es.h5\"  # d\u00e9j\u00e0\n", "test.toml");
  EXPECT_EQ(config.data.expert, "donn\u00e9es.h5");
  for (const char* text : {"\xef\xbb\x9fprofile = 1", "g\u00e4mma = 0.9", "gamma = \uff10", "seed = \"1\" \u3000"}) {
    try {
      config_from_toml(text, "test.toml");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("line 1: neither [table] nor key = value"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace pwdice
