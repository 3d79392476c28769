// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Operations computed by the same source on the host and as PTX, math functions, access patterns.
// Compiled with -fmad=false: a contraction would change the last bit on one side only.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "kernels.h"

namespace kernels {
namespace {

TEST_HD uint32_t bits(float value) {
  uint32_t result;
  memcpy(&result, &value, sizeof result);
  return result;
}
TEST_HD uint64_t bits(double value) {
  uint64_t result;
  memcpy(&result, &value, sizeof result);
  return result;
}
TEST_HD float from_bits(uint32_t value) {
  float result;
  memcpy(&result, &value, sizeof result);
  return result;
}
TEST_HD uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

struct Inputs {
  uint64_t x, y, z;
  int32_t a, b;
  uint32_t ua, ub;
  int64_t la, lb;
  float f, g, h;
  double d, e;
};

TEST_HD Inputs make_inputs(uint64_t seed) {
  Inputs in;
  in.x = mix(seed + 1), in.y = mix(in.x), in.z = mix(in.y);
  in.a = int32_t(in.x), in.b = int32_t(in.y) | 1;
  in.ua = uint32_t(in.x), in.ub = uint32_t(in.y) | 1;
  in.la = int64_t(in.x), in.lb = int64_t(in.z) | 1;
  in.f = from_bits((in.ua & 0x807fffff) | ((100 + in.ub % 50) << 23));
  in.g = from_bits((in.ub & 0x807fffff) | ((110 + in.ua % 30) << 23));
  in.h = from_bits((uint32_t(in.z) & 0x807fffff) | ((115 + in.ua % 20) << 23));
  in.d = in.f * 1.25 + in.g, in.e = double(in.g) * in.h;
  return in;
}

TEST_HD int integer_operations(const Inputs& in, uint64_t* o) {
  int k = 0;
  o[k++] = uint32_t(in.a / in.b), o[k++] = uint32_t(in.a % in.b), o[k++] = in.ua / in.ub,
  o[k++] = in.ua % in.ub;
  o[k++] = uint64_t(in.la / in.lb), o[k++] = uint64_t(in.la % in.lb);
  o[k++] = uint32_t(in.a >> (in.b & 31)), o[k++] = in.ua >> (in.ub & 31),
  o[k++] = uint64_t(in.la >> (in.b & 63));
  o[k++] = in.x << (in.b & 63), o[k++] = uint8_t(in.a) * int8_t(in.b),
  o[k++] = int16_t(in.a) * uint16_t(in.b);
  return k;
}

TEST_HD int float_operations(const Inputs& in, uint64_t* o) {
  int k = 0;
  o[k++] = bits(in.f + in.g), o[k++] = bits(in.f * in.g), o[k++] = bits(in.f / in.g),
  o[k++] = bits(fmaf(in.f, in.g, in.h));
  o[k++] = bits(sqrtf(fabsf(in.f))), o[k++] = bits(in.d * in.e + in.d), o[k++] = bits(in.d / in.e);
  o[k++] = bits(fma(in.d, in.e, in.d)), o[k++] = bits(sqrt(fabs(in.d))), o[k++] = bits(fminf(in.f, in.g));
  o[k++] = bits(fmaxf(in.f, in.h)), o[k++] = bits(floorf(in.f * .01f)), o[k++] = bits(rintf(in.f * .01f));
  o[k++] = bits(truncf(in.g * .01f));
  return k;
}

TEST_HD int conversions(const Inputs& in, uint64_t* o) {
  int k = 0;
  o[k++] = uint32_t(int(in.f * 0.001f)), o[k++] = uint64_t((long long)in.d), o[k++] = bits(float(in.a));
  o[k++] = bits(float(in.ua)), o[k++] = bits(float(in.la)), o[k++] = bits(float(in.x)),
  o[k++] = bits(double(in.la));
  o[k++] = bits(float(in.e));
  o[k++] = uint64_t(__half_as_ushort(__float2half(in.f * 1e-3f))) << 16 |
           __bfloat16_as_ushort(__float2bfloat16(in.g));
  return k;
}

struct Mixed {
  int a;
  double b;
  float c[3];
};
// Not inlined: passes and returns a structure through parameter space.
TEST_HD __attribute__((noinline)) Mixed shuffle_struct(int a, double b, const float* c) {
  Mixed result;
  result.a = a * 3, result.b = b / 3.0;
  for (int i = 0; i < 3; ++i) result.c[i] = c[2 - i];
  return result;
}

TEST_HD int control_flow(const Inputs& in, uint64_t* o) {
  int k = 0;
  const float values[3] = {in.f, in.g, in.h};
  const Mixed mixed = shuffle_struct(in.a, in.d, values);
  o[k++] = uint32_t(mixed.a), o[k++] = bits(mixed.b), o[k++] = bits(mixed.c[in.ua % 3]);
  switch (in.ua % 7) {
    case 0:
      o[k++] = in.x;
      break;
    case 1:
      o[k++] = in.y * 3;
      break;
    case 2:
      o[k++] = in.z ^ in.x;
      break;
    case 3:
      o[k++] = in.x + in.y;
      break;
    case 4:
      o[k++] = in.x - in.z;
      break;
    case 5:
      o[k++] = ~in.x;
      break;
    default:
      o[k++] = in.y >> 3;
  }
  float sum = 0;
  for (unsigned i = 0; i < in.ub % 13; ++i) {
    if ((in.ua >> i) & 1) continue;
    sum += in.f / float(i + 1);
    if (sum > 1e6f) break;
  }
  o[k++] = bits(sum);
  return k;
}

TEST_HD void all_operations(uint64_t seed, uint64_t* o) {
  const Inputs in = make_inputs(seed);
  o += integer_operations(in, o);
  o += float_operations(in, o);
  o += conversions(in, o);
  control_flow(in, o);
}
static_assert(12 + 14 + 9 + 5 == kOperations);

__global__ void operations_kernel(uint64_t* out, int cases) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= cases) return;
  uint64_t results[kOperations];
  all_operations(i, results);
  for (int k = 0; k < kOperations; ++k) out[size_t(i) * kOperations + k] = results[k];
}

__global__ void intrinsics_kernel(uint32_t* out, int cases) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= cases) return;
  const auto x = uint32_t(mix(i)), y = uint32_t(mix(i + 777));
  uint32_t* o = out + size_t(i) * kIntrinsics;
  o[0] = __popc(x), o[1] = __clz(x >> (y & 31)), o[2] = __ffs(x), o[3] = __brev(x),
  o[4] = __byte_perm(x, y, 0x3715);
  o[5] = __funnelshift_l(x, y, y & 31), o[6] = __funnelshift_r(x, y, x & 31), o[7] = __umulhi(x, y);
  o[8] = __mulhi(int(x), int(y)), o[9] = __sad(int(x >> 1), int(y >> 1), 5), o[10] = __umul24(x, y & 0xff);
  o[11] = __float_as_uint(
      __fmul_rz(__uint_as_float((x & 0x7fffff) | 0x3f800000), __uint_as_float((y & 0x7fffff) | 0x3f800000)));
}

__global__ void math_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float a = x[i], p = fabsf(a) + 1e-3f;
  float* o = out + size_t(i) * kFunctions;
  o[0] = expf(a), o[1] = logf(p), o[2] = tanhf(a), o[3] = log1pf(p);
  o[4] = rsqrtf(p), o[5] = sinf(a), o[6] = powf(p, 1.5f), o[7] = erff(a);
  o[8] = float(log(double(p))), o[9] = float(pow(double(p), 1.5));  // in double: other instructions
}

// Each pattern is one load per lane after the tile has been filled.
template <Pattern kPattern>
__global__ void pattern_kernel(const float* in, float* out) {
  __shared__ __align__(16) float tile[2048];
  const int lane = threadIdx.x;
  for (int i = lane; i < 2048; i += 32) tile[i] = in[i];
  __syncwarp();
  float value = 0;
  if constexpr (kPattern == Pattern::kCoalesced) value = in[lane];
  if constexpr (kPattern == Pattern::kStrided) value = in[lane * 32];
  if constexpr (kPattern == Pattern::kBroadcast) value = in[7];
  if constexpr (kPattern == Pattern::kVector4) {
    const float4 v = reinterpret_cast<const float4*>(in)[lane];
    value = v.x + v.y + v.z + v.w;
  }
  if constexpr (kPattern == Pattern::kConflictFree) value = tile[lane ^ 5];
  if constexpr (kPattern == Pattern::kTwoWay) value = tile[lane * 2];
  if constexpr (kPattern == Pattern::kSixteenWay) value = tile[lane * 16];
  if constexpr (kPattern == Pattern::kPadded) value = tile[lane * 33];
  if constexpr (kPattern == Pattern::kVectorShared) {
    const float4 v = reinterpret_cast<const float4*>(tile)[lane];
    value = v.x + v.y + v.z + v.w;
  }
  out[lane] = value;
}

template <Pattern kPattern>
void launch_pattern(const float* in, float* out, cudaStream_t stream) {
  pattern_kernel<kPattern><<<1, 32, 0, stream>>>(in, out);
}

// Rows of 64 bytes put four rows on one set of banks; rows of 80 bytes touch all of them.
template <int kRowBytes>
__global__ void ldmatrix_kernel(uint32_t* out) {
  __shared__ __align__(16) unsigned char tile[32 * kRowBytes];
  for (int i = threadIdx.x; i < 32 * kRowBytes; i += 32) tile[i] = static_cast<unsigned char>(i);
  __syncwarp();
  const auto row = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x * kRowBytes));
  unsigned r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row));
  out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}

}  // namespace

void device_operations(uint64_t* out, int cases, cudaStream_t stream) {
  operations_kernel<<<(cases + 127) / 128, 128, 0, stream>>>(out, cases);
}
void host_operations(uint64_t seed, uint64_t* out) { all_operations(seed, out); }
void device_intrinsics(uint32_t* out, int cases, cudaStream_t stream) {
  intrinsics_kernel<<<(cases + 127) / 128, 128, 0, stream>>>(out, cases);
}
void math_functions(const float* x, float* out, int n, cudaStream_t stream) {
  math_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
}
void access_pattern(Pattern pattern, const float* in, float* out, cudaStream_t stream) {
  switch (pattern) {
    case Pattern::kCoalesced:
      return launch_pattern<Pattern::kCoalesced>(in, out, stream);
    case Pattern::kStrided:
      return launch_pattern<Pattern::kStrided>(in, out, stream);
    case Pattern::kBroadcast:
      return launch_pattern<Pattern::kBroadcast>(in, out, stream);
    case Pattern::kVector4:
      return launch_pattern<Pattern::kVector4>(in, out, stream);
    case Pattern::kConflictFree:
      return launch_pattern<Pattern::kConflictFree>(in, out, stream);
    case Pattern::kTwoWay:
      return launch_pattern<Pattern::kTwoWay>(in, out, stream);
    case Pattern::kSixteenWay:
      return launch_pattern<Pattern::kSixteenWay>(in, out, stream);
    case Pattern::kPadded:
      return launch_pattern<Pattern::kPadded>(in, out, stream);
    case Pattern::kVectorShared:
      return launch_pattern<Pattern::kVectorShared>(in, out, stream);
  }
}
void ldmatrix_pattern(bool padded, uint32_t* out, cudaStream_t stream) {
  if (padded) {
    ldmatrix_kernel<80><<<1, 32, 0, stream>>>(out);
  } else {
    ldmatrix_kernel<64><<<1, 32, 0, stream>>>(out);
  }
}

}  // namespace kernels
