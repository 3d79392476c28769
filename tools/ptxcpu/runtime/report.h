// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The list of faults found, as sentences.
#pragma once

#include <string>

namespace ptxcpu {

void add_report(const std::string& text);
void clear_reports();

}  // namespace ptxcpu
