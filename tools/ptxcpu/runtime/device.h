// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Everything a translated module needs.
#pragma once

#include "access.h"
#include "async_copy.h"
#include "barrier.h"
#include "integers.h"
#include "matrix.h"
#include "module.h"
#include "numerics.h"
#include "warp.h"

namespace ptxcpu {

static constexpr uint32_t kModuleFlags =
    (PTXCPU_CHECK ? kModuleChecked : 0) | (PTXCPU_COUNT ? kModuleCounted : 0);

}  // namespace ptxcpu
