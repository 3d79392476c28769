# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors

# MuJoCo from the Python package (headers and library in site-packages/mujoco), and the model files of gymnasium.
#   Mujoco_INCLUDE_DIR  Mujoco_LIBRARY  Mujoco_MODELS_DIR  Mujoco_PYTHON
file(GLOB mujoco_site_packages ${PROJECT_SOURCE_DIR}/build/venv/lib/python3*/site-packages)
find_path(Mujoco_INCLUDE_DIR mujoco/mujoco.h HINTS ${mujoco_site_packages} PATH_SUFFIXES mujoco/include)
if(Mujoco_INCLUDE_DIR AND NOT Mujoco_LIBRARY)
  file(GLOB mujoco_libraries ${Mujoco_INCLUDE_DIR}/../libmujoco.so*)
  if(mujoco_libraries)
    list(GET mujoco_libraries 0 mujoco_first)
    get_filename_component(mujoco_first ${mujoco_first} ABSOLUTE)
    set(Mujoco_LIBRARY ${mujoco_first} CACHE FILEPATH "libmujoco, loaded at run time")
  else()
    set(Mujoco_LIBRARY libmujoco.so CACHE FILEPATH "libmujoco, loaded at run time")
  endif()
endif()
find_path(Mujoco_MODELS_DIR hopper.xml HINTS ${mujoco_site_packages} PATH_SUFFIXES gymnasium/envs/mujoco/assets)
find_program(Mujoco_PYTHON python3 HINTS ${PROJECT_SOURCE_DIR}/build/venv/bin NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Mujoco REQUIRED_VARS Mujoco_INCLUDE_DIR Mujoco_LIBRARY Mujoco_MODELS_DIR)
mark_as_advanced(Mujoco_INCLUDE_DIR Mujoco_LIBRARY Mujoco_MODELS_DIR Mujoco_PYTHON)
