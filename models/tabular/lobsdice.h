// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "data.h"
#include "solution.h"

namespace pwdice::tabular {

// LobsDICE on state pairs, d^I(s,s') = sum_a d^I(s,a) T_hat(s'|s,a), R = log((d^E_ss + delta) / (d^I_ss +
// delta)):
//   min_V (1-gamma) p0 . V + (1+alpha) sum d^I_ss exp((R + gamma V' - V) / (1+alpha) - 1)
//   pi(a|s) ~ d^I(s,a) sum_s' T_hat(s'|s,a) exp((R + gamma V' - V) / (1+alpha))
struct LobsdiceOptions {
  double alpha = 0.1;
  double delta = 1e-4;
};

// The method as intended: expert pairs and value function in use. This is our reading of it.
Solution solve_lobsdice(const Problem& problem, const LobsdiceOptions& options = {});

// The closed form behind the published LobsDICE numbers: the expert pairs were zero and V cancelled, so the
// policy does not depend on the expert: pi(a|s) ~ d^I(s,a) sum_s' T_hat(s'|s,a)
// (delta/(d^I_ss+delta))^(1/(1+alpha)).
constexpr LobsdiceOptions kLobsdiceAsRun{0.01, 1e-4};
Solution lobsdice_as_run(const Problem& problem, const LobsdiceOptions& options = kLobsdiceAsRun);

}  // namespace pwdice::tabular
