# The bundle: a folder that runs on machines without our packages. Included by
# install.cmake.
#
#   cmake --install BUILD --prefix DIR --component bundle
#     DIR/lib      the shared libraries they need that a machine may lack
#     DIR/lib/nacre  the plug-in of nacre.distributed for each MPI that is here
#     DIR/scripts  DIR/tests

# The C library and the compiler's are everywhere, and so is libcrypto, which is
# large and which only libzip wants; a BLAS, libpng, libturbojpeg and libzip
# are opened by name.
set(BUNDLE_OPENED "")
find_library(NACRE_BUNDLE_BLAS NAMES libopenblas.so.0)
find_library(NACRE_BUNDLE_PNG NAMES libpng16.so.16)
find_library(NACRE_BUNDLE_JPEG NAMES libturbojpeg.so.0)
find_library(NACRE_BUNDLE_ZIP NAMES libzip.so.5 libzip.so.4)
foreach(library ${NACRE_BUNDLE_BLAS} ${NACRE_BUNDLE_PNG} ${NACRE_BUNDLE_JPEG}
        ${NACRE_BUNDLE_ZIP})
  if(library)
    list(APPEND BUNDLE_OPENED ${library})
  endif()
endforeach()
# A plug-in needs the MPI of the other machine, with the binary interface of the
# one here: those of Open MPI 4 and 5, and of MPICH.
find_program(NACRE_MPICC_OPENMPI mpicc.openmpi)
find_program(NACRE_MPICC_MPICH mpicc.mpich)
find_program(NACRE_MPICC mpicc)
set(BUNDLE_MPICC "")
foreach(compiler ${NACRE_MPICC_OPENMPI} ${NACRE_MPICC_MPICH})
  if(compiler)
    list(APPEND BUNDLE_MPICC ${compiler})
  endif()
endforeach()
if(NACRE_MPICC AND NOT BUNDLE_MPICC)
  set(BUNDLE_MPICC ${NACRE_MPICC})
endif()
install(CODE "
  set(BUNDLE_MPICC \"${BUNDLE_MPICC}\")
  set(BUNDLE_PROGRAM \"$<TARGET_FILE:nacre>\")
  set(BUNDLE_OPENED \"${BUNDLE_OPENED}\")" COMPONENT bundle EXCLUDE_FROM_ALL)
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${BUNDLE_PROGRAM}
    LIBRARIES ${BUNDLE_OPENED}
    RESOLVED_DEPENDENCIES_VAR needed
    UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES "^ld-linux"
      "^lib(c|m|mvec|dl|rt|pthread|gcc_s|stdc\\+\\+|crypto)\\.so")
  if(missing)
    message(FATAL_ERROR "libraries are missing: ${missing}")
  endif()
  foreach(path ${needed} ${BUNDLE_OPENED}) # no `library': a component's name
    get_filename_component(name ${path} NAME)
    get_filename_component(real ${path} REALPATH)
    get_filename_component(realname ${real} NAME)
    set(to ${CMAKE_INSTALL_PREFIX}/lib)
    file(INSTALL DESTINATION ${to} TYPE SHARED_LIBRARY FILES ${real})
    if(NOT realname STREQUAL name)
      file(RENAME ${to}/${realname} ${to}/${name})
    endif()
  endforeach()
]] COMPONENT bundle EXCLUDE_FROM_ALL)
install(CODE [[
  foreach(compiler ${BUNDLE_MPICC})
    execute_process(COMMAND ${CMAKE_COMMAND} -E env MPICC=${compiler}
      ${BUNDLE_PROGRAM} --build-mpi=$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/nacre
      OUTPUT_QUIET RESULT_VARIABLE failed)
    if(failed)
      message(WARNING "the bundle has no plug-in for the MPI of ${compiler}")
    endif()
  endforeach()
]] COMPONENT bundle EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts ${PROJECT_SOURCE_DIR}/tests
  DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL USE_SOURCE_PERMISSIONS
  PATTERN "__pycache__" EXCLUDE PATTERN "unit" EXCLUDE PATTERN "fuzz" EXCLUDE
  PATTERN "emulation" EXCLUDE)
# What tests read of the sources.
foreach(file core/operators.def bindings/lib/composed.lua)
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION ${folder}
    COMPONENT bundle EXCLUDE_FROM_ALL)
endforeach()
