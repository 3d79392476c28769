# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors

# Installed: the libraries, the headers in the tree's own layout under include/pwdice, a CMake package with one
# component per library, and pkg-config files.
include(CMakePackageConfigHelpers)

get_property(pwdice_components GLOBAL PROPERTY PWDICE_COMPONENTS)
list(TRANSFORM pwdice_components PREPEND pwdice_ OUTPUT_VARIABLE pwdice_targets)
install(TARGETS ${pwdice_targets} EXPORT pwdice_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT pwdice_targets NAMESPACE pwdice:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pwdice)

foreach(layer kernels host datasets models)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${layer}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pwdice/${layer}
          FILES_MATCHING PATTERN "*.h" PATTERN "cpu" EXCLUDE PATTERN "cuda" EXCLUDE PATTERN "backends.h" EXCLUDE)
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/pwdiceConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/pwdiceConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pwdice)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/pwdiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pwdiceConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/pwdiceConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pwdice)

# pwdice.pc is everything there is; pwdice-policy.pc is what a robot links.
set(pwdice_pc_libs "")
foreach(component IN LISTS pwdice_components)
  list(PREPEND pwdice_pc_libs -lpwdice_${component})
endforeach()
list(JOIN pwdice_pc_libs " " pwdice_pc_libs)
# What static libraries need at the link: modules, and libraries without one.
set(pwdice_pc_requires libhwy)
if(PWDICE_HDF5)
  string(APPEND pwdice_pc_requires ", hdf5, libdeflate")
endif()
set(pwdice_pc_private -ldl)
if(PWDICE_CUDA_FOUND)
  string(PREPEND pwdice_pc_private "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -lpthread ")
endif()
file(RELATIVE_PATH pwdice_pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})  # lib may be lib/<architecture>
configure_file(${CMAKE_CURRENT_LIST_DIR}/pwdice.pc.in ${CMAKE_CURRENT_BINARY_DIR}/pwdice.pc @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/pwdice-policy.pc.in ${CMAKE_CURRENT_BINARY_DIR}/pwdice-policy.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pwdice.pc ${CMAKE_CURRENT_BINARY_DIR}/pwdice-policy.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
