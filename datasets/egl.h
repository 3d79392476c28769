// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

namespace pwdice {

// An OpenGL context without a window, from libEGL as it is found at run time: a GPU's, or Mesa's in software.
// MuJoCo draws into a buffer of its own, so the context has no surface. Used by one thread at a time.
class OffscreenGl {
 public:
  OffscreenGl();  // throws Unsupported, in one sentence, without libEGL or a device that can draw
  ~OffscreenGl();
  OffscreenGl(const OffscreenGl&) = delete;
  OffscreenGl& operator=(const OffscreenGl&) = delete;

  void make_current() const;  // in the calling thread
  void release() const;

 private:
  void *display_ = nullptr, *context_ = nullptr;
};

}  // namespace pwdice
