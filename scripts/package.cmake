# Packages of what is installed: nacre_VERSION_ARCH.deb, and a .tar.gz. Included by
# the top-level CMakeLists.txt. ./bootstrap package builds for them, and runs
#
#   cpack --config BUILD/CPackConfig.cmake -G "DEB;TGZ" -B FOLDER
#
# Two builds of the same sources by the same tools give the same bytes if
# SOURCE_DATE_EPOCH is set: scripts/reproducible compares them.
set(CPACK_PACKAGE_NAME nacre)
set(CPACK_PACKAGE_VERSION ${NACRE_VERSION})
set(CPACK_PACKAGE_CONTACT "The Nacre authors <nacre@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "interactive shell for tensors")
set(CPACK_PACKAGE_DESCRIPTION
  "An interactive shell for tensors with an embedded Lua 5.4, a module for Lua
and a library for C: operations under PyTorch's names, gradients, networks,
files of NumPy, PyTorch and HDF5.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 1)

string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_SYSTEM_NAME ${system}-${CMAKE_SYSTEM_PROCESSOR})

# What is linked is found in the files; what is opened at first use is written
# here.
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas0 | libblas3")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "libdnnl3 | libdnnl2, libpng16-16, libturbojpeg0, libzip4, libhdf5-103-1, librsvg2-2, \
libzmq5, lua5.4")

# Files of a package are as old as SOURCE_DATE_EPOCH says.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/package_files.cmake)
include(CPack)
