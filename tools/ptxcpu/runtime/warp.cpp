// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "warp.h"

#include <algorithm>

#include "counters.h"
#include "fault.h"
#include "fiber.h"
#include "numerics.h"
#include "options.h"

namespace ptxcpu {
namespace {

template <class Function>
void for_each_lane(uint32_t lanes, Function function) {
  for (; lanes; lanes &= lanes - 1) function(uint32_t(__builtin_ctz(lanes)));
}

// Lanes waiting with `lane` if all that its mask names have arrived, otherwise 0.
uint32_t ready_lanes(const Warp* warp, uint32_t lane) {
  const uint32_t needed = warp->mask[lane] & live_lanes(warp);
  if ((warp->waiting & needed) != needed) return 0;
  bool agree = true;
  for_each_lane(needed, [&](uint32_t other) {
    agree &= warp->mask[other] == warp->mask[lane] && warp->collective[other] == warp->collective[lane];
    agree &= !warp->same_site[lane] || warp->site[other] == warp->site[lane];
  });
  return agree ? needed : 0;
}

void run_collective(Warp* warp, uint32_t lane, uint32_t lanes) {
  warp->collective[lane](warp, lanes);
  warp->waiting &= ~lanes;
  ++warp->epoch;
  if (lanes == live_lanes(warp)) flush_warp_counters(warp);
  for_each_lane(lanes, [&](uint32_t other) { warp->threads[other]->state = State::kReady; });
}

bool names_exited_lane(const Warp* warp, uint32_t mask) { return (mask & warp->exited) != 0; }

bool exits_are_checked(const Thread* thread) {
  return (thread->block->launch->module->flags & kModuleChecked) && options().check_exited_lanes;
}

// ---- slots and what is done with them -------------------------------------------------------------

struct ShuffleSlot {
  uint32_t value, lane, clamp;
  Shuffle mode;
  uint32_t result;
  bool in_range;
};

// Source lane of a shuffle as the PTX ISA defines it; false where it leaves the segment.
bool source_lane(const ShuffleSlot& slot, uint32_t lane, int* source) {
  const uint32_t offset = slot.lane & 31, clamp = slot.clamp & 31, segment = (slot.clamp >> 8) & 31;
  const int last = int((lane & segment) | (clamp & ~segment));
  const uint32_t first = lane & segment;
  switch (slot.mode) {
    case Shuffle::k_up:
      *source = int(lane) - int(offset);
      return *source >= last;
    case Shuffle::k_down:
      *source = int(lane + offset);
      return *source <= last;
    case Shuffle::k_bfly:
      *source = int(lane ^ offset);
      return *source <= last;
    case Shuffle::k_idx:
      *source = int(first | (offset & ~segment));
      return *source <= last;
  }
  return false;
}

void collect_shuffle(Warp* warp, uint32_t lanes) {
  uint32_t values[32];
  for_each_lane(lanes, [&](uint32_t l) { values[l] = static_cast<ShuffleSlot*>(warp->slot[l])->value; });
  for_each_lane(lanes, [&](uint32_t l) {
    auto& slot = *static_cast<ShuffleSlot*>(warp->slot[l]);
    int source = 0;
    slot.in_range = source_lane(slot, l, &source);
    if (!slot.in_range) source = int(l);
    const bool present = (lanes >> source) & 1;
    if (!present && exits_are_checked(warp->threads[l])) {
      report_fault(warp->threads[l], warp->site[l], Fault::kWarp,
                   "shuffle reads lane %d, which is not in mask %08x or has exited", source, lanes);
    }
    slot.result = present ? values[source] : 0xdeadbeefu;
  });
}

struct VoteSlot {
  bool value;
  Vote mode;
  uint32_t result;
};

void collect_vote(Warp* warp, uint32_t lanes) {
  uint32_t ballot = 0;
  for_each_lane(lanes,
                [&](uint32_t l) { ballot |= uint32_t(static_cast<VoteSlot*>(warp->slot[l])->value) << l; });
  for_each_lane(lanes, [&](uint32_t l) {
    auto& slot = *static_cast<VoteSlot*>(warp->slot[l]);
    switch (slot.mode) {
      case Vote::k_all:
        slot.result = ballot == lanes;
        break;
      case Vote::k_any:
        slot.result = ballot != 0;
        break;
      case Vote::k_uni:
        slot.result = ballot == 0 || ballot == lanes;
        break;
      case Vote::k_ballot:
        slot.result = ballot;
        break;
    }
  });
}

struct MatchSlot {
  uint64_t value;
  bool all;
  uint32_t result;
  bool equal;
};

void collect_match(Warp* warp, uint32_t lanes) {
  for_each_lane(lanes, [&](uint32_t l) {
    auto& slot = *static_cast<MatchSlot*>(warp->slot[l]);
    uint32_t same = 0;
    for_each_lane(lanes, [&](uint32_t other) {
      same |= uint32_t(static_cast<MatchSlot*>(warp->slot[other])->value == slot.value) << other;
    });
    slot.equal = !slot.all || same == lanes;
    slot.result = slot.equal ? same : 0;
  });
}

struct ReduxSlot {
  uint32_t value;
  Redux operation;
  uint32_t result;
};

uint32_t combine(Redux operation, uint32_t a, uint32_t b) {
  switch (operation) {
    case Redux::k_add:
      return a + b;
    case Redux::k_min_u32:
      return std::min(a, b);
    case Redux::k_max_u32:
      return std::max(a, b);
    case Redux::k_min_s32:
      return uint32_t(std::min(int32_t(a), int32_t(b)));
    case Redux::k_max_s32:
      return uint32_t(std::max(int32_t(a), int32_t(b)));
    case Redux::k_min_f32:
      return bits_of(float_min(as_f32(a), as_f32(b)));
    case Redux::k_max_f32:
      return bits_of(float_max(as_f32(a), as_f32(b)));
    case Redux::k_and:
      return a & b;
    case Redux::k_or:
      return a | b;
    case Redux::k_xor:
      return a ^ b;
  }
  return 0;
}

void collect_redux(Warp* warp, uint32_t lanes) {
  const uint32_t first = uint32_t(__builtin_ctz(lanes));
  const auto& slot = *static_cast<ReduxSlot*>(warp->slot[first]);
  uint32_t result = slot.value;
  for_each_lane(lanes & (lanes - 1), [&](uint32_t l) {
    result = combine(slot.operation, result, static_cast<ReduxSlot*>(warp->slot[l])->value);
  });
  for_each_lane(lanes, [&](uint32_t l) { static_cast<ReduxSlot*>(warp->slot[l])->result = result; });
}

void collect_nothing(Warp*, uint32_t) {}

}  // namespace

void join_collective(Thread* thread, int site, uint32_t mask, void* slot, Collective collective,
                     bool same_site) {
  Warp* warp = thread->warp;
  const uint32_t lane = thread->lane;
  if (!((mask >> lane) & 1))
    fault(thread, site, Fault::kWarp, "warp operation by lane %u, which its mask %08x does not name", lane,
          mask);
  if (names_exited_lane(warp, mask) && exits_are_checked(thread))
    fault(thread, site, Fault::kWarp, "warp operation names exited lanes %08x in mask %08x",
          mask & warp->exited, mask);
  warp->mask[lane] = mask;
  warp->site[lane] = site;
  warp->slot[lane] = slot;
  warp->collective[lane] = collective;
  warp->same_site[lane] = same_site;
  warp->waiting |= 1u << lane;
  if (const uint32_t lanes = ready_lanes(warp, lane)) {
    run_collective(warp, lane, lanes);
    if (thread->block->launch->failed) yield_to_scheduler(thread);
    return;
  }
  thread->state = State::kWaitsForWarp;
  thread->site = site;
  yield_to_scheduler(thread);
}

void release_after_exit(Warp* warp) {
  for (uint32_t waiting = warp->waiting; waiting;) {
    const uint32_t lane = uint32_t(__builtin_ctz(waiting));
    Thread* thread = warp->threads[lane];
    if (names_exited_lane(warp, warp->mask[lane]) && exits_are_checked(thread)) {
      report_fault(thread, warp->site[lane], Fault::kWarp,
                   "warp operation waits for lanes %08x, which have exited", warp->mask[lane] & warp->exited);
      return;
    }
    const uint32_t lanes = ready_lanes(warp, lane);
    if (lanes) run_collective(warp, lane, lanes);
    waiting &= lanes ? ~lanes : waiting - 1;
  }
}

void warp_sync(Thread* thread, int site, uint32_t mask) {
  join_collective(thread, site, mask, nullptr, collect_nothing, false);
}

uint32_t shuffle(Thread* thread, int site, Shuffle mode, uint32_t value, uint32_t lane, uint32_t clamp,
                 uint32_t mask, bool* in_range) {
  ShuffleSlot slot{value, lane, clamp, mode, 0, false};
  join_collective(thread, site, mask, &slot, collect_shuffle, false);
  *in_range = slot.in_range;
  return slot.result;
}

uint32_t vote(Thread* thread, int site, Vote mode, bool value, uint32_t mask) {
  VoteSlot slot{value, mode, 0};
  join_collective(thread, site, mask, &slot, collect_vote, false);
  return slot.result;
}

uint32_t match(Thread* thread, int site, bool all, uint64_t value, uint32_t mask, bool* equal) {
  MatchSlot slot{value, all, 0, false};
  join_collective(thread, site, mask, &slot, collect_match, false);
  *equal = slot.equal;
  return slot.result;
}

uint32_t reduce(Thread* thread, int site, Redux operation, uint32_t value, uint32_t mask) {
  ReduxSlot slot{value, operation, 0};
  join_collective(thread, site, mask, &slot, collect_redux, false);
  return slot.result;
}

}  // namespace ptxcpu
