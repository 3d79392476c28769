// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <mujoco/mujoco.h>

#include <string>

namespace pwdice {

// The functions of libmujoco that an environment needs, found at run time.
struct MujocoLibrary {
  decltype(&mj_loadXML) load_xml;
  decltype(&mj_deleteModel) delete_model;
  decltype(&mj_makeData) make_data;
  decltype(&mj_deleteData) delete_data;
  decltype(&mj_resetData) reset_data;
  decltype(&mj_forward) forward;
  decltype(&mj_step) step;
  decltype(&mj_rnePostConstraint) rne_post_constraint;
  decltype(&mj_name2id) name_to_id;
  decltype(&mj_version) version;
  // Drawing.
  decltype(&mjv_defaultCamera) default_camera;
  decltype(&mjv_defaultOption) default_option;
  decltype(&mjv_defaultScene) default_scene;
  decltype(&mjv_makeScene) make_scene;
  decltype(&mjv_freeScene) free_scene;
  decltype(&mjv_updateScene) update_scene;
  decltype(&mjr_defaultContext) default_context;
  decltype(&mjr_makeContext) make_context;
  decltype(&mjr_freeContext) free_context;
  decltype(&mjr_setBuffer) set_buffer;
  decltype(&mjr_render) render;
  decltype(&mjr_readPixels) read_pixels;

  // Loaded once per process; throws Unsupported when it cannot be, or is of another version than the headers.
  static const MujocoLibrary& get();
};

std::string mujoco_model_path(const std::string& file);  // throws Unsupported when there is none

}  // namespace pwdice
