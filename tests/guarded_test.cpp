// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Ops whose states end where the memory of the process ends: a vector loaded past them is a fault, not luck.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "transport_case.h"

namespace pwdice::test {
namespace {

// A copy of the values whose last byte is the last before a page that nobody may touch.
class Guarded {
 public:
  explicit Guarded(const std::vector<float>& values) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = values.size() * sizeof(float), kept = (bytes + page - 1) / page * page;
    size_ = kept + page;
    memory_ =
        static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + kept, page, PROT_NONE) != 0) std::abort();
    data_ = reinterpret_cast<float*>(memory_ + kept - bytes);
    std::copy(values.begin(), values.end(), data_);
  }
  ~Guarded() { munmap(memory_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  const float* data() const { return data_; }

 private:
  char* memory_;
  size_t size_;
  float* data_;
};

struct Result {
  std::vector<float> matrix, d_a, d_b, semidual, lse;
  bool operator==(const Result&) const = default;
};

Result results(Context& ctx, const TransportProblem& c, const float* x, const float* y) {
  Result to{std::vector<float>(c.n * c.m), std::vector<float>(c.n), std::vector<float>(c.m),
            std::vector<float>(c.n), std::vector<float>(c.m)};
  const auto in = [](const std::vector<float>& v) { return Vec<const float>{v.data(), int64_t(v.size())}; };
  const auto out = [](std::vector<float>& v) { return Vec<float>{v.data(), int64_t(v.size())}; };
  const PairCost cost{c.distance, c.beta, {x, c.n, c.d}, {y, c.m, c.d}, in(c.reward)};
  float loss = 0;
  cost_matrix(ctx, {cost, {to.matrix.data(), c.n, c.m}});
  transport_joint(ctx, {cost, in(c.a), in(c.b), in(c.q), c.eps, {&loss, 1}, out(to.d_a), out(to.d_b)});
  transport_semidual(ctx, {cost, in(c.a), in(c.q), c.eps, {&loss, 1}, out(to.semidual), out(to.lse)});
  return to;
}

TEST(Guarded, PairsReadNothingPastTheirStates) {
  Context ctx({.threads = 2});
  for (const int64_t d : {1, 3, 4, 5, 8, 33}) {
    for (int64_t n = 1; n < 48; ++n) {
      SCOPED_TRACE(std::to_string(n) + " states of " + std::to_string(d));
      const TransportProblem c(n, 60 - n, d);
      const Guarded x(c.x), y(c.y);
      EXPECT_EQ(results(ctx, c, x.data(), y.data()), results(ctx, c, c.x.data(), c.y.data()));
    }
  }
}

}  // namespace
}  // namespace pwdice::test
