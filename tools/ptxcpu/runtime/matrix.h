// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Matrix instructions, executed once per warp with the fragment layouts of the PTX ISA.
#pragma once

#include <cstdint>

#include "access.h"
#include "warp.h"

namespace ptxcpu {

enum class Element : uint8_t { kHalf, kBf16, kTf32, kInt8, kUint8, kDouble };

struct MatrixSlot {
  uint8_t* row;  // of 8 b16 elements; null for lanes whose address is not used
  uint32_t value[4];
  int count;
  bool transposed;
};

struct MmaSlot {
  uint64_t a[8], b[4], c[4], d[4];
  int k;
  Element a_type, b_type;
  bool c_half, d_half;
};

// Our own fragment layout: element e of a tile lives in lane e % 32, slot e / 32, packed by size.
struct WmmaSlot {
  uint32_t a[8], b[8], c[8], d[8];
  int m, n, k;
  Element type;
  bool c_half, d_half;
};

void load_matrix(Thread* thread, int site, MatrixSlot* slot);
void store_matrix(Thread* thread, int site, MatrixSlot* slot);
void multiply_matrices(Thread* thread, int site, MmaSlot* slot);
void multiply_wmma(Thread* thread, int site, WmmaSlot* slot);

inline void set_accumulators(MmaSlot& slot, bool c_half, bool d_half) {
  slot.c_half = c_half;
  slot.d_half = d_half;
}

// Lanes 0-7 address the rows of the first 8x8 matrix, 8-15 those of the second, and so on.
static inline uint8_t* matrix_row(Thread* T, int site, uint64_t address, int count, bool generic,
                                  Access kind) {
  if (int(T->lane) >= 8 * count) return nullptr;
  if (generic) address -= reinterpret_cast<uint64_t>(T->block->shared);
  return access_shared(T, site, address, 16, kind);
}

using AccessFunction = uint8_t* (*)(Thread*, int, uint64_t, uint32_t, Access);

inline uint64_t fragment_address(uint64_t base, uint32_t stride, uint32_t columns, bool row_major,
                                 uint32_t element, uint32_t size) {
  const uint32_t row = element / columns, column = element % columns;
  return base + (row_major ? uint64_t(row) * stride + column : uint64_t(column) * stride + row) * size;
}

template <class V>
static inline void load_fragment(Thread* T, int site, AccessFunction access, uint64_t base, uint32_t stride,
                                 uint32_t rows, uint32_t columns, bool row_major, uint32_t* fragment) {
  constexpr uint32_t kPerRegister = 4 / sizeof(V);
  warp_sync(T, site, 0xffffffffu);
  for (uint32_t slot = 0; slot < rows * columns / 32; ++slot) {
    const uint64_t address =
        fragment_address(base, stride, columns, row_major, slot * 32 + T->lane, sizeof(V));
    const V value = peek<V>(access(T, site, address, sizeof(V), Access::kRead));
    fragment[slot / kPerRegister] |= uint32_t(value) << (8 * sizeof(V) * (slot % kPerRegister));
  }
  warp_sync(T, site, 0xffffffffu);
}

template <class V>
static inline void store_fragment(Thread* T, int site, AccessFunction access, uint64_t base, uint32_t stride,
                                  uint32_t rows, uint32_t columns, bool row_major, const uint32_t* fragment) {
  constexpr uint32_t kPerRegister = 4 / sizeof(V);
  warp_sync(T, site, 0xffffffffu);
  for (uint32_t slot = 0; slot < rows * columns / 32; ++slot) {
    const uint64_t address =
        fragment_address(base, stride, columns, row_major, slot * 32 + T->lane, sizeof(V));
    const uint32_t word = fragment[slot / kPerRegister] >> (8 * sizeof(V) * (slot % kPerRegister));
    poke<V>(access(T, site, address, sizeof(V), Access::kWrite), V(word));
  }
  warp_sync(T, site, 0xffffffffu);
}

}  // namespace ptxcpu
