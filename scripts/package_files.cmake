# Run by cpack before it packs. The list of what was installed is left to the
# package manager; a .tar.gz keeps it in itself. The manual page is compressed, as
# Debian wants it. All files get the time SOURCE_DATE_EPOCH; without it they keep
# the times of this build.
file(GLOB_RECURSE lists ${CPACK_TEMPORARY_DIRECTORY}/installed_files.txt)
if(lists)
  file(REMOVE ${lists})
endif()
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/nacre.1)
if(pages)
  execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()
if(NOT "$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  execute_process(COMMAND find ${CPACK_TEMPORARY_DIRECTORY}
    -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +
    COMMAND_ERROR_IS_FATAL ANY)
endif()
