# Run by cpack before it packs: gives all files the time SOURCE_DATE_EPOCH. Without
# it they keep the times of this build.
if(NOT "$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  execute_process(COMMAND find ${CPACK_TEMPORARY_DIRECTORY}
    -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +
    COMMAND_ERROR_IS_FATAL ANY)
endif()
