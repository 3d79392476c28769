// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

namespace pwdice::planted {

// Launches all kernels but the spilling one, which only ptxas has to see. False if one of them failed.
bool run();

}  // namespace pwdice::planted
