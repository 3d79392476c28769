// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
/* C interface to what only a pretended device can tell: reports, counters, fault injection. */
#ifndef PTXCPU_H
#define PTXCPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reports ---- */

/* The last fault as one sentence (what, kernel, source line, block, thread); "" if there was none.
   Valid until the next fault or reset. */
const char* ptxcpu_last_report(void);
uint64_t ptxcpu_report_count(void);

/* Forgets the sticky error, reports, injected faults and call counts; memory stays allocated. */
void ptxcpu_reset(void);

/* ---- settings; the environment gives their first values ---- */

/* order: "forward", "reversed" or "shuffled". Returns 0, or -1 for an unknown name. */
int ptxcpu_set_order(const char* order, uint64_t seed);
/* name: shared_races, warp_races, shared_init, exited, global_init, block_races. 0, or -1 if unknown. */
int ptxcpu_set_check(const char* name, int enabled);
/* How many devices there are, all alike. Streams belong to the device that was current when they were made. */
void ptxcpu_set_device_count(int count);
/* What cudaDriverGetVersion answers, 12040 for 12.4; 0: the version of the runtime. */
void ptxcpu_set_driver_version(int version);
/* Blocks that do nothing but poll memory for so long are given up as deadlocked. */
void ptxcpu_set_timeout(double seconds);

/* ---- fault injection ---- */

/* Makes the nth call (from now, counting from 1) of a runtime function fail with the cudaError_t.
   call "*" means any function; nth 0 means every call. Errors that a device does not recover from
   stay until ptxcpu_reset(). Also: PTXCPU_INJECT="cudaMalloc:3:2,*:0:35". */
void ptxcpu_inject(const char* call, int nth, int error);

/* How often a runtime function was called, for tests that forbid allocation or synchronisation. "default stream":
   how often work was given to one of the default streams. */
uint64_t ptxcpu_call_count(const char* call);

/* ---- counters of modules built with COUNT ---- */

/* Counting costs about as much as executing; PTXCPU_COUNT=0 begins without it. */
void ptxcpu_set_counting(int enabled);

/* Executes only so many blocks of each launch, for counting what equal blocks do at sizes that would take too long;
   0 executes all. The other blocks' results are missing, and their share of the counts: see `blocks` in the JSON. */
void ptxcpu_set_block_limit(uint32_t blocks);

/* One memory instruction. Requests are warp-wide; sectors are 32 bytes of global memory; wavefronts
   are passes over the 32 banks of shared memory. Perfect use has sectors == ideal_sectors and
   wavefronts == ideal_wavefronts. */
typedef struct PtxcpuSite {
  const char* opcode;
  const char* file;
  uint32_t line, ptx_line;
  uint64_t global_requests, global_bytes, sectors, ideal_sectors;
  uint64_t shared_requests, shared_bytes, wavefronts, ideal_wavefronts;
} PtxcpuSite;

/* Kernels that ran, accumulated over launches; names are demangled. */
size_t ptxcpu_kernel_count(void);
const char* ptxcpu_kernel_name(size_t kernel);
uint64_t ptxcpu_kernel_launches(size_t kernel);

/* Executed instructions of a class ("fma", "mufu.ex2", "mma.m16n8k8.tf32", "load.global", "barrier",
   "shuffle", ...). Counted per thread, matrix instructions and barriers too: 32 make a warp's one.
   ptxcpu_class_name gives the classes of a kernel, NULL past the last. */
uint64_t ptxcpu_instructions(size_t kernel, const char* instruction_class);
const char* ptxcpu_class_name(size_t kernel, size_t index);

size_t ptxcpu_site_count(size_t kernel);
/* Returns 0, or -1 if there is no such site. */
int ptxcpu_site(size_t kernel, size_t index, PtxcpuSite* site);

void ptxcpu_counters_reset(void);
/* Also written at exit to the path in PTXCPU_COUNTERS. Returns 0, or -1 if the file cannot be written. */
int ptxcpu_counters_write(const char* path);

/* ---- for stand-in libraries ---- */

/* Runs work in the order of a stream; while the stream captures, the work joins the graph instead.
   `data` of `bytes` is copied and given to `work` each time. Returns a cudaError_t. */
int ptxcpu_enqueue(void* stream, void (*work)(void* data), const void* data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
