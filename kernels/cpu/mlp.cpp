// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Networks on the CPU. A block of rows passes through all layers while it is in L2, so that first layers and
// heads, which are bound by memory when they are ops of their own, cost next to nothing.
//   forward     W^T of every layer packed in panels once; chunks of rows, layer after layer
//   backward    W packed; slices of rows (row_slices), in blocks of at most kPassRows, from the last layer to
//               the first: sums for d_W and d_b, then d of the layer below in place of its outputs; a head with the
//               ReLU layer below it by sums of selected rows, where the block allows it (ReluHead)
// Cost  6 n sum(in out) flop for both, 2 n in out less when d_x is not wanted; where rows are selected, the layer below
//       the head has n in out / 2 additions instead of 4 n in out flop. Every y is written once and
//       read once, and 2 + slices times the parameters (once more for a block that a thread helped with).

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mlp.cpp"
// clang-format off
#include "hwy/foreach_target.h"
#include "gemm_slice-inl.h"
#include "linear-inl.h"
#include "relu_head-inl.h"
// clang-format on

#include "../backends.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

bool is_head(const MlpLayer& layer) { return layer.w.rows <= kFewOutputs; }

// The weights in panels, from layer `lowest` on. Heads go forward by dot products and need none for that.
class PackedLayers {
 public:
  PackedLayers(Context& ctx, std::span<const MlpLayer> layers, Operand as, size_t lowest, const char* op) {
    ToPack list[kMlpMaxLayers];
    size_t count = 0;
    for (size_t l = lowest; l < layers.size(); ++l) {
      if (as == Operand::Transposed && is_head(layers[l])) continue;
      list[count] = to_pack(ctx, layers[l].w, as, op);
      panels_[l] = list[count++].panels();
    }
    pack_all(ctx.pool(), {list, count});
  }
  const Panels& operator[](size_t l) const { return panels_[l]; }

 private:
  Panels panels_[kMlpMaxLayers];
};

// Each thread's chunks from its last to its first: the backward pass, which begins with the first rows, then finds
// what was written last, and not what the cache has long lost.
int64_t backwards(int64_t chunks, int64_t threads, int64_t chunk) {
  for (int64_t t = 0; t < threads; ++t) {
    const Range own = even_range(chunks, threads, t);
    if (chunk < own.end) return own.begin + own.end - 1 - chunk;
  }
  return chunk;
}

void forward_rows(const MlpForward& op, const PackedLayers& packed, Range rows) {
  Mat<const float> x = op.x;
  for (size_t l = 0; l < op.layers.size(); ++l) {
    const MlpLayer& layer = op.layers[l];
    with_activation(layer.act, [&](auto act) HWY_ATTR {
      const BiasAndActivation<act()> sink{layer.b, layer.y};
      is_head(layer) ? dot_forward_rows(x, layer.w, rows, sink) : product_rows(x, packed[l], rows, sink);
    });
    x = layer.y;
  }
}

// The last two layers together, where ReluHead can.
bool backward_head(const MlpBackward& op, const SliceSums& sums, int64_t place, Range rows, bool add) {
  const size_t head = op.layers.size() - 1, relu = head - 1;
  const auto block = [&](Mat<const float> m) { return m.slice_rows(rows.begin, rows.end - rows.begin); };
  const Mat<const float> d_pre = block(op.d_pre);
  const Mat<float> below = op.layers[relu - 1].y.slice_rows(rows.begin, d_pre.rows);
  ReluHead both;
  if (!both.read(d_pre, block(op.layers[relu].y), below)) return false;
  add_column_sums(d_pre.data, d_pre.stride, d_pre.rows, d_pre.cols, sums.d_b(place, head));
  const ReluHead::Layers layers{op.layers[head].w,
                                op.layers[relu].w,
                                sums.d_w(place, head),
                                sums.d_w(place, relu),
                                below,
                                sums.d_b(place, relu),
                                add};
  both.write(d_pre.rows, layers);
  return true;
}

void backward_block(const MlpBackward& op, const PackedLayers& packed, bool may_select, const SliceSums& sums,
                    int64_t place, Range rows, bool add) {
  const auto block = [&](Mat<const float> m) { return m.slice_rows(rows.begin, rows.end - rows.begin); };
  Mat<const float> d = op.d_pre;
  size_t left = op.layers.size();
  if (may_select && backward_head(op, sums, place, rows, add)) left -= 2, d = op.layers[left - 1].y;
  for (size_t l = left; l-- > 0;) {
    const Mat<const float> input = l == 0 ? op.x : Mat<const float>(op.layers[l - 1].y);
    sums.add(place, l, block(d), {block(input)}, add);
    add_column_sums(block(d).data, d.stride, rows.end - rows.begin, d.cols, sums.d_b(place, l));
    const Mat<float> below = l == 0 ? op.d_x : op.layers[l - 1].y;
    if (l == 0 && below.data == nullptr) return;
    with_activation(l == 0 ? Activation::None : op.layers[l - 1].act, [&](auto act) HWY_ATTR {
      product_rows(d, packed[l], rows, TimesSlope<act()>{input, below});
    });
    d = below;
  }
}

}  // namespace

void mlp_forward_simd(Context& ctx, const MlpForward& op) {
  const ScratchScope scope(ctx.scratch());
  const PackedLayers packed(ctx, op.layers, Operand::Transposed, 0, "mlp_forward");
  const RowParts chunks = row_chunks(op.x.rows);
  const int64_t threads = ctx.threads();
  ctx.pool().parallel_for(chunks.count, [&](int64_t chunk, int) HWY_ATTR {
    forward_rows(op, packed, chunks[backwards(chunks.count, threads, chunk)]);
  });
}

void mlp_backward_simd(Context& ctx, const MlpBackward& op) {
  const ScratchScope scope(ctx.scratch());
  const size_t lowest = op.d_x.data == nullptr ? 1 : 0;  // that d passes through
  const PackedLayers packed(ctx, op.layers, Operand::Plain, lowest, "mlp_backward");
  SliceSums sums(ctx, op.x.rows, kPassRows, op.gradients, "mlp_backward");
  const bool may_select = ReluHead::suits(op.layers, op.x.rows);
  sums.run(ctx.pool(), [&](int64_t place, Range rows, bool add, int)
                           HWY_ATTR { backward_block(op, packed, may_select, sums, place, rows, add); });
  sums.add_up(ctx.pool());
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pwdice::cpu {

HWY_EXPORT(mlp_forward_simd);
HWY_EXPORT(mlp_backward_simd);

void mlp_forward(Context& ctx, const MlpForward& op) {
  if (op.x.rows > kFewRows) return HWY_DYNAMIC_DISPATCH(mlp_forward_simd)(ctx, op);
  Mat<const float> x = op.x;
  for (const MlpLayer& layer : op.layers) {
    cpu::linear_forward(ctx, {x, layer.w, layer.b, layer.act, layer.y});
    x = layer.y;
  }
}

void mlp_backward(Context& ctx, const MlpBackward& op) { HWY_DYNAMIC_DISPATCH(mlp_backward_simd)(ctx, op); }

}  // namespace pwdice::cpu
#endif
