// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "egl.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <type_traits>

#include "../kernels/error.h"

namespace pwdice {
namespace {

// The little of EGL that is needed, by the values of its specification, so that its headers are not.
using Enum = unsigned;
using Int = int32_t;
constexpr Enum kOpenGlApi = 0x30A2, kPlatformDevice = 0x313F;
constexpr Int kNone = 0x3038, kSurfaceType = 0x3033, kPbufferBit = 1, kRenderableType = 0x3040,
              kOpenGlBit = 8;
constexpr Int kRed = 0x3024, kGreen = 0x3023, kBlue = 0x3022, kDepth = 0x3025;

struct Egl {
  void* (*get_proc_address)(const char*);
  unsigned (*bind_api)(Enum);
  unsigned (*initialize)(void*, Int*, Int*);
  unsigned (*choose_config)(void*, const Int*, void**, Int, Int*);
  void* (*create_context)(void*, void*, void*, const Int*);
  unsigned (*destroy_context)(void*, void*);
  unsigned (*make_current)(void*, void*, void*, void*);
  unsigned (*query_devices)(Int, void**, Int*);
  void* (*get_platform_display)(Enum, void*, const Int*);

  static const Egl& get() {
    static const Egl egl = load();
    return egl;
  }

 private:
  static Egl load() {
    // Global: MuJoCo looks for eglGetProcAddress in what is loaded already.
    void* library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr)
      fail(ErrorCode::Unsupported,
           "renderer: there is no libEGL.so.1; install it with tools/setup.sh --mujoco");
    Egl egl{};
    bool complete = true;
    const auto find = [&](auto& function, const char* name) {
      void* symbol = dlsym(library, name);
      if (symbol == nullptr && egl.get_proc_address != nullptr)
        symbol = egl.get_proc_address(name);  // an extension
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
      complete = complete && symbol != nullptr;
    };
    find(egl.get_proc_address, "eglGetProcAddress");
    find(egl.bind_api, "eglBindAPI");
    find(egl.initialize, "eglInitialize");
    find(egl.choose_config, "eglChooseConfig");
    find(egl.create_context, "eglCreateContext");
    find(egl.destroy_context, "eglDestroyContext");
    find(egl.make_current, "eglMakeCurrent");
    find(egl.query_devices, "eglQueryDevicesEXT");
    find(egl.get_platform_display, "eglGetPlatformDisplayEXT");
    if (!complete) fail(ErrorCode::Unsupported, "renderer: libEGL.so.1 is too old to draw without a window");
    return egl;
  }
};

}  // namespace

OffscreenGl::OffscreenGl() {
  const Egl& egl = Egl::get();
  constexpr Int kMost = 16;
  std::array<void*, kMost> devices{};
  Int count = 0;
  egl.query_devices(kMost, devices.data(), &count);
  const Int wanted[] = {kSurfaceType, kPbufferBit, kRenderableType, kOpenGlBit, kRed, 8, kGreen, 8,
                        kBlue,        8,           kDepth,          24,         kNone};
  for (Int k = 0; k < count && context_ == nullptr; ++k) {
    void* config = nullptr;
    Int found = 0;
    display_ = egl.get_platform_display(kPlatformDevice, devices[static_cast<size_t>(k)], nullptr);
    // Displays stay initialised: they are the process's, and another renderer may use the same one.
    if (display_ == nullptr || !egl.initialize(display_, nullptr, nullptr)) continue;
    if (!egl.choose_config(display_, wanted, &config, 1, &found) || found < 1 || !egl.bind_api(kOpenGlApi))
      continue;
    context_ = egl.create_context(display_, config, nullptr, nullptr);
    if (context_ == nullptr || egl.make_current(display_, nullptr, nullptr, context_)) continue;
    egl.destroy_context(display_, context_);
    context_ = nullptr;
  }
  if (context_ == nullptr) {
    fail(ErrorCode::Unsupported,
         "renderer: none of {} EGL devices draws with OpenGL; Mesa's drivers do (tools/setup.sh --mujoco)",
         static_cast<int64_t>(count));
  }
}

OffscreenGl::~OffscreenGl() {
  release();
  Egl::get().destroy_context(display_, context_);
}

void OffscreenGl::make_current() const {
  const Egl& egl = Egl::get();
  if (!egl.bind_api(kOpenGlApi) || !egl.make_current(display_, nullptr, nullptr, context_)) {
    fail(ErrorCode::Internal, "renderer: the OpenGL context cannot be used in this thread");
  }
}

void OffscreenGl::release() const { Egl::get().make_current(display_, nullptr, nullptr, nullptr); }

}  // namespace pwdice
