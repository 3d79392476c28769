// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../models/run/metrics_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "../host/checkpoint.h"
#include "../host/crc32.h"

namespace pwdice {
namespace {

namespace fs = std::filesystem;

class MetricsLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = (fs::temp_directory_path() / ("pwdice_metrics_" + std::to_string(::getpid()))).string();
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string text(const char* name) const { return read_file(directory_ + "/" + name, 1 << 20); }
  std::string directory_;
};

TEST_F(MetricsLogTest, WritesCsvAndJsonLines) {
  MetricsLog log(directory_);
  log.write({"dual", 10, 1.5, {{"loss", 0.25}, {"norm", 2}}});
  log.position();
  EXPECT_EQ(text("metrics.csv"), "phase,step,seconds,name,value\ndual,10,1.5,loss,0.25\ndual,10,1.5,norm,2\n");
  EXPECT_EQ(text("metrics.jsonl"), "{\"phase\":\"dual\",\"step\":10,\"seconds\":1.5,\"loss\":0.25,\"norm\":2}\n");
}

TEST_F(MetricsLogTest, RewindForgetsWhatCameAfterTheCheckpoint) {
  MetricsLog::Position position;
  std::string csv, jsonl;
  {
    MetricsLog log(directory_);
    log.write({"dual", 10, 1, {{"loss", 1}}});
    position = log.position();
    csv = text("metrics.csv"), jsonl = text("metrics.jsonl");
    log.write({"dual", 20, 2, {{"loss", 2}}});
  }
  MetricsLog log(directory_);
  log.rewind(position);
  EXPECT_EQ(text("metrics.csv"), csv);
  EXPECT_EQ(text("metrics.jsonl"), jsonl);
  log.write({"dual", 20, 3, {{"loss", 3}}});
  log.position();
  EXPECT_EQ(text("metrics.csv"), csv + "dual,20,3,loss,3\n");
}

// Read back as TensorBoard would: lengths, masked checksums, and the one scalar inside.
TEST_F(MetricsLogTest, TensorBoardRecordsAreWellFormed) {
  const std::string payload = tensorboard_scalar(1.0, 300, "dual/loss", 0.5f);
  const std::string record = tensorboard_record(payload);
  uint64_t length;
  std::memcpy(&length, record.data(), 8);
  ASSERT_EQ(length, payload.size());
  ASSERT_EQ(record.size(), 8 + 4 + payload.size() + 4);
  const auto masked = [](const char* data, size_t n) {
    const uint32_t crc = crc32_castagnoli(data, n);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  uint32_t crc;
  std::memcpy(&crc, record.data() + 8, 4);
  EXPECT_EQ(crc, masked(record.data(), 8));
  std::memcpy(&crc, record.data() + 12 + length, 4);
  EXPECT_EQ(crc, masked(payload.data(), payload.size()));
  // wall_time: field 1, 64 bit; step: field 2, varint 300 = AC 02; summary: field 5
  EXPECT_EQ(payload.substr(9, 3), std::string("\x10\xac\x02", 3));
  EXPECT_EQ(payload[12], '\x2a');
  EXPECT_NE(payload.find("dual/loss"), std::string::npos);
  const float half = 0.5f;
  EXPECT_EQ(payload.substr(payload.size() - 5), "\x15" + std::string(reinterpret_cast<const char*>(&half), 4));
}

}  // namespace
}  // namespace pwdice
