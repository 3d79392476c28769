// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Any bytes as a data file: read in full and made into transitions, or refused in a sentence.
#include <cstdint>
#include <span>

#include "../../datasets/episode_file.h"
#include "../../kernels/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pwdice;
  try {
    const Hdf5Reader file(std::as_bytes(std::span(data, size)), "fuzz",
                          {.max_bytes = 1 << 20, .max_children = 1000});
    const Episodes episodes = read_episodes(file);
    for (const TransitionRule rule : {TransitionRule::Reference, TransitionRule::Exact}) {
      build_transitions(episodes, rule, AbsorbingRule::PwDice, 1000);
    }
  } catch (const Error&) {
  }
  return 0;
}
