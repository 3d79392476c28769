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

  // Loaded once per process; throws Unsupported when it cannot be, or is of another version than the headers.
  static const MujocoLibrary& get();
};

std::string mujoco_model_path(const std::string& file);  // throws Unsupported when there is none

}  // namespace pwdice
