// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../host/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pwdice::test {
namespace {

void collect(void* user, LogLevel level, std::string_view message) {
  static_cast<std::vector<std::string>*>(user)->push_back(std::string(name(level)) + ": " +
                                                          std::string(message));
}

TEST(Log, SilentByDefault) {
  const Log log;
  EXPECT_FALSE(log.enabled(LogLevel::Error));
  log.error("nobody listens to {}", 1);
}

TEST(Log, WritesFromItsThresholdOn) {
  std::vector<std::string> lines;
  const Log log(collect, &lines, LogLevel::Warning);
  log.debug("a");
  log.info("b");
  log.warning("step {} of {}", 3, "bc");
  log.error("loss {}", 0.5);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "warning: step 3 of bc");
  EXPECT_EQ(lines[1], "error: loss 0.5");
}

}  // namespace
}  // namespace pwdice::test
