// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Programs whose GPU is pretended find ptxcpu's cuBLAS, unless the environment names another.
#include <cstdlib>

[[maybe_unused]] static const int set = setenv("PWDICE_CUBLAS_LIBRARY", PTXCPU_CUBLAS_PATH, /*overwrite=*/0);
