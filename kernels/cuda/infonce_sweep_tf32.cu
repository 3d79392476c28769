// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "infonce_sweep.cuh"
#include "pair_tile_mma.cuh"

template struct pwdice::cuda::Sweeps<pwdice::cuda::Tf32Tile>;
