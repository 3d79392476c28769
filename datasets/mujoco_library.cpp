// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "mujoco_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "../kernels/error.h"

namespace pwdice {
namespace {

// MuJoCo ends the process on an error and writes warnings to a file in the working directory; a library does neither.
[[noreturn]] void throw_error(const char* message) { fail(ErrorCode::Internal, "MuJoCo: {}", message); }
void ignore_warning(const char*) {}

void* open_library() {
  const char* chosen = std::getenv("PWDICE_MUJOCO_LIBRARY");
  if (chosen != nullptr) {
    void* handle = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) fail(ErrorCode::Unsupported, "MuJoCo: PWDICE_MUJOCO_LIBRARY = {} cannot be loaded: {}", chosen, dlerror());
    return handle;
  }
  for (const char* name : {PWDICE_MUJOCO_LIBRARY_FOUND, "libmujoco.so"}) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  fail(ErrorCode::Unsupported, "MuJoCo: {} is gone and there is no libmujoco.so; install it with tools/setup.sh --mujoco or set "
       "PWDICE_MUJOCO_LIBRARY", PWDICE_MUJOCO_LIBRARY_FOUND);
}

template <class F>
void find(void* library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  if (function == nullptr) fail(ErrorCode::Unsupported, "MuJoCo: the library has no {}", symbol);
}

MujocoLibrary load() {
  void* handle = open_library();
  MujocoLibrary library{};
  find(handle, "mj_version", library.version);
  // mjModel and mjData are read directly, so their layout must be the one compiled in.
  if (library.version() != mjVERSION_HEADER) {
    fail(ErrorCode::Unsupported, "MuJoCo: the library is version {}, this build was made for {}", library.version(), mjVERSION_HEADER);
  }
  find(handle, "mj_loadXML", library.load_xml);
  find(handle, "mj_deleteModel", library.delete_model);
  find(handle, "mj_makeData", library.make_data);
  find(handle, "mj_deleteData", library.delete_data);
  find(handle, "mj_resetData", library.reset_data);
  find(handle, "mj_forward", library.forward);
  find(handle, "mj_step", library.step);
  find(handle, "mj_rnePostConstraint", library.rne_post_constraint);
  find(handle, "mj_name2id", library.name_to_id);
  find(handle, "mjv_defaultCamera", library.default_camera);
  find(handle, "mjv_defaultOption", library.default_option);
  find(handle, "mjv_defaultScene", library.default_scene);
  find(handle, "mjv_makeScene", library.make_scene);
  find(handle, "mjv_freeScene", library.free_scene);
  find(handle, "mjv_updateScene", library.update_scene);
  find(handle, "mjr_defaultContext", library.default_context);
  find(handle, "mjr_makeContext", library.make_context);
  find(handle, "mjr_freeContext", library.free_context);
  find(handle, "mjr_setBuffer", library.set_buffer);
  find(handle, "mjr_render", library.render);
  find(handle, "mjr_readPixels", library.read_pixels);
  decltype(&mju_user_error) error_handler;
  decltype(&mju_user_warning) warning_handler;
  find(handle, "mju_user_error", error_handler);
  find(handle, "mju_user_warning", warning_handler);
  if (*error_handler == nullptr) *error_handler = throw_error;
  if (*warning_handler == nullptr) *warning_handler = ignore_warning;
  return library;
}

}  // namespace

const MujocoLibrary& MujocoLibrary::get() {
  static const MujocoLibrary library = load();
  return library;
}

std::string mujoco_model_path(const std::string& file) {
  const char* chosen = std::getenv("PWDICE_MUJOCO_MODELS");
  const std::filesystem::path path = std::filesystem::path(chosen != nullptr ? chosen : PWDICE_MUJOCO_MODELS_FOUND) / file;
  if (!std::filesystem::exists(path)) {
    fail(ErrorCode::Unsupported, "MuJoCo: no model file {}; install gymnasium with tools/setup.sh --mujoco or set PWDICE_MUJOCO_MODELS",
         path.string());
  }
  return path.string();
}

}  // namespace pwdice
