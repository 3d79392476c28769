// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "matrix.h"

#include <algorithm>
#include <cmath>

#include "fault.h"
#include "numerics.h"

namespace ptxcpu {
namespace {

constexpr uint32_t kWholeWarp = 0xffffffffu;
constexpr int kMaxDepth = 32;

// Matrix instructions are .aligned: a partial warp is an error even where checks are off.
bool is_whole_warp(Warp* warp, uint32_t lanes) {
  if (lanes == kWholeWarp) return true;
  const int lane = __builtin_ctz(lanes);
  report_fault(warp->threads[lane], warp->site[lane], Fault::kWarp,
               "matrix instruction by a partial warp (%08x)", lanes);
  return false;
}

template <class Slot>
Slot& slot_of(Warp* warp, int lane) {
  return *static_cast<Slot*>(warp->slot[lane]);
}

// Which row pointer, and which element of it, is the low or high half of a lane's register.
struct MatrixElement {
  int row, column;
};
MatrixElement matrix_element(bool transposed, int lane, int half) {
  const int group = lane / 4, pair = (lane % 4) * 2 + half;
  return transposed ? MatrixElement{pair, group} : MatrixElement{group, pair};
}

void collect_load(Warp* warp, uint32_t lanes) {
  if (!is_whole_warp(warp, lanes)) return;
  const auto& first = slot_of<MatrixSlot>(warp, 0);
  for (int matrix = 0; matrix < first.count; ++matrix) {
    for (int lane = 0; lane < 32; ++lane) {
      uint32_t word = 0;
      for (int half = 0; half < 2; ++half) {
        const auto [row, column] = matrix_element(first.transposed, lane, half);
        const uint8_t* source = slot_of<MatrixSlot>(warp, matrix * 8 + row).row + column * 2;
        word |= uint32_t(peek<uint16_t>(source)) << (16 * half);
      }
      slot_of<MatrixSlot>(warp, lane).value[matrix] = word;
    }
  }
}

void collect_store(Warp* warp, uint32_t lanes) {
  if (!is_whole_warp(warp, lanes)) return;
  const auto& first = slot_of<MatrixSlot>(warp, 0);
  for (int matrix = 0; matrix < first.count; ++matrix) {
    for (int lane = 0; lane < 32; ++lane) {
      const uint32_t word = slot_of<MatrixSlot>(warp, lane).value[matrix];
      for (int half = 0; half < 2; ++half) {
        const auto [row, column] = matrix_element(first.transposed, lane, half);
        poke<uint16_t>(slot_of<MatrixSlot>(warp, matrix * 8 + row).row + column * 2,
                       uint16_t(word >> (16 * half)));
      }
    }
  }
}

int elements_per_register(Element type) {
  switch (type) {
    case Element::kHalf:
    case Element::kBf16:
      return 2;
    case Element::kInt8:
    case Element::kUint8:
      return 4;
    case Element::kTf32:
    case Element::kDouble:
      return 1;
  }
  return 1;
}

double element_value(Element type, uint64_t word, int index) {
  switch (type) {
    case Element::kHalf:
      return half_to_float(uint16_t(word >> (16 * index)));
    case Element::kBf16:
      return bf16_to_float(uint16_t(word >> (16 * index)));
    case Element::kTf32:
      return as_f32(uint32_t(word) & 0xffffe000u);  // the device ignores the low bits
    case Element::kInt8:
      return int8_t(word >> (8 * index));
    case Element::kUint8:
      return uint8_t(word >> (8 * index));
    case Element::kDouble:
      return as_f64(word);
  }
  return 0;
}

bool is_integer(Element type) { return type == Element::kInt8 || type == Element::kUint8; }

struct Operands {
  double a[16][kMaxDepth];
  double b[kMaxDepth][8];
};

// m16n8k*: lane = 4 * group + t. A register of `a` holds the k elements t*e.. of row group (or
// group + 8 for odd registers); `b` the same k elements of column group.
void gather_operands(Warp* warp, int k, Operands* operands) {
  const auto& first = slot_of<MmaSlot>(warp, 0);
  const Element a_type = first.a_type, b_type = first.b_type;
  const int per = elements_per_register(a_type), span = 4 * per, chunks = k / span;
  for (int lane = 0; lane < 32; ++lane) {
    const auto& slot = slot_of<MmaSlot>(warp, lane);
    const int group = lane / 4, t = lane % 4;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int i = 0; i < per; ++i) {
        const int column = chunk * span + t * per + i;
        operands->a[group][column] = element_value(a_type, slot.a[2 * chunk], i);
        operands->a[group + 8][column] = element_value(a_type, slot.a[2 * chunk + 1], i);
        operands->b[column][group] = element_value(b_type, slot.b[chunk], i);
      }
    }
  }
}

double accumulator(const MmaSlot& slot, int index) {
  if (is_integer(slot.a_type)) return int32_t(slot.c[index]);
  if (!slot.c_half) return as_f32(uint32_t(slot.c[index]));
  return half_to_float(uint16_t(slot.c[index / 2] >> (16 * (index % 2))));
}

// Element q of a lane's accumulator: rows group and group + 8, columns 2t and 2t + 1.
void scatter_results(Warp* warp, const double (*sums)[8]) {
  for (int lane = 0; lane < 32; ++lane) {
    auto& slot = slot_of<MmaSlot>(warp, lane);
    const int group = lane / 4, t = lane % 4;
    double results[4];
    for (int q = 0; q < 4; ++q) results[q] = sums[group + 8 * (q / 2)][2 * t + q % 2] + accumulator(slot, q);
    if (is_integer(slot.a_type)) {
      for (int q = 0; q < 4; ++q) slot.d[q] = uint32_t(int64_t(results[q]));
    } else if (slot.d_half) {
      for (int q = 0; q < 2; ++q)
        slot.d[q] = to_half(results[2 * q]) | (uint32_t(to_half(results[2 * q + 1])) << 16);
    } else {
      for (int q = 0; q < 4; ++q) slot.d[q] = bits_of(float(results[q]));
    }
  }
}

void multiply_doubles(Warp* warp) {  // m8n8k4
  double a[8][4], b[4][8];
  for (int lane = 0; lane < 32; ++lane) {
    a[lane / 4][lane % 4] = as_f64(slot_of<MmaSlot>(warp, lane).a[0]);
    b[lane % 4][lane / 4] = as_f64(slot_of<MmaSlot>(warp, lane).b[0]);
  }
  for (int lane = 0; lane < 32; ++lane) {
    auto& slot = slot_of<MmaSlot>(warp, lane);
    for (int i = 0; i < 2; ++i) {
      double sum = as_f64(slot.c[i]);
      for (int k = 0; k < 4; ++k) sum = std::fma(a[lane / 4][k], b[k][(lane % 4) * 2 + i], sum);
      slot.d[i] = bits_of(sum);
    }
  }
}

void collect_mma(Warp* warp, uint32_t lanes) {
  if (!is_whole_warp(warp, lanes)) return;
  const auto& first = slot_of<MmaSlot>(warp, 0);
  if (first.a_type == Element::kDouble) return multiply_doubles(warp);
  const int depth = first.k;
  Operands operands;
  gather_operands(warp, depth, &operands);
  double sums[16][8] = {};
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < depth; ++k)
      for (int column = 0; column < 8; ++column)
        sums[row][column] += operands.a[row][k] * operands.b[k][column];
  scatter_results(warp, sums);
}

double fragment_value(Element type, const uint32_t* registers, int slot) {
  const int per = elements_per_register(type);
  return element_value(type, registers[slot / per], slot % per);
}

void store_wmma_result(WmmaSlot& slot, int index, double sum) {
  if (is_integer(slot.type)) {
    slot.d[index] = uint32_t(int64_t(sum) + int32_t(slot.c[index]));
    return;
  }
  const int shift = 16 * (index % 2);
  sum += slot.c_half ? half_to_float(uint16_t(slot.c[index / 2] >> shift)) : as_f32(slot.c[index]);
  if (slot.d_half) {
    slot.d[index / 2] = (slot.d[index / 2] & ~(0xffffu << shift)) | (uint32_t(to_half(sum)) << shift);
  } else {
    slot.d[index] = bits_of(float(sum));
  }
}

void collect_wmma(Warp* warp, uint32_t lanes) {
  if (!is_whole_warp(warp, lanes)) return;
  const auto& first = slot_of<WmmaSlot>(warp, 0);
  const int m = first.m, n = first.n, k = first.k;
  const Element type = first.type;
  double a[32 * 16], b[32 * 16];
  for (int e = 0; e < m * k; ++e) a[e] = fragment_value(type, slot_of<WmmaSlot>(warp, e % 32).a, e / 32);
  for (int e = 0; e < k * n; ++e) b[e] = fragment_value(type, slot_of<WmmaSlot>(warp, e % 32).b, e / 32);
  for (int e = 0; e < m * n; ++e) {
    double sum = 0;
    for (int i = 0; i < k; ++i) sum += a[e / n * k + i] * b[i * n + e % n];
    store_wmma_result(slot_of<WmmaSlot>(warp, e % 32), e / 32, sum);
  }
}

}  // namespace

void load_matrix(Thread* thread, int site, MatrixSlot* slot) {
  join_collective(thread, site, kWholeWarp, slot, collect_load, true);
}
void store_matrix(Thread* thread, int site, MatrixSlot* slot) {
  join_collective(thread, site, kWholeWarp, slot, collect_store, true);
}
void multiply_matrices(Thread* thread, int site, MmaSlot* slot) {
  join_collective(thread, site, kWholeWarp, slot, collect_mma, true);
}
void multiply_wmma(Thread* thread, int site, WmmaSlot* slot) {
  join_collective(thread, site, kWholeWarp, slot, collect_wmma, true);
}

}  // namespace ptxcpu
