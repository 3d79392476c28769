// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "registry.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "allocations.h"

namespace ptxcpu {
namespace {

std::vector<const ModuleInfo*>& modules() {
  static auto* instance = new std::vector<const ModuleInfo*>;
  return *instance;
}

// Host code without a matching digest (a linked device image, say) may still find its kernels.
template <class Function>
void search_modules(uint64_t digest, Function found) {
  for (const ModuleInfo* module : modules())
    if (digest == 0 || module->digest == digest)
      if (found(module)) return;
}

}  // namespace

void register_module(const ModuleInfo* module) {
  modules().push_back(module);
  for (uint32_t i = 0; i < module->variable_count; ++i)
    register_allocation(module->variables[i].data, module->variables[i].size, MemoryKind::kVariable);
}

KernelRef find_kernel(uint64_t digest, const std::string& name) {
  KernelRef result;
  search_modules(digest, [&](const ModuleInfo* module) {
    for (uint32_t i = 0; i < module->kernel_count; ++i) {
      if (name != module->kernels[i].name) continue;
      result = {module, &module->kernels[i]};
      return true;
    }
    return false;
  });
  return result;
}

const VariableInfo* find_variable(uint64_t digest, const std::string& name) {
  const VariableInfo* result = nullptr;
  search_modules(digest, [&](const ModuleInfo* module) {
    for (uint32_t i = 0; i < module->variable_count && !result; ++i)
      if (name == module->variables[i].name) result = &module->variables[i];
    return result != nullptr;
  });
  return result;
}

std::string refusal(uint64_t digest, const std::string& name) {
  std::string reason;
  search_modules(digest, [&](const ModuleInfo* module) {
    for (uint32_t i = 0; i < module->refused_count; ++i)
      if (name == module->refused[i].name) reason = module->refused[i].reason;
    return !reason.empty();
  });
  return reason;
}

uint32_t highest_target() {
  uint32_t highest = 0;
  for (const ModuleInfo* module : modules()) highest = std::max(highest, module->target);
  return highest;
}

std::string demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string result = text ? text : name;
  std::free(text);
  return result;
}

std::string short_kernel_name(const char* name) {
  constexpr size_t kLongest = 160;
  const std::string full = demangle(name);
  return full.size() <= kLongest ? full : full.substr(0, kLongest) + "...";
}

std::string site_text(const ModuleInfo* module, int site) {
  if (site < 0 || uint32_t(site) >= module->site_count) return "?";
  const SiteInfo& info = module->sites[site];
  const char* slash = std::strrchr(info.file, '/');
  return std::string(slash ? slash + 1 : info.file) + ":" + std::to_string(info.line) + " (" + info.opcode +
         ")";
}

}  // namespace ptxcpu
