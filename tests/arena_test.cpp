// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../host/arena.h"

#include <utility>

#include "op_case.h"

namespace pwdice::test {
namespace {

TEST(Arena, SameRequestsGetTheSameAddresses) {
  Context ctx;
  Arena arena(ctx);
  std::vector<void*> first;
  for (const size_t bytes : {100u, 5000000u, 1u, 3000000u, 0u}) first.push_back(arena.take_bytes(bytes));
  const uint64_t before = memory_events().allocations;
  for (int step = 0; step < 3; ++step) {
    arena.reset();
    size_t k = 0;
    for (const size_t bytes : {100u, 5000000u, 1u, 3000000u, 0u})
      EXPECT_EQ(arena.take_bytes(bytes), first[k++]);
  }
  EXPECT_EQ(memory_events().allocations, before);
}

TEST(Arena, BlocksDoNotOverlapAndAreAligned) {
  Context ctx;
  Arena arena(ctx);
  const Vec<float> a = arena.take<float>(3), b = arena.take<float>(1000), c = arena.take<float>(7);
  for (const Vec<float>& v : {a, b, c}) EXPECT_EQ(reinterpret_cast<uintptr_t>(v.data) % 256, 0u);
  EXPECT_GE(b.data, a.data + a.size);
  EXPECT_GE(c.data, b.data + b.size);
}

TEST(Arena, FullNamesTheNumbers) {
  Context ctx;
  Arena arena(ctx, 10000);
  arena.reserve(8192);
  arena.take_bytes(8000);
  expect_error(ErrorCode::OutOfMemory,
               "arena: a block of 4194304 bytes on top of 8192 would pass the limit of 10000",
               [&] { arena.take_bytes(300); });
  arena.reset();
  EXPECT_NE(arena.take_bytes(8192), nullptr);
}

TEST(Arena, ScopeGivesBack) {
  Context ctx;
  Arena arena(ctx);
  arena.take_bytes(10);
  void* inside = nullptr;
  {
    const ArenaScope scope(arena);
    inside = arena.take_bytes(Arena::kBlockBytes);  // in a second block
    arena.take_bytes(1);
  }
  {
    const ArenaScope scope(arena);
    EXPECT_EQ(arena.take_bytes(Arena::kBlockBytes), inside);
  }
  EXPECT_EQ(arena.capacity(), 3 * Arena::kBlockBytes);
}

TEST(Buffer, MovesItsMemory) {
  Context ctx;
  Array<int32_t> a(ctx, 4);
  const int32_t* memory = a.view().data;
  Array<int32_t> b = std::move(a);
  EXPECT_EQ(b.view().data, memory);
  a = std::move(b);
  EXPECT_EQ(a.view().data, memory);
  expect_error(ErrorCode::InvalidArgument, "array: 4 values seen as 3 x 2", [&] { a.matrix(3, 2); });
}

}  // namespace
}  // namespace pwdice::test
