// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../host/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../host/crc32.h"

namespace pwdice {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("pwdice_checkpoint_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  static Checkpoint sample() {
    Checkpoint c;
    const float values[] = {1.5f, -2.f, 3.25f};
    c.put("values", values, 3);
    c.put("step", int64_t{42});
    c.put_text("config", "gamma = 0.9\n");
    return c;
  }
  fs::path directory_;
};

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadFile);
    return error.what();
  }
  return "no error";
}

TEST(Crc32, KnownValues) {
  EXPECT_EQ(crc32_ieee("123456789", 9), 0xCBF43926u);
  EXPECT_EQ(crc32_castagnoli("123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32_ieee("6789", 4, crc32_ieee("12345", 5)), 0xCBF43926u);
}

TEST_F(CheckpointTest, ComesBackAsItWas) {
  sample().save(path("a.ckpt"));
  const Checkpoint c = Checkpoint::load(path("a.ckpt"));
  float values[3];
  c.get("values", values, 3);
  EXPECT_EQ(values[2], 3.25f);
  EXPECT_EQ(c.get<int64_t>("step"), 42);
  EXPECT_EQ(c.get_text("config"), "gamma = 0.9\n");
  EXPECT_FALSE(fs::exists(path("a.ckpt.partial")));
}

TEST_F(CheckpointTest, EveryDamagedByteIsNoticed) {
  sample().save(path("a.ckpt"));
  const std::string good = read_file(path("a.ckpt"), 1 << 20);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_NE(message_of([&] { Checkpoint::parse(bad, "x"); }), "no error") << "byte " << i;
  }
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(message_of([&] { Checkpoint::parse(good.substr(0, length), "x"); }), "no error") << "length " << length;
  }
}

TEST_F(CheckpointTest, ErrorsNameFileAndSection) {
  EXPECT_NE(message_of([&] { Checkpoint::load(path("none.ckpt")); }).find("none.ckpt: no such file"), std::string::npos);
  EXPECT_EQ(message_of([&] { Checkpoint::parse("hello", "x"); }), "x: not a pwdice checkpoint");
  const Checkpoint c = sample();
  float two[2];
  EXPECT_EQ(message_of([&] { c.get("values", two, 2); }), "checkpoint: section values has 12 bytes, expected 8");
  EXPECT_EQ(message_of([&] { c.get<int>("missing"); }), "checkpoint: no section missing");
}

// A length that the checksum vouches for may still be absurd: nothing is allocated for it.
TEST_F(CheckpointTest, AbsurdLengthIsRefused) {
  std::string bytes("PWDICECK", 8);
  const auto append = [&bytes](auto v) { bytes.append(reinterpret_cast<const char*>(&v), sizeof v); };
  append(uint32_t{1}), append(uint32_t{1}), append(uint32_t{1});
  bytes += "a";
  append(uint64_t{1} << 60);
  append(crc32_ieee(bytes.data(), bytes.size()));
  EXPECT_EQ(message_of([&] { Checkpoint::parse(bytes, "x"); }), "x: damaged checkpoint, a section ends past the end");
}

TEST_F(CheckpointTest, UnwritableDirectoryLosesNothing) {
  sample().save(path("a.ckpt"));
  EXPECT_NE(message_of([&] { sample().save(path("no/such/place.ckpt")); }), "no error");
  EXPECT_EQ(Checkpoint::load(path("a.ckpt")).get<int64_t>("step"), 42);
}

}  // namespace
}  // namespace pwdice
