// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Counters accumulated per kernel, their C interface and their JSON form.
#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "counters.h"
#include "options.h"
#include "ptxcpu.h"
#include "registry.h"

namespace ptxcpu {
namespace {

struct KernelCounters {
  std::string name;
  const ModuleInfo* module = nullptr;
  uint64_t launches = 0, blocks = 0, executed_blocks = 0;
  uint32_t threads = 0, shared_bytes = 0;  // of the largest block
  std::map<std::string, uint64_t> classes;
  std::map<int, SiteTotals> sites;
};

struct CounterStore {
  std::mutex mutex;
  std::vector<KernelCounters> kernels;
};

CounterStore& store() {
  static auto* instance = new CounterStore;
  return *instance;
}

KernelCounters& counters_of(CounterStore& all, const Launch& launch) {
  const std::string name = demangle(launch.kernel->name);
  for (KernelCounters& kernel : all.kernels)
    if (kernel.module == launch.module && kernel.name == name) return kernel;
  all.kernels.emplace_back();
  all.kernels.back().name = name;
  all.kernels.back().module = launch.module;
  return all.kernels.back();
}

void add(SiteTotals* to, const SiteTotals& from) {
  to->global_requests += from.global_requests;
  to->global_bytes += from.global_bytes;
  to->sectors += from.sectors;
  to->ideal_sectors += from.ideal_sectors;
  to->shared_requests += from.shared_requests;
  to->shared_bytes += from.shared_bytes;
  to->wavefronts += from.wavefronts;
  to->ideal_wavefronts += from.ideal_wavefronts;
}

PtxcpuSite describe(const ModuleInfo* module, int site, const SiteTotals& t) {
  const SiteInfo& info = module->sites[site];
  return {info.opcode,       info.file,      info.line,    info.ptx_line,
          t.global_requests, t.global_bytes, t.sectors,    t.ideal_sectors,
          t.shared_requests, t.shared_bytes, t.wavefronts, t.ideal_wavefronts};
}

std::string quote(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

unsigned long long number(uint64_t value) { return value; }  // what %llu prints

void write_site(std::FILE* file, const PtxcpuSite& s, bool last) {
  std::fprintf(file, "      {\"opcode\": %s, \"file\": %s, \"line\": %u, \"ptx_line\": %u",
               quote(s.opcode).c_str(), quote(s.file).c_str(), s.line, s.ptx_line);
  if (s.global_requests)
    std::fprintf(
        file,
        ", \"global_requests\": %llu, \"global_bytes\": %llu, \"sectors\": %llu, \"ideal_sectors\": %llu",
        number(s.global_requests), number(s.global_bytes), number(s.sectors), number(s.ideal_sectors));
  if (s.shared_requests)
    std::fprintf(file,
                 ", \"shared_requests\": %llu, \"shared_bytes\": %llu, \"wavefronts\": %llu, "
                 "\"ideal_wavefronts\": %llu",
                 number(s.shared_requests), number(s.shared_bytes), number(s.wavefronts),
                 number(s.ideal_wavefronts));
  std::fprintf(file, "}%s\n", last ? "" : ",");
}

void write_kernel(std::FILE* file, const KernelCounters& kernel, bool last) {
  std::fprintf(file,
               "  {\"kernel\": %s, \"target\": %u, \"launches\": %llu, \"blocks\": %llu, "
               "\"executed_blocks\": %llu, \"threads\": %u, \"shared_bytes\": %u,\n    \"instructions\": {",
               quote(kernel.name).c_str(), kernel.module->target, number(kernel.launches),
               number(kernel.blocks), number(kernel.executed_blocks), kernel.threads, kernel.shared_bytes);
  const char* separator = "";
  for (const auto& [name, count] : kernel.classes) {
    std::fprintf(file, "%s%s: %llu", separator, quote(name).c_str(), number(count));
    separator = ", ";
  }
  std::fprintf(file, "},\n    \"sites\": [\n");
  size_t left = kernel.sites.size();
  for (const auto& [site, totals] : kernel.sites)
    write_site(file, describe(kernel.module, site, totals), --left == 0);
  std::fprintf(file, "    ]}%s\n", last ? "" : ",");
}

const KernelCounters* kernel_at(size_t index) {
  return index < store().kernels.size() ? &store().kernels[index] : nullptr;
}

__attribute__((destructor)) void write_counters_at_exit() {
  const std::string& path = options().counters_path;
  if (!path.empty() && ptxcpu_counters_write(path.c_str()) != 0)
    std::fprintf(stderr, "ptxcpu: cannot write counters to %s\n", path.c_str());
}

}  // namespace

void add_launch_counters(const Launch& launch, const CountedGrid& grid, const std::vector<uint64_t>& units,
                         const std::vector<SiteTotals>& sites) {
  CounterStore& all = store();
  const std::lock_guard lock(all.mutex);
  KernelCounters& kernel = counters_of(all, launch);
  ++kernel.launches;
  kernel.blocks += grid.blocks;
  kernel.executed_blocks += grid.executed;
  kernel.threads = std::max(kernel.threads, grid.threads);
  kernel.shared_bytes = std::max(kernel.shared_bytes, grid.shared_bytes);
  const ModuleInfo* module = launch.module;
  for (uint32_t i = 0; i < module->unit_count; ++i) {
    const UnitInfo& unit = module->units[i];
    if (units[unit.unit])
      kernel.classes[module->classes[unit.instruction_class]] += units[unit.unit] * unit.count;
  }
  for (size_t site = 0; site < module->site_count; ++site)
    if (sites[site].global_requests || sites[site].shared_requests)
      add(&kernel.sites[int(site)], sites[site]);
}

}  // namespace ptxcpu

using ptxcpu::kernel_at;
using ptxcpu::store;

extern "C" {

size_t ptxcpu_kernel_count(void) { return store().kernels.size(); }

const char* ptxcpu_kernel_name(size_t kernel) {
  const auto* found = kernel_at(kernel);
  return found ? found->name.c_str() : nullptr;
}

uint64_t ptxcpu_kernel_launches(size_t kernel) {
  const auto* found = kernel_at(kernel);
  return found ? found->launches : 0;
}

uint64_t ptxcpu_instructions(size_t kernel, const char* instruction_class) {
  const auto* found = kernel_at(kernel);
  if (!found) return 0;
  const auto entry = found->classes.find(instruction_class);
  return entry == found->classes.end() ? 0 : entry->second;
}

const char* ptxcpu_class_name(size_t kernel, size_t index) {
  const auto* found = kernel_at(kernel);
  if (!found || index >= found->classes.size()) return nullptr;
  return std::next(found->classes.begin(), std::ptrdiff_t(index))->first.c_str();
}

size_t ptxcpu_site_count(size_t kernel) {
  const auto* found = kernel_at(kernel);
  return found ? found->sites.size() : 0;
}

int ptxcpu_site(size_t kernel, size_t index, PtxcpuSite* site) {
  const auto* found = kernel_at(kernel);
  if (!found || index >= found->sites.size()) return -1;
  const auto entry = std::next(found->sites.begin(), std::ptrdiff_t(index));
  *site = ptxcpu::describe(found->module, entry->first, entry->second);
  return 0;
}

void ptxcpu_counters_reset(void) {
  const std::lock_guard lock(store().mutex);
  store().kernels.clear();
}

int ptxcpu_counters_write(const char* path) {
  const std::lock_guard lock(store().mutex);
  std::FILE* file = std::fopen(path, "w");
  if (!file) return -1;
  std::fprintf(file, "[\n");
  const auto& kernels = store().kernels;
  for (size_t i = 0; i < kernels.size(); ++i) ptxcpu::write_kernel(file, kernels[i], i + 1 == kernels.size());
  std::fprintf(file, "]\n");
  return std::fclose(file) == 0 ? 0 : -1;
}
}
