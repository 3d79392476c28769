// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "registration.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <mutex>

#include "registry.h"
#include "state.h"

namespace ptxcpu {
namespace {

// The wrapper nvcc passes, and the header of the fat binary it points to.
struct FatBinaryWrapper {
  uint32_t magic, version;
  const uint8_t* data;
  void* reserved;
};
struct FatBinaryHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t payload_bytes;
};

// The same digest the translator wrote into the module.
uint64_t digest_of(const FatBinaryWrapper* wrapper) {
  FatBinaryHeader header;
  std::memcpy(&header, wrapper->data, sizeof header);
  uint64_t digest = 0xcbf29ce484222325ull;
  for (uint64_t at = 0; at + 8 <= header.header_bytes + header.payload_bytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, wrapper->data + at, sizeof word);
    digest = (digest ^ word) * 0x100000001b3ull;
  }
  return digest;
}

struct FatBinary {
  void* self;  // the handle given out points here
  uint64_t digest;
};

struct Symbol {
  uint64_t digest;
  std::string name;
};

struct Registrations {
  std::map<const void*, RegisteredKernel> kernels;
  std::map<const void*, Symbol> symbols;
};

Registrations& registrations() {
  static auto* instance = new Registrations;
  return *instance;
}

uint64_t digest_of(void** handle) { return reinterpret_cast<FatBinary*>(handle)->digest; }

}  // namespace

RegisteredKernel* find_registered(const void* host_function) {
  const auto found = registrations().kernels.find(host_function);
  return found == registrations().kernels.end() ? nullptr : &found->second;
}

const VariableInfo* find_symbol(const void* host_variable) {
  const auto found = registrations().symbols.find(host_variable);
  return found == registrations().symbols.end() ? nullptr
                                                : find_variable(found->second.digest, found->second.name);
}

}  // namespace ptxcpu

using ptxcpu::registrations;

// Called by nvcc's host code; the signatures are those of its crt/host_runtime.h.
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  auto* binary =
      new ptxcpu::FatBinary{nullptr, ptxcpu::digest_of(static_cast<ptxcpu::FatBinaryWrapper*>(wrapper))};
  binary->self = binary;
  return &binary->self;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete reinterpret_cast<ptxcpu::FatBinary*>(handle); }
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  ptxcpu::RegisteredKernel kernel;
  kernel.digest = ptxcpu::digest_of(handle);
  kernel.name = name;
  registrations().kernels.emplace(host_function, kernel);
}
void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int, size_t, int, int) {
  registrations().symbols[host_variable] = {ptxcpu::digest_of(handle), name};
}
void __cudaRegisterManagedVar(void** handle, void** host_variable, char*, const char* name, int, size_t, int,
                              int) {
  registrations().symbols[host_variable] = {ptxcpu::digest_of(handle), name};
}
}
