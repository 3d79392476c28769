// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/error.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pwdice {
namespace {

TEST(Error, FillsPlaceholdersInOrder) {
  const std::string name = "w";
  EXPECT_EQ(
      format_message("linear: {} has {} columns, {} expected, {} of them", {name, int64_t{12}, 11u, 0.5}),
      "linear: w has 12 columns, 11 expected, 0.5 of them");
}

TEST(Error, KeepsPlaceholdersWithoutValuesAndDropsValuesWithoutPlaceholders) {
  EXPECT_EQ(format_message("a {} b {}", {1}), "a 1 b {}");
  EXPECT_EQ(format_message("plain", {1, 2}), "plain");
  EXPECT_EQ(format_message("", {}), "");
}

TEST(Error, PrintsExtremeNumbers) {
  EXPECT_EQ(format_message("{} {} {}", {INT64_MIN, UINT64_MAX, -1e30f}),
            "-9223372036854775808 18446744073709551615 -1e+30");
  EXPECT_EQ(format_message("{} {} {}", {std::copysign(NAN, -1.f), NAN, -INFINITY}), "nan nan -inf");
}

TEST(Error, CarriesCodeAndSentence) {
  try {
    fail(ErrorCode::BadFile, "policy: {} is not a policy file", "notes.txt");
  } catch (const std::runtime_error& error) {  // an embedder may know only the standard type
    EXPECT_STREQ(error.what(), "policy: notes.txt is not a policy file");
    EXPECT_EQ(dynamic_cast<const Error&>(error).code(), ErrorCode::BadFile);
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(Error, CheckThrowsOnlyWhenFalse) {
  int evaluated = 0;
  EXPECT_NO_THROW(PWDICE_CHECK(++evaluated == 1, "never"));
  EXPECT_EQ(evaluated, 1);
  EXPECT_THROW(PWDICE_CHECK(evaluated == 2, "gather: n is {}", evaluated), Error);
}

TEST(Error, EveryCodeHasItsName) {
  EXPECT_STREQ(name(ErrorCode::InvalidArgument), "InvalidArgument");
  EXPECT_STREQ(name(ErrorCode::Unsupported), "Unsupported");
  EXPECT_STREQ(name(ErrorCode::OutOfMemory), "OutOfMemory");
  EXPECT_STREQ(name(ErrorCode::DeviceLost), "DeviceLost");
  EXPECT_STREQ(name(ErrorCode::BadFile), "BadFile");
  EXPECT_STREQ(name(ErrorCode::NotFinite), "NotFinite");
  EXPECT_STREQ(name(ErrorCode::Internal), "Internal");
}

}  // namespace
}  // namespace pwdice
