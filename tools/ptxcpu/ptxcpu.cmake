# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
#
# Runs CUDA code without a GPU: nvcc's own PTX, executed on the CPU. The CUDA language of CMake is
# not needed.
#
#   include(tools/ptxcpu/ptxcpu.cmake)
#   ptxcpu_add_library(<target> SOURCES a.cu b.cu ARCH 80 [CHECK] [COUNT] [ALLOW_UNSUPPORTED]
#                      [INCLUDES dir...] [DEFINES name...] [OPTIONS nvcc-option...])
#
# <target> is a static library of the files' host code and kernels. Linking it brings the runtime
# (target ptxcpu), which stands in for libcudart, and its header ptxcpu.h. CHECK builds find faults
# and races, COUNT builds count; see README.md. Without nvcc PTXCPU_FOUND is false.

include_guard(GLOBAL)

set(PTXCPU_DIR ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "")
get_filename_component(cudacxx_directory "$ENV{CUDACXX}" DIRECTORY)
find_program(PTXCPU_NVCC nvcc HINTS ${cudacxx_directory} ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
find_program(PTXCPU_CXX NAMES clang++ clang++-14 clang++-15 clang++-16)
if(NOT PTXCPU_CXX)
  set(PTXCPU_CXX ${CMAKE_CXX_COMPILER} CACHE FILEPATH "compiler of translated kernels" FORCE)
endif()
set(PTXCPU_OPTIMIZE 1 CACHE STRING "optimisation level of translated kernels")
find_package(Python3 3.9 COMPONENTS Interpreter)
find_package(Threads REQUIRED)

if(PTXCPU_NVCC AND Python3_FOUND)
  set(PTXCPU_FOUND TRUE CACHE INTERNAL "")
else()
  set(PTXCPU_FOUND FALSE CACHE INTERNAL "")
endif()

# The toolkit's headers, from where nvcc is.
function(_ptxcpu_find_headers)
  get_filename_component(nvcc ${PTXCPU_NVCC} REALPATH)
  get_filename_component(bin ${nvcc} DIRECTORY)
  find_path(PTXCPU_CUDA_INCLUDE cuda_runtime_api.h HINTS ${bin}/../include ${bin}/../targets/x86_64-linux/include)
endfunction()

# A shared library: host code, translated kernels and the cuBLAS stand-in must share one state.
function(_ptxcpu_add_runtime)
  if(TARGET ptxcpu)
    return()
  endif()
  _ptxcpu_find_headers()
  file(GLOB sources CONFIGURE_DEPENDS ${PTXCPU_DIR}/runtime/*.cpp ${PTXCPU_DIR}/cudart/*.cpp)
  add_library(ptxcpu SHARED ${sources})
  target_compile_features(ptxcpu PUBLIC cxx_std_20)
  target_include_directories(ptxcpu PRIVATE ${PTXCPU_DIR}/runtime ${PTXCPU_DIR}/cudart)
  target_include_directories(ptxcpu PUBLIC ${PTXCPU_DIR}/include)
  target_include_directories(ptxcpu SYSTEM PUBLIC ${PTXCPU_CUDA_INCLUDE})
  target_compile_options(ptxcpu PRIVATE -O2 -march=x86-64-v3 -ffp-contract=off -fno-strict-aliasing -Wall -Wextra)
  target_link_libraries(ptxcpu PUBLIC Threads::Threads)
endfunction()

# The cuBLAS stand-in (target ptxcpu_cublas): a shared library to be loaded with dlopen; tell the
# program its path, $<TARGET_FILE:ptxcpu_cublas>, through the environment (PWDICE_CUBLAS_LIBRARY).
function(ptxcpu_add_cublas)
  _ptxcpu_add_runtime()
  if(TARGET ptxcpu_cublas)
    return()
  endif()
  add_library(ptxcpu_cublas SHARED ${PTXCPU_DIR}/cublas/cublas.cpp ${PTXCPU_DIR}/cublas/gemm.cpp)
  target_compile_options(ptxcpu_cublas PRIVATE -O3 -march=x86-64-v3 -Wall -Wextra)
  target_link_libraries(ptxcpu_cublas PRIVATE ptxcpu)
endfunction()

function(ptxcpu_add_library target)
  cmake_parse_arguments(ARG "CHECK;COUNT;ALLOW_UNSUPPORTED" "ARCH" "SOURCES;INCLUDES;DEFINES;OPTIONS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ptxcpu_add_library: unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT PTXCPU_FOUND)
    message(FATAL_ERROR "ptxcpu_add_library: nvcc or Python is missing; test PTXCPU_FOUND first")
  endif()
  _ptxcpu_add_runtime()
  if(NOT ARG_ARCH)
    set(ARG_ARCH 80)
  endif()
  set(flags --nvcc ${PTXCPU_NVCC} --cxx ${PTXCPU_CXX} --arch ${ARG_ARCH} --optimize ${PTXCPU_OPTIMIZE})
  if(ARG_CHECK)
    list(APPEND flags --check)
  endif()
  if(ARG_COUNT)
    list(APPEND flags --count)
  endif()
  if(ARG_ALLOW_UNSUPPORTED)
    list(APPEND flags --allow-unsupported)
  endif()
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    list(APPEND flags --launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  set(nvcc_flags -O3 -std=c++20 ${ARG_OPTIONS})
  foreach(directory IN LISTS ARG_INCLUDES)
    get_filename_component(directory ${directory} ABSOLUTE)
    list(APPEND nvcc_flags -I${directory})
  endforeach()
  foreach(definition IN LISTS ARG_DEFINES)
    list(APPEND nvcc_flags -D${definition})
  endforeach()
  list(TRANSFORM nvcc_flags PREPEND "--nvcc-flag=")

  file(GLOB tool CONFIGURE_DEPENDS ${PTXCPU_DIR}/compile_cu.py ${PTXCPU_DIR}/translator/*.py ${PTXCPU_DIR}/runtime/*.h)
  set(objects)
  foreach(source IN LISTS ARG_SOURCES)
    get_filename_component(path ${source} ABSOLUTE)
    get_filename_component(name ${source} NAME_WE)
    string(MD5 hash ${path})
    string(SUBSTRING ${hash} 0 6 hash)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.ptxcpu/${name}_${hash}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/${target}.ptxcpu
      COMMAND ${Python3_EXECUTABLE} -B ${PTXCPU_DIR}/compile_cu.py ${path} ${object} --depfile ${object}.dep
              ${flags} ${nvcc_flags}
      DEPENDS ${path} ${tool}
      DEPFILE ${object}.dep
      COMMENT "Translating ${name}.cu for the CPU (compute_${ARG_ARCH})"
      VERBATIM COMMAND_EXPAND_LISTS)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    list(APPEND objects ${object})
  endforeach()
  add_library(${target} STATIC ${objects})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PUBLIC ptxcpu)
  target_include_directories(${target} INTERFACE ${ARG_INCLUDES})
endfunction()
