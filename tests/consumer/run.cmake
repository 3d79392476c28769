# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors

# Installs the build tree and builds tests/consumer against it in three ways: find_package, pkg-config, and
# add_subdirectory (the policy alone, which is quick).   cmake -DBUILD=... -DSOURCE=... -DWORK=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  message(STATUS "${output}")
endfunction()

file(REMOVE_RECURSE ${WORK})
set(consumer ${SOURCE}/tests/consumer)
set(options -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS})

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/package -DCMAKE_PREFIX_PATH=${WORK}/prefix ${options})
run(${CMAKE_COMMAND} --build ${WORK}/package)
run(${WORK}/package/robot)
run(${WORK}/package/learner)

file(GLOB_RECURSE pc ${WORK}/prefix/*/pwdice-policy.pc)
get_filename_component(pc_directory "${pc}" DIRECTORY)
run(sh -c "PKG_CONFIG_PATH=${pc_directory} && export PKG_CONFIG_PATH && ${COMPILER} ${FLAGS} -std=c++17 ${consumer}/robot.cpp $(pkg-config --cflags --libs pwdice-policy) -o ${WORK}/robot_pc")
run(${WORK}/robot_pc)

run(sh -c "PKG_CONFIG_PATH=${pc_directory} && export PKG_CONFIG_PATH && ${COMPILER} ${FLAGS} -std=c++20 ${consumer}/learner.cpp $(pkg-config --cflags --libs --static pwdice) -o ${WORK}/learner_pc")
run(${WORK}/learner_pc)

run(${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/subdirectory -DPWDICE_SOURCE=${SOURCE} -DPWDICE_CUDA=OFF ${options})
run(${CMAKE_COMMAND} --build ${WORK}/subdirectory --target robot)
run(${WORK}/subdirectory/robot)
