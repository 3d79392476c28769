// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/block.h"

#include "op_case.h"

namespace pwdice::test {
namespace {

class Block : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, Block, testing::ValuesIn(test_backends()), backend_name);

constexpr int64_t kGrain = 65536;  // values per chunk on the CPU

TEST_P(Block, CopyWithStrides) {
  for (const int64_t n : sizes(64)) {
    for (const int64_t d : {int64_t{1}, int64_t{3}, int64_t{8}, int64_t{37}}) {
      const auto x = normal(n * d);
      for (const int64_t gap : {0, 2}) {
        const Outputs got = run(0, [&](OpRun& op) {
          copy_block(op.ctx, {op.in(x, n, d, d + gap), op.out("to", n, d, d + 1)});
        });
        expect_equal(got["to"], x);
      }
    }
  }
}

TEST_P(Block, CopyAndAddOverSeveralChunks) {
  const int64_t n = kGrain + 1, d = 3;
  const auto x = normal(n * d, 1), y = normal(n * d, 2);
  const Outputs got = run(0, [&](OpRun& op) {
    copy_block(op.ctx, {op.in(x, n, d), op.out("copy", n, d)});
    add_block(op.ctx, {op.in(x, n, d), op.in_out("sum", y, n, d)});
  });
  expect_equal(got["copy"], x);
  std::vector<float> want(x.size());
  for (size_t i = 0; i < x.size(); ++i) want[i] = y[i] + x[i];
  expect_equal(got["sum"], want);
}

// One column of three, as the gradient of a head of the dual network is put together.
TEST_P(Block, AddTouchesOnlyItsBlock) {
  for (const int64_t n : sizes(64)) {
    const auto column = normal(n, 1), matrix = normal(n * 3, 2);
    const Outputs got = run(0, [&](OpRun& op) {
      const Mat<float> to = op.in_out("matrix", matrix, n, 3);
      add_block(op.ctx, {op.in(column, n, 1), {to.data + 1, n, 1, 3}});
    });
    std::vector<float> want = matrix;
    for (size_t i = 0; i < column.size(); ++i) want[3 * i + 1] += column[i];
    expect_equal(got["matrix"], want);
  }
}

TEST_P(Block, BadShapes) {
  OpRun op(context(), 0);
  const auto x = normal(6);
  expect_error(ErrorCode::InvalidArgument, "copy_block: from is 2 x 3, to is 3 x 2", [&] {
    copy_block(op.ctx, {op.in(x, 2, 3), op.out("to", 3, 2)});
  });
  expect_error(ErrorCode::InvalidArgument, "add_block: from is 2 x 3, to is 2 x 2", [&] {
    add_block(op.ctx, {op.in(x, 2, 3), op.out("to", 2, 2)});
  });
  const Mat<float> to = op.out("to", 2, 3);
  expect_error(ErrorCode::InvalidArgument, "copy_block: 3 columns with row strides 3 and 2", [&] {
    copy_block(op.ctx, {op.in(x, 2, 3), {to.data, 2, 3, 2}});
  });
}

}  // namespace
}  // namespace pwdice::test
