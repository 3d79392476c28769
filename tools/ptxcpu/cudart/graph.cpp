// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Executable graphs: the captured work, replayed in the order in which it was captured.
#include <algorithm>

#include "state.h"
#include "stream.h"

using ptxcpu::api;

namespace ptxcpu {
namespace {

bool same_topology(const std::vector<GraphNode>& a, const std::vector<GraphNode>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const GraphNode& x, const GraphNode& y) {
    return x.type == y.type && (x.type != cudaGraphNodeTypeKernel || x.identity == y.identity);
  });
}

cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph) {
  if (!exec || !graph) return cudaErrorInvalidValue;
  *exec = new CUgraphExec_st{graph->nodes, graph->memory};
  return cudaSuccess;
}

cudaError_t replay(const std::vector<GraphNode>& nodes) {
  for (const GraphNode& node : nodes)
    if (const cudaError_t error = node.work()) return error;
  return cudaSuccess;
}

}  // namespace
}  // namespace ptxcpu

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return api(__func__, [&] { return ptxcpu::instantiate(exec, graph); });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return api(__func__, [&] { return ptxcpu::instantiate(exec, graph); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return api(__func__, [&] {
    if (!exec) return cudaErrorInvalidValue;
    return ptxcpu::submit(stream, cudaGraphNodeTypeGraph, exec,
                          [exec] { return ptxcpu::replay(exec->nodes); });
  });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) {
  return api(__func__, [&] { return exec ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  return api(__func__, [&] {
    if (!exec || !graph) return cudaErrorInvalidValue;
    const bool same = ptxcpu::same_topology(exec->nodes, graph->nodes);
    if (result) {
      *result = {};
      result->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    }
    if (!same) return cudaErrorGraphExecUpdateFailure;
    exec->nodes = graph->nodes;
    exec->memory.insert(exec->memory.end(), graph->memory.begin(), graph->memory.end());
    return cudaSuccess;
  });
}

// A node handle is a pointer into the graph, valid as long as the graph is.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return api(__func__, [&] {
    if (!graph || !count) return cudaErrorInvalidValue;
    if (nodes) {
      *count = std::min(*count, graph->nodes.size());
      for (size_t i = 0; i < *count; ++i) nodes[i] = reinterpret_cast<cudaGraphNode_t>(&graph->nodes[i]);
    } else {
      *count = graph->nodes.size();
    }
    return cudaSuccess;
  });
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return api(__func__, [&] {
    if (!node || !type) return cudaErrorInvalidValue;
    *type = reinterpret_cast<const ptxcpu::GraphNode*>(node)->type;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  return api(__func__, [&] {
    *graph = new CUgraph_st;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return api(__func__, [&] {
    if (!graph) return cudaErrorInvalidValue;
    *clone = new CUgraph_st(*graph);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return api(__func__, [&] {
    if (!graph) return cudaErrorInvalidValue;
    delete graph;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return api(__func__, [&] {
    if (!exec) return cudaErrorInvalidValue;
    delete exec;
    return cudaSuccess;
  });
}
}
