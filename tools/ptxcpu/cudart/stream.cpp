// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "stream.h"

#include <algorithm>
#include <set>

#include "device.h"
#include "ptxcpu.h"
#include "state.h"

namespace ptxcpu {
namespace {

struct StreamTable {
  CUstream_st legacy, per_thread;
  std::set<CUstream_st*> streams;
  std::vector<std::weak_ptr<Capture>> captures;
};

StreamTable& table() {
  static auto* instance = new StreamTable;
  return *instance;
}

thread_local cudaStreamCaptureMode t_capture_mode = cudaStreamCaptureModeGlobal;

std::vector<std::shared_ptr<Capture>> active_captures() {
  std::vector<std::shared_ptr<Capture>> result;
  auto& all = table().captures;
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& weak) { return weak.expired(); }),
            all.end());
  for (const auto& weak : all)
    if (auto capture = weak.lock(); capture && capture->origin) result.push_back(capture);
  return result;
}

// Whether an unsafe call by this thread disturbs the capture.
bool disturbs(const Capture& capture) {
  if (t_capture_mode == cudaStreamCaptureModeRelaxed || capture.mode == cudaStreamCaptureModeRelaxed)
    return false;
  const bool mine = capture.thread == std::this_thread::get_id();
  if (capture.mode == cudaStreamCaptureModeThreadLocal) return mine;
  return mine || t_capture_mode == cudaStreamCaptureModeGlobal;
}

cudaError_t add_node(CUstream_st* stream, cudaGraphNodeType type, const void* identity, Work work) {
  Capture& capture = *stream->capture;
  if (capture.invalidated) return cudaErrorStreamCaptureInvalidated;
  capture.nodes.push_back({type, identity, std::move(work)});
  if (stream != capture.origin) ++capture.unjoined[stream];
  return cudaSuccess;
}

cudaError_t begin_capture(CUstream_st* stream, cudaStreamCaptureMode mode) {
  if (stream == &table().legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  table().captures.push_back(stream->capture);
  return cudaSuccess;
}

void leave_capture(const std::shared_ptr<Capture>& capture) {
  for (CUstream_st* stream : table().streams)
    if (stream->capture == capture) stream->capture.reset();
  table().per_thread.capture.reset();
  capture->origin = nullptr;
}

cudaError_t end_capture(CUstream_st* stream, cudaGraph_t* graph) {
  const std::shared_ptr<Capture> capture = stream->capture;
  *graph = nullptr;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != stream) return cudaErrorStreamCaptureUnmatched;
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  const bool unjoined = std::any_of(capture->unjoined.begin(), capture->unjoined.end(),
                                    [](const auto& entry) { return entry.second > 0; });
  leave_capture(capture);
  if (capture->invalidated) return cudaErrorStreamCaptureInvalidated;
  if (unjoined) return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st{std::move(capture->nodes), std::move(capture->memory)};
  return cudaSuccess;
}

// Forks (the waiting stream joins the capture) or joins (work before the event is ordered again).
cudaError_t wait_in_capture(CUstream_st* stream, CUevent_st* event) {
  if (!event->capture || !event->capture->origin)
    return stream->capture ? cudaErrorStreamCaptureIsolation : cudaSuccess;
  if (stream == &table().legacy) return cudaErrorStreamCaptureImplicit;
  if (!stream->capture) stream->capture = event->capture;
  if (stream->capture != event->capture) return cudaErrorStreamCaptureMerge;
  const auto entry = event->capture->unjoined.find(event->stream);
  if (entry != event->capture->unjoined.end() && event->stream != stream && entry->second == event->position)
    event->capture->unjoined.erase(entry);
  return cudaSuccess;
}

cudaError_t record(CUevent_st* event, CUstream_st* stream) {
  event->recorded = true;
  event->stream = stream;
  event->capture = stream->capture;
  event->time = std::chrono::steady_clock::now();
  if (stream->capture) {
    const auto entry = stream->capture->unjoined.find(stream);
    event->position = entry == stream->capture->unjoined.end() ? 0 : entry->second;
  }
  return cudaSuccess;
}

cudaError_t create_stream(cudaStream_t* stream, unsigned flags, int priority) {
  if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
  *stream = new CUstream_st{flags, priority, {}, current_device()};
  table().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t create_event(cudaEvent_t* event, unsigned flags) {
  if (!event) return cudaErrorInvalidValue;
  *event = new CUevent_st;
  (*event)->flags = flags;
  return cudaSuccess;
}

bool is_captured(const CUevent_st* event) { return event->capture && event->capture->origin; }

}  // namespace

CUstream_st* find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &table().legacy;
  if (handle == cudaStreamPerThread) return &table().per_thread;
  return table().streams.count(handle) ? handle : nullptr;
}

bool is_capturing(cudaStream_t handle) {
  const CUstream_st* stream = find_stream(handle);
  return stream && stream->capture;
}

cudaError_t refuse_in_capture() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : active_captures()) {
    if (!disturbs(*capture)) continue;
    capture->invalidated = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

cudaError_t submit(cudaStream_t handle, cudaGraphNodeType type, const void* identity, Work work) {
  CUstream_st* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  const bool foreign = stream->device >= 0 && stream->device != current_device();
  if (foreign && type == cudaGraphNodeTypeKernel) return cudaErrorInvalidResourceHandle;
  if (stream->device < 0) runtime().note("default stream");
  if (stream->capture) return add_node(stream, type, identity, std::move(work));
  if (stream == &table().legacy) {
    // The legacy stream would wait for blocking streams, which a capture cannot express.
    for (const auto& capture : active_captures()) {
      if (capture->origin->flags & cudaStreamNonBlocking) continue;
      capture->invalidated = true;
      return cudaErrorStreamCaptureImplicit;
    }
  }
  const cudaError_t error = work();
  if (!is_sticky(error)) return error;
  runtime().poison(error);
  return cudaSuccess;
}

}  // namespace ptxcpu

using ptxcpu::api;
using ptxcpu::find_stream;
using ptxcpu::table;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return api(__func__, [&] { return ptxcpu::create_stream(stream, cudaStreamDefault, 0); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return api(__func__, [&] { return ptxcpu::create_stream(stream, flags, 0); });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return api(__func__, [&] { return ptxcpu::create_stream(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return api(__func__, [&] {
    if (!stream || !table().streams.erase(stream)) return cudaErrorInvalidResourceHandle;
    if (stream->capture) stream->capture->invalidated = true;
    delete stream;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!stream->capture) return stream == &table().legacy ? ptxcpu::refuse_in_capture() : cudaSuccess;
    stream->capture->invalidated = true;
    return cudaErrorStreamCaptureUnsupported;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!stream->capture) return cudaSuccess;
    stream->capture->invalidated = true;
    return cudaErrorStreamCaptureUnsupported;
  });
}
cudaError_t cudaDeviceSynchronize(void) {
  return api(__func__, [] { return ptxcpu::refuse_in_capture(); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    if (!stream || !event) return cudaErrorInvalidResourceHandle;
    return ptxcpu::wait_in_capture(stream, event);
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    *flags = stream->flags;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    *priority = stream->priority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    *device = stream->device >= 0 ? stream->device : ptxcpu::current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    return stream ? ptxcpu::begin_capture(stream, mode) : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    return stream ? ptxcpu::end_capture(stream, graph) : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    if (!stream || !status) return cudaErrorInvalidResourceHandle;
    *status = !stream->capture               ? cudaStreamCaptureStatusNone
              : stream->capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                             : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api(__func__, [&] {
    std::swap(*mode, ptxcpu::t_capture_mode);
    return cudaSuccess;
  });
}

// ---- events ----------------------------------------------------------------------------------------

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return api(__func__, [&] { return ptxcpu::create_event(event, cudaEventDefault); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return api(__func__, [&] { return ptxcpu::create_event(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return api(__func__, [&] {
    delete event;
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return api(__func__, [&] {
    CUstream_st* stream = find_stream(handle);
    return stream && event ? ptxcpu::record(event, stream) : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return api(__func__, [&] { return ptxcpu::is_captured(event) ? cudaErrorCapturedEvent : cudaSuccess; });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return api(__func__, [&] { return ptxcpu::is_captured(event) ? cudaErrorCapturedEvent : cudaSuccess; });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return api(__func__, [&] {
    const bool timed = !(begin->flags & cudaEventDisableTiming) && !(end->flags & cudaEventDisableTiming);
    if (!timed || !begin->recorded || !end->recorded) return cudaErrorInvalidResourceHandle;
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return api(__func__, [&] {
    return ptxcpu::submit(stream, cudaGraphNodeTypeHost, reinterpret_cast<const void*>(function), [=] {
      function(data);
      return cudaSuccess;
    });
  });
}

int ptxcpu_enqueue(void* stream, void (*work)(void*), const void* data, size_t bytes) {
  return api(__func__, [&] {
    const auto* begin = static_cast<const unsigned char*>(data);
    const auto copy = std::make_shared<std::vector<unsigned char>>(begin, begin + bytes);
    return ptxcpu::submit(static_cast<cudaStream_t>(stream), cudaGraphNodeTypeHost,
                          reinterpret_cast<const void*>(work), [=] {
                            work(copy->data());
                            return cudaSuccess;
                          });
  });
}
}
