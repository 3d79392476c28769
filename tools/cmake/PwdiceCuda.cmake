# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors

# The CUDA backend: whether there is one, what it is compiled with, and how it joins the kernels library.
#   PWDICE_CUDA                 AUTO: when nvcc and CUTLASS are found; ON: or fail; OFF
#   PWDICE_CUDA_ARCHITECTURES   machine code for each, and PTX for the newest, which later devices compile themselves
#   PWDICE_CUTLASS_DIR          CUTLASS headers; also looked for in build/venv, where tools/setup.sh --cuda puts them
#   PWDICE_PTXCPU               run the backend's tests on the CPU (tools/ptxcpu); does not need PWDICE_CUDA

if(NOT PWDICE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "PWDICE_CUDA is '${PWDICE_CUDA}'; it can be AUTO, ON or OFF")
endif()

# tools/test.sh and tools/ptxcpu/ptxcpu.cmake look in the same places.
get_filename_component(pwdice_cudacxx "$ENV{CUDACXX}" DIRECTORY)
find_program(PWDICE_NVCC nvcc HINTS ${pwdice_cudacxx} ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
file(GLOB pwdice_venv_cutlass
     ${PROJECT_SOURCE_DIR}/build/venv/lib/python3*/site-packages/cutlass_library/source/include)
find_path(PWDICE_CUTLASS_DIR cutlass/gemm/kernel/default_gemm_universal.h HINTS ${pwdice_venv_cutlass} ENV CUTLASS_PATH
          PATH_SUFFIXES include DOC "Headers of CUTLASS 2.x or later")

set(supported 75 80 86 87 89 90 100 120)
foreach(arch IN LISTS PWDICE_CUDA_ARCHITECTURES)
  if(NOT arch IN_LIST supported)
    list(JOIN supported ", " supported)
    message(FATAL_ERROR "PWDICE_CUDA_ARCHITECTURES has '${arch}'; supported are ${supported}")
  endif()
endforeach()

set(missing)
if(NOT PWDICE_NVCC)
  list(APPEND missing "nvcc")
endif()
if(NOT PWDICE_CUTLASS_DIR)
  list(APPEND missing "CUTLASS (tools/setup.sh --cuda, or PWDICE_CUTLASS_DIR)")
endif()
list(JOIN missing " and " missing)
if(PWDICE_CUDA STREQUAL "ON" AND missing)
  message(FATAL_ERROR "PWDICE_CUDA is ON, but not found: ${missing}")
endif()
if(PWDICE_CUDA STREQUAL "OFF" OR missing)
  set(PWDICE_CUDA_FOUND FALSE)
else()
  set(PWDICE_CUDA_FOUND TRUE)
endif()
if(missing OR NOT PROJECT_IS_TOP_LEVEL)
  set(ptxcpu_default OFF)
else()
  set(ptxcpu_default ${PWDICE_CUDA_FOUND})
endif()
option(PWDICE_PTXCPU "Run the tests of the CUDA backend on the CPU, through tools/ptxcpu" ${ptxcpu_default})

# Files of the backend that are not an op of their own.
set(PWDICE_CUDA_PARTS cublas gemm gemm_simt gemm_tf32 infonce_sweep_bf16 infonce_sweep_fp32 infonce_sweep_tf32 linear_head
    state transport_paired)
# 554: the conversion of a const view to itself, which a constraint removes. CUTLASS wants relaxed constexpr.
set(PWDICE_NVCC_OPTIONS --expt-relaxed-constexpr --diag-suppress=554)

if(PWDICE_CUDA_FOUND)
  set(CMAKE_CUDA_COMPILER ${PWDICE_NVCC} CACHE FILEPATH "CUDA compiler")
  set(CMAKE_CUDA_ARCHITECTURES 80)  # of CMake's own trials; the backend has options of its own
  enable_language(CUDA)
  # CMake 3.25 does not know the flag of this nvcc for C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  find_package(CUDAToolkit REQUIRED)
endif()

# The -gencode options for a list of architectures. Nothing in the code asks for more than compute_80, so the machine
# code of every architecture from 80 on is made of the same PTX: nvcc parses and optimises twice and not eight times,
# and the tests, which execute compute_75 and compute_80, execute what all machine code is made of.
function(pwdice_gencode result)
  foreach(arch IN LISTS ARGN)
    if(arch LESS 80)
      list(APPEND options "SHELL:-gencode arch=compute_${arch},code=sm_${arch}")
    else()
      list(APPEND real sm_${arch})
    endif()
  endforeach()
  if(real)
    list(JOIN real "," real)
    list(APPEND options "SHELL:-gencode arch=compute_80,code=[${real}]")
  endif()
  list(SORT ARGN COMPARE NATURAL ORDER DESCENDING)
  list(GET ARGN 0 newest)
  list(APPEND options "SHELL:-gencode arch=compute_${newest},code=compute_${newest}")
  set(${result} ${options} PARENT_SCOPE)
endfunction()

# pwdice_add_cuda(<target> <op>...): adds the backend to the library, or the symbols that stand for its absence. The .cu
# files are an object library of their own, so that whoever links the result needs no CUDA language.
function(pwdice_add_cuda target)
  set(sources ${ARGN} ${PWDICE_CUDA_PARTS})
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/cuda/)
  list(TRANSFORM sources APPEND .cu)
  set_property(GLOBAL PROPERTY PWDICE_CUDA_SOURCES ${sources})
  if(NOT PWDICE_CUDA_FOUND)
    if(PWDICE_CUDA STREQUAL "AUTO")
      message(STATUS "pwdice: no CUDA backend, not found: ${missing}")
    endif()
    target_sources(${target} PRIVATE no_cuda.cpp)
    return()
  endif()
  message(STATUS "pwdice: CUDA backend for ${PWDICE_CUDA_ARCHITECTURES}")
  list(JOIN PWDICE_CUDA_ARCHITECTURES " " architectures)
  add_library(pwdice_cuda OBJECT ${sources})
  set_target_properties(pwdice_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON
                        CUDA_ARCHITECTURES OFF)
  pwdice_gencode(gencode ${PWDICE_CUDA_ARCHITECTURES})
  target_include_directories(pwdice_cuda SYSTEM PRIVATE ${PWDICE_CUTLASS_DIR})
  target_compile_definitions(pwdice_cuda PRIVATE "PWDICE_CUDA_ARCHITECTURE_LIST=\"${architectures}\"")
  target_compile_options(pwdice_cuda PRIVATE ${gencode} ${PWDICE_NVCC_OPTIONS} -Xcompiler=-Wall,-Wextra)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:pwdice_cuda>)
  # Static runtime: the program starts where there is no driver.
  target_link_libraries(${target} PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
endfunction()
