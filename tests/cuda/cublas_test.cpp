// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Layers by cuBLAS, the library that CUTLASS is compared with; without a GPU a stand-in answers
// (emulated_cublas.cpp).
#include <cstdlib>
#include <optional>

#include "../../kernels/linear.h"
#include "../../kernels/matmul.h"
#include "../op_case.h"

namespace pwdice::test {
namespace {

class CuBlasLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* library = std::getenv("PWDICE_CUBLAS_LIBRARY")) library_ = library;
  }
  void TearDown() override {
    library_ ? setenv("PWDICE_CUBLAS_LIBRARY", library_->c_str(), 1) : unsetenv("PWDICE_CUBLAS_LIBRARY");
  }
  static ContextOptions options(GemmLibrary library) { return {.backend = Backend::Cuda, .gemm = library}; }

 private:
  std::optional<std::string> library_;  // what the environment names
};

struct Layer {
  std::vector<float> y, d_x, d_w, product;
};

Layer layer(const ContextOptions& options) {
  const int64_t n = 37, in = 19, out = 23;
  const auto x = normal(n * in, 1), w = normal(out * in, 2), b = normal(out, 3), d = normal(n * out, 4);
  Context ctx(options);
  OpRun run(ctx, 1);
  const auto rows = run.in(x, n, in, in + 3), weights = run.in(w, out, in), d_pre = run.in(d, n, out);
  linear_forward(ctx, {rows, weights, run.in(b), Activation::Tanh, run.out("y", n, out, out + 2)});
  linear_backward_input(ctx, {d_pre, weights, rows, Activation::Relu, run.out("d_x", n, in)});
  linear_backward_params(ctx, {d_pre, rows, run.out("d_w", out, in), run.out("d_b", out)});
  matmul(ctx, {d_pre, rows, true, false, run.out("product", out, in)});
  const Outputs got = run.finish();
  return {got["y"], got["d_x"], got["d_w"], got["product"]};
}

TEST_F(CuBlasLibrary, AgreesWithCutlass) {
  const Layer cutlass = layer(options(GemmLibrary::Cutlass)), cublas = layer(options(GemmLibrary::CuBlas));
  expect_within(cublas.y, to(cutlass.y), 1e-5);
  expect_within(cublas.d_x, to(cutlass.d_x), 1e-5);
  expect_within(cublas.d_w, to(cutlass.d_w), 1e-5);
  expect_within(cublas.product, to(cutlass.product), 1e-5);
}

TEST_F(CuBlasLibrary, AbsenceIsOneSentence) {
  setenv("PWDICE_CUBLAS_LIBRARY", "/nonexistent/libcublas.so", 1);
  expect_error(ErrorCode::Unsupported, "cublas: the library cannot be loaded",
               [&] { Context ctx(options(GemmLibrary::CuBlas)); });
  EXPECT_NO_THROW(Context(options(GemmLibrary::Cutlass)));
}

}  // namespace
}  // namespace pwdice::test
