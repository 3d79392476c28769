# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors

# What every target of the project is compiled with. Never -ffast-math: it removes the rounding tricks that exp
# and the compensated sums rely on.
add_library(pwdice_flags INTERFACE)
target_compile_features(pwdice_flags INTERFACE cxx_std_20)
target_compile_options(pwdice_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-ffp-contract=off>)
# GCC 12 sees an overlap in the standard library's own string concatenation (GCC bug 105651).
target_compile_options(pwdice_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(PWDICE_WERROR)
  target_compile_options(pwdice_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(PWDICE_SANITIZE)
  target_compile_options(pwdice_flags INTERFACE -fsanitize=${PWDICE_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(pwdice_flags INTERFACE -fsanitize=${PWDICE_SANITIZE})
endif()

if(PWDICE_FUZZ)  # coverage for libFuzzer in everything it may reach
  target_compile_options(pwdice_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# pwdice_library(<component> SOURCES ... LINK ... PRIVATE_LINK ...): one library per directory, known to users as
# pwdice::<component>.
function(pwdice_library component)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  set(target pwdice_${component})
  add_library(${target} ${ARG_SOURCES})
  add_library(pwdice::${component} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${component} POSITION_INDEPENDENT_CODE ON
                        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pwdice>)
  target_link_libraries(${target} PUBLIC ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:pwdice_flags> ${ARG_PRIVATE_LINK})
  set_property(GLOBAL APPEND PROPERTY PWDICE_COMPONENTS ${component})
endfunction()
