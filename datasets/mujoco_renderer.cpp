// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "mujoco_renderer.h"

#include <algorithm>

#include "../kernels/error.h"
#include "mujoco_library.h"

namespace pwdice {

MujocoRenderer::MujocoRenderer(const mjModel* model, int width, int height) : width_(width), height_(height) {
  const MujocoLibrary& mj = MujocoLibrary::get();
  PWDICE_CHECK(
      width > 0 && height > 0 && width <= model->vis.global.offwidth && height <= model->vis.global.offheight,
      "renderer: a picture of {} x {}, the model draws up to {} x {}", width, height,
      static_cast<int64_t>(model->vis.global.offwidth), static_cast<int64_t>(model->vis.global.offheight));
  constexpr int kGeoms = 1000;
  mj.default_camera(&camera_), mj.default_option(&option_), mj.default_scene(&scene_),
      mj.default_context(&context_);
  const int track = mj.name_to_id(model, mjOBJ_CAMERA, "track");
  if (track >= 0) camera_.type = mjCAMERA_FIXED, camera_.fixedcamid = track;
  mj.make_context(model, &context_, mjFONTSCALE_100);
  mj.make_scene(model, &scene_, kGeoms);
}

MujocoRenderer::~MujocoRenderer() {
  const MujocoLibrary& mj = MujocoLibrary::get();
  mj.free_scene(&scene_);
  try {
    gl_.make_current();
    mj.free_context(&context_);
  } catch (...) {  // the context goes with the process
  }
}

Image MujocoRenderer::draw(const mjModel* model, mjData* data) {
  const MujocoLibrary& mj = MujocoLibrary::get();
  gl_.make_current();
  mj.set_buffer(mjFB_OFFSCREEN, &context_);
  mj.update_scene(model, data, &option_, nullptr, &camera_, mjCAT_ALL, &scene_);
  const mjrRect all{0, 0, width_, height_};
  mj.render(all, &scene_, &context_);
  const size_t row = static_cast<size_t>(3 * width_);
  Image image{width_, height_, std::vector<uint8_t>(row * static_cast<size_t>(height_))};
  mj.read_pixels(image.rgb.data(), nullptr, all, &context_);
  for (size_t top = 0, bottom = static_cast<size_t>(height_) - 1; top < bottom;
       ++top, --bottom) {  // OpenGL begins below
    std::swap_ranges(image.rgb.data() + top * row, image.rgb.data() + (top + 1) * row,
                     image.rgb.data() + bottom * row);
  }
  return image;
}

}  // namespace pwdice
