// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/gather.h"

#include "op_case.h"

namespace pwdice::test {
namespace {

class Gather : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, Gather, testing::ValuesIn(test_backends()), backend_name);

TEST_P(Gather, Rows) {
  constexpr int64_t kRows = 101;
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, int64_t{1024}, int64_t{1025}}) {
    for (int64_t d : {int64_t{0}, int64_t{1}, int64_t{11}, int64_t{16}, int64_t{111}}) {
      SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(d));
      const auto from = normal(kRows * d);
      const auto index = indices(n, kRows);
      const Outputs got = run(0, [&](OpRun& op) {
        gather_rows(op.ctx, {op.in(from, kRows, d, d + 2), op.in(index), op.out("to", n, d, d + 1)});
      });
      std::vector<float> want;
      for (int32_t i : index) want.insert(want.end(), from.begin() + i * d, from.begin() + (i + 1) * d);
      EXPECT_EQ(got["to"], want);
    }
  }
}

TEST_P(Gather, ValuesAndIndices) {
  constexpr int64_t kCount = 101;
  const auto from = normal(kCount);
  const auto from_index = indices(kCount, 1000, 5);
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, int64_t{16383}, int64_t{16385}}) {
    const auto index = indices(n, kCount);
    const Outputs got = run(0, [&](OpRun& op) {
      gather_values(op.ctx, {op.in(from), op.in(index), op.out("values", n)});
      gather_indices(op.ctx, {op.in(from_index), op.in(index), op.out<int32_t>("indices", n)});
      const Vec<int32_t> in_place = op.in_out("in_place", index);
      gather_indices(op.ctx, {op.in(from_index), in_place, in_place});
    });
    std::vector<float> values;
    std::vector<int32_t> picked;
    for (int32_t i : index) {
      values.push_back(from[static_cast<size_t>(i)]);
      picked.push_back(from_index[static_cast<size_t>(i)]);
    }
    EXPECT_EQ(got["values"], values);
    EXPECT_EQ(got.as<int32_t>("indices"), picked);
    EXPECT_EQ(got.as<int32_t>("in_place"), picked);
  }
}

TEST_P(Gather, ScatterAddsInOrder) {
  for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{101}, int64_t{256}, int64_t{257}}) {
    for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, int64_t{255}, int64_t{513}}) {
      if (count == 0 && n > 0) continue;
      SCOPED_TRACE(std::to_string(n) + " to " + std::to_string(count));
      const auto from = normal(n);
      const auto index = indices(n, count);
      const Outputs got = run(0, [&](OpRun& op) {
        scatter_values(op.ctx, {op.in(from), op.in(index), op.out("to", count)});
      });
      std::vector<float> want(static_cast<size_t>(count), 0.f);
      for (size_t i = 0; i < index.size(); ++i) want[static_cast<size_t>(index[i])] += from[i];
      EXPECT_EQ(got["to"], want);
    }
  }
}

TEST_P(Gather, RefusesWrongShapes) {
  Context& ctx = context();
  float unused = 0;
  int32_t zero = 0;
  const Mat<float> m23{&unused, 2, 3}, m24{&unused, 2, 4};
  const Vec<int32_t> two{&zero, 2}, three{&zero, 3};
  const Vec<float> values{&unused, 2};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "gather_rows: from has 3 columns, to has 4", [&] { gather_rows(ctx, {m23, two, m24}); });
  expect_error(bad, "gather_rows: index has 3 values, to has 2 rows", [&] {
    gather_rows(ctx, {m23, three, m23});
  });
  expect_error(bad, "gather_values: index has 3 values, to has 2", [&] {
    gather_values(ctx, {values, three, values});
  });
  expect_error(bad, "scatter_values: index has 3 values, from has 2", [&] {
    scatter_values(ctx, {values, three, values});
  });
  expect_error(bad, "gather_indices: index has 3 values, to has 2", [&] {
    gather_indices(ctx, {two, three, two});
  });
}

// On a GPU a check would need a read-back; there only checked builds trap.
TEST(GatherOnCpu, NamesTheIndexOutOfRangeAndWritesNothing) {
  Context ctx({.threads = 1});
  const std::vector<float> from(20, 1.f);
  std::vector<float> to(6, 7.f);
  for (int32_t wrong : {-1, 10, INT32_MIN, INT32_MAX}) {
    const std::vector<int32_t> index = {0, 9, wrong};
    expect_error(ErrorCode::InvalidArgument,
                 "gather_rows: index 2 is " + std::to_string(wrong) + ", expected 0 to 9", [&] {
                   gather_rows(ctx, {{from.data(), 10, 2}, {index.data(), 3}, {to.data(), 3, 2}});
                 });
    EXPECT_EQ(to, std::vector<float>(6, 7.f));
  }
  const std::vector<int32_t> index = {3};
  expect_error(ErrorCode::InvalidArgument, "gather_values: index 0 is 3, expected 0 to 2", [&] {
    gather_values(ctx, {{from.data(), 3}, {index.data(), 1}, {to.data(), 1}});
  });
  expect_error(ErrorCode::InvalidArgument, "scatter_values: index 0 is 3, expected 0 to 2", [&] {
    scatter_values(ctx, {{from.data(), 1}, {index.data(), 1}, {to.data(), 3}});
  });
  EXPECT_EQ(to, std::vector<float>(6, 7.f));
}

}  // namespace
}  // namespace pwdice::test
