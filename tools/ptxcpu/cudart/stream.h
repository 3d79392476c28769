// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Streams, events, captures and graphs. Work on a stream runs at once, in the order of the calls;
// a capturing stream collects it in a graph instead.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace ptxcpu {

using Work = std::function<cudaError_t()>;

struct GraphNode {
  cudaGraphNodeType type;
  const void* identity;  // the kernel, for comparing graphs on update
  Work work;
};

// Memory a captured graph allocates lives as long as the graph or an executable made from it.
using GraphMemory = std::vector<std::shared_ptr<void>>;

struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalidated = false;
  std::vector<GraphNode> nodes;
  GraphMemory memory;
  std::map<CUstream_st*, size_t> unjoined;  // streams forked off, with the number of nodes they added
};

}  // namespace ptxcpu

// The opaque types of the CUDA headers.
struct CUstream_st {
  unsigned flags = cudaStreamDefault;
  int priority = 0;
  std::shared_ptr<ptxcpu::Capture> capture;
  int device = -1;  // -1: the default streams, which every device has
};

struct CUevent_st {
  unsigned flags = cudaEventDefault;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<ptxcpu::Capture> capture;  // set while it was last recorded in a capture
  CUstream_st* stream = nullptr;
  size_t position = 0;  // nodes the stream had added when the event was recorded
};

struct CUgraph_st {
  std::vector<ptxcpu::GraphNode> nodes;
  ptxcpu::GraphMemory memory;
};

struct CUgraphExec_st {
  std::vector<ptxcpu::GraphNode> nodes;
  ptxcpu::GraphMemory memory;
};

namespace ptxcpu {

// The stream behind a handle (null and the special handles included); null if it does not exist.
CUstream_st* find_stream(cudaStream_t handle);

// Runs the work now, or adds it to the graph the stream captures. An error of running work that
// belongs to the device poisons the runtime, as it would surface at the next synchronisation.
cudaError_t submit(cudaStream_t handle, cudaGraphNodeType type, const void* identity, Work work);

// Calls that would synchronise or allocate are illegal while this thread may disturb a capture:
// they invalidate it. Success if there is none.
cudaError_t refuse_in_capture();

bool is_capturing(cudaStream_t handle);

}  // namespace ptxcpu
