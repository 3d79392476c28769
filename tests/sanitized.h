// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// PWDICE_SANITIZED where an address or thread sanitizer is built in: it is ten to a hundred times as slow and reserves
// more address space than any limit leaves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PWDICE_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PWDICE_SANITIZED
#endif
#endif
