# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors

# Installs the build tree and builds and runs tests/consumer against it in three ways: find_package, pkg-config, and
# add_subdirectory.   cmake -DBUILD=... -DSOURCE=... -DWORK=... -DHDF5=ON|OFF -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  message(STATUS "${output}")
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(consumer ${SOURCE}/tests/consumer)
set(options -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER})
set(programs robot kernel learner)
if(HDF5)
  list(APPEND programs loader)
endif()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/package -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Release
    ${options})
run(${CMAKE_COMMAND} --build ${WORK}/package --target ${programs})

file(GLOB_RECURSE pc ${WORK}/prefix/*/pwdice-policy.pc)
get_filename_component(pc_directory "${pc}" DIRECTORY)
set(pkg_config "PKG_CONFIG_PATH=${pc_directory}:$PKG_CONFIG_PATH pkg-config --cflags --libs")
foreach(program IN LISTS programs)
  run(${WORK}/package/${program})
  if(program STREQUAL "robot")
    set(how "-std=c++17 ${consumer}/${program}.cpp $(${pkg_config} pwdice-policy)")
  else()
    set(how "-std=c++20 ${consumer}/${program}.cpp $(${pkg_config} --static pwdice)")
  endif()
  run(sh -c "${COMPILER} ${how} -o ${WORK}/${program}_pc")
  run(${WORK}/${program}_pc)
endforeach()

# One SIMD target and no optimisation: this is about CMake, and a user's build of all of it takes minutes.
run(${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/subdirectory -DPWDICE_SOURCE=${SOURCE} -DPWDICE_CUDA=OFF
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-DHWY_COMPILE_ONLY_STATIC ${options})
run(${CMAKE_COMMAND} --build ${WORK}/subdirectory --target robot kernel learner)
run(${WORK}/subdirectory/robot)
run(${WORK}/subdirectory/kernel)
run(${WORK}/subdirectory/learner)
