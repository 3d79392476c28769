// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Modules that registered themselves, and the kernels and variables found in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "module.h"

namespace ptxcpu {

struct KernelRef {
  const ModuleInfo* module = nullptr;
  const KernelInfo* kernel = nullptr;
};

// digest 0 searches every module. A kernel that was not translated has no `kernel`.
KernelRef find_kernel(uint64_t digest, const std::string& name);
const VariableInfo* find_variable(uint64_t digest, const std::string& name);

// Why a kernel was refused by the translator; empty if it was not.
std::string refusal(uint64_t digest, const std::string& name);

// The highest architecture any module was compiled for; 0 without modules.
uint32_t highest_target();

std::string demangle(const char* name);
std::string short_kernel_name(const char* name);  // for reports: templates can fill a page
std::string site_text(const ModuleInfo* module, int site);

}  // namespace ptxcpu
