// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// What a translated module tells the runtime about itself.
#pragma once

#include <cstdint>

namespace ptxcpu {

struct Thread;
using KernelFunction = void (*)(Thread*);
using DeviceFunction = void (*)(Thread*, uint8_t* const* results, uint8_t* const* args);

struct ParamInfo {
  uint32_t offset, size;
};

struct KernelInfo {
  const char* name;
  KernelFunction function;
  const ParamInfo* params;
  uint32_t param_count;
  uint32_t param_bytes;
  uint32_t shared_bytes;  // static; dynamic shared memory follows it
  uint32_t max_threads;   // from __launch_bounds__, 0 if none
};

struct VariableInfo {
  const char* name;
  uint8_t* data;
  uint64_t size;
};

// An instruction that can fault or is counted on its own.
struct SiteInfo {
  const char* opcode;
  const char* file;
  uint32_t line;
  uint32_t ptx_line;
};

// `count` instructions of a class belong to a unit (a run of instructions executed together).
struct UnitInfo {
  uint32_t unit, instruction_class, count;
};

struct RefusedInfo {
  const char* name;
  const char* reason;
};

enum ModuleFlags : uint32_t { kModuleChecked = 1, kModuleCounted = 2 };

struct ModuleInfo {
  uint64_t digest;  // of the fat binary that nvcc embedded in the host object
  uint32_t target;  // 80 for sm_80
  uint32_t flags;
  uint32_t unit_total;
  const KernelInfo* kernels;
  uint32_t kernel_count;
  const VariableInfo* variables;
  uint32_t variable_count;
  const SiteInfo* sites;
  uint32_t site_count;
  const char* const* classes;
  uint32_t class_count;
  const UnitInfo* units;
  uint32_t unit_count;
  const RefusedInfo* refused;
  uint32_t refused_count;
};

void register_module(const ModuleInfo* module);

}  // namespace ptxcpu
