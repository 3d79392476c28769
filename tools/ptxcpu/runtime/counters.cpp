// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "counters.h"

#include <algorithm>
#include <array>

#include "access.h"

namespace ptxcpu {
namespace {

constexpr uint32_t kSectorBytes = 32;
constexpr uint32_t kBanks = 32;
constexpr uint32_t kBankBytes = 4;

// Sorts in place and returns the number of distinct values.
template <class Iterator>
size_t count_distinct(Iterator begin, Iterator end) {
  std::sort(begin, end);
  return size_t(std::unique(begin, end) - begin);
}

// One pass of the lanes [begin, end): every bank delivers one word per wavefront; lanes that want
// the same word share it.
uint32_t wavefronts_of(const WarpAccess& access, uint32_t begin, uint32_t end) {
  std::array<uint32_t, 32 * 4> words;
  size_t count = 0;
  for (uint32_t lane = begin; lane < end; ++lane) {
    if (!((access.lanes >> lane) & 1)) continue;
    const auto first = uint32_t(access.address[lane] / kBankBytes);
    const auto last = uint32_t((access.address[lane] + access.bytes - 1) / kBankBytes);
    for (uint32_t word = first; word <= last; ++word) words[count++] = word;
  }
  count = count_distinct(words.begin(), words.begin() + std::ptrdiff_t(count));
  uint32_t per_bank[kBanks] = {}, worst = 0;
  for (size_t i = 0; i < count; ++i) worst = std::max(worst, ++per_bank[words[i] % kBanks]);
  return worst;
}

void account(uint32_t queue, const WarpAccess& access, SiteTotals* totals) {
  if (!access.lanes) return;
  if (queue % 2 == 0) {
    account_global(access, &totals[queue / 2]);
  } else {
    account_shared(access, &totals[queue / 2]);
  }
}

void flush_queue(WarpCounters* counters, uint32_t index) {
  AccessQueue& queue = counters->queues[index];
  for (const WarpAccess& access : queue.waiting) account(index, access, counters->totals);
  queue.waiting.clear();
  queue.first = 0;
  std::fill(std::begin(queue.next), std::end(queue.next), 0);
}

// A lane that skipped an instruction its neighbours executed leaves entries that never fill.
constexpr size_t kMaxWaiting = 4096;

void drop_complete(WarpCounters* counters, uint32_t index, uint32_t everyone) {
  AccessQueue& queue = counters->queues[index];
  size_t done = 0;
  while (done < queue.waiting.size() && queue.waiting[done].lanes == everyone) ++done;
  if (done == 0 && queue.waiting.size() > kMaxWaiting) done = kMaxWaiting / 2;
  if (done == 0) return;
  for (size_t i = 0; i < done; ++i) account(index, queue.waiting[i], counters->totals);
  queue.waiting.erase(queue.waiting.begin(), queue.waiting.begin() + std::ptrdiff_t(done));
  queue.first += uint32_t(done);
}

}  // namespace

void account_global(const WarpAccess& access, SiteTotals* totals) {
  std::array<uint64_t, 32 * 2> sectors;
  std::array<uint64_t, 32> starts;
  size_t sector_count = 0, start_count = 0;
  for (uint32_t lanes = access.lanes; lanes; lanes &= lanes - 1) {
    const uint64_t address = access.address[__builtin_ctz(lanes)];
    starts[start_count++] = address;
    sectors[sector_count++] = address / kSectorBytes;
    const uint64_t last = (address + access.bytes - 1) / kSectorBytes;
    if (last != address / kSectorBytes) sectors[sector_count++] = last;
  }
  totals->global_requests += 1;
  totals->global_bytes += uint64_t(start_count) * access.bytes;
  totals->sectors += count_distinct(sectors.begin(), sectors.begin() + std::ptrdiff_t(sector_count));
  const size_t distinct = count_distinct(starts.begin(), starts.begin() + std::ptrdiff_t(start_count));
  totals->ideal_sectors += (distinct * access.bytes + kSectorBytes - 1) / kSectorBytes;
}

// Wide accesses are served by halves (8 bytes) or quarters (16 bytes) of the warp, at best one
// wavefront each. ldmatrix is the same: eight rows of 16 bytes are a quarter warp.
void account_shared(const WarpAccess& access, SiteTotals* totals) {
  const uint32_t phases = access.bytes >= 16 ? 4 : access.bytes == 8 ? 2 : 1;
  const uint32_t lanes_per_phase = 32 / phases;
  totals->shared_requests += 1;
  totals->shared_bytes += uint64_t(__builtin_popcount(access.lanes)) * access.bytes;
  for (uint32_t begin = 0; begin < 32; begin += lanes_per_phase) {
    const uint32_t wavefronts = wavefronts_of(access, begin, begin + lanes_per_phase);
    totals->wavefronts += wavefronts;
    totals->ideal_wavefronts += wavefronts > 0;
  }
}

void count_access(Thread* thread, int site, Space space, uint64_t address, uint32_t bytes) {
  WarpCounters* counters = thread->warp->counters;
  const uint32_t index = uint32_t(site) * 2 + (space == Space::kShared);
  AccessQueue& queue = counters->queues[index];
  if (queue.waiting.empty() && queue.first == 0) counters->touched.push_back(index);
  const uint32_t number = queue.next[thread->lane]++;
  if (number < queue.first) return;  // its companions were given up; the access is lost to the count
  if (number - queue.first >= queue.waiting.size()) queue.waiting.resize(number - queue.first + 1);
  WarpAccess& access = queue.waiting[number - queue.first];
  access.address[thread->lane] = address;
  access.lanes |= 1u << thread->lane;
  access.bytes = bytes;
  if (access.lanes == live_lanes(thread->warp) || queue.waiting.size() > kMaxWaiting)
    drop_complete(counters, index, live_lanes(thread->warp));
}

void flush_warp_counters(Warp* warp) {
  WarpCounters* counters = warp->counters;
  if (!counters) return;
  for (const uint32_t index : counters->touched) flush_queue(counters, index);
  counters->touched.clear();
}

}  // namespace ptxcpu
