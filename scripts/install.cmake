# What is installed. Included by the top-level CMakeLists.txt.
#
#   cmake --install BUILD --prefix DIR
#     bin/nacre, lib/nacre/libnacre_cuda*.so, the manual page and completions
#                              (component program)
#     lib/lua/5.4/nacre.so     (component module)
#     lib/libnacre.so, include/nacre/tensors.h, what pkg-config and CMake's
#     find_package need        (component library)
#
# PREFIX/lib/nacre/installed_files.txt lists the files, and the folders that were
# made for them: ./bootstrap uninstall.
set(NACRE_LUA_CMODDIR lib/lua/5.4 CACHE STRING
  "where the module for Lua is installed, below the prefix or as a full path")

# First: the folders that others made. None of ours lies deeper in theirs.
foreach(component program module library)
  install(CODE [[
    set(top ${CMAKE_INSTALL_PREFIX})
    file(GLOB folders_before LIST_DIRECTORIES true ${top} ${top}/*/
      ${top}/*/*/ ${top}/*/*/*/)
    ]] COMPONENT ${component})
endforeach()

# `cmake --install' builds nothing, and ./bootstrap run builds the program alone:
# what is missing is built first.
include(ProcessorCount)
ProcessorCount(cores)
add_custom_target(to_install)
foreach(target nacre:program nacre_cuda:program nacre_cuda_emulated:program
    nacre_module:module nacre_library:library)
  string(REGEX MATCH "(.*):(.*)" all ${target})
  set(target ${CMAKE_MATCH_1})
  set(component ${CMAKE_MATCH_2})
  if(TARGET ${target})
    add_dependencies(to_install ${target})
    install(CODE "
      if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
        execute_process(COMMAND \"${CMAKE_COMMAND}\" --build
          \"${PROJECT_BINARY_DIR}\" --target to_install --parallel ${cores}
          COMMAND_ERROR_IS_FATAL ANY)
      endif()" COMPONENT ${component})
  endif()
endforeach()

foreach(plugin nacre_cuda nacre_cuda_emulated)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION lib/nacre COMPONENT program)
  endif()
endforeach()

if(NACRE_PROGRAM)
  # The program finds its libraries beside it. The old form of that path also
  # holds for the libraries of libraries, and for those opened later: a BLAS.
  set_target_properties(nacre PROPERTIES INSTALL_RPATH "$ORIGIN/../lib"
    INSTALL_RPATH_USE_LINK_PATH ON)
  if(NOT APPLE)
    target_link_options(nacre PRIVATE -Wl,--disable-new-dtags)
  endif()
  install(TARGETS nacre RUNTIME DESTINATION bin COMPONENT program)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/nacre.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  install(FILES ${PROJECT_SOURCE_DIR}/scripts/completion/nacre.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME nacre COMPONENT program)
  install(FILES ${PROJECT_SOURCE_DIR}/scripts/completion/_nacre
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
  include(${CMAKE_CURRENT_LIST_DIR}/bundle.cmake)
endif()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
  RENAME copyright COMPONENT program)

if(NACRE_MODULE)
  install(TARGETS nacre_module LIBRARY DESTINATION ${NACRE_LUA_CMODDIR}
    COMPONENT module)
endif()

if(NACRE_LIBRARY)
  include(CMakePackageConfigHelpers)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/nacre)
  install(TARGETS nacre_library EXPORT nacre
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(FILES ${PROJECT_SOURCE_DIR}/library/nacre/tensors.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nacre COMPONENT library)
  install(EXPORT nacre FILE nacre-config.cmake NAMESPACE nacre::
    DESTINATION ${package} COMPONENT library)
  write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/nacre-config-version.cmake
    VERSION ${NACRE_VERSION} COMPATIBILITY SameMinorVersion)
  file(RELATIVE_PATH to_include /${CMAKE_INSTALL_LIBDIR}/pkgconfig
    /${CMAKE_INSTALL_INCLUDEDIR})
  configure_file(${PROJECT_SOURCE_DIR}/library/nacre.pc.in
    ${PROJECT_BINARY_DIR}/nacre.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/nacre-config-version.cmake
    DESTINATION ${package} COMPONENT library)
  install(FILES ${PROJECT_BINARY_DIR}/nacre.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endif()

# CMake ends a path that it is to change later with empty elements, which are the
# current folder: what is built has the path of what is installed.
foreach(target nacre nacre_library nacre_module nacre_cuda nacre_cuda_emulated)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
endforeach()

# Last, when all files of a component are there.
foreach(component program module library)
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/installed_files.cmake
    COMPONENT ${component})
endforeach()
