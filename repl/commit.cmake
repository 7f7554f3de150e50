# The commit that the program was built from. Included, it gives
#
#   nacre_commit(OUTPUT DEPENDS...)
#
# which has OUTPUT written at build time: sh_commit, " (0978707)", with -dirty
# if the checkout was modified, or "" without git. It is asked for again when
# HEAD moves, which git's log of HEAD shows, and when one of DEPENDS is built.
# Run as a script (cmake -P) it is what writes; a text that is the same is not
# written again, so that nothing is compiled for it.

function(nacre_commit output)
  find_package(Git QUIET)
  set(log "")
  # A tarball may lie in the repository of something else.
  if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
    execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE log
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    get_filename_component(log "${log}" ABSOLUTE
      BASE_DIR ${PROJECT_SOURCE_DIR})
    if(NOT EXISTS ${log})
      set(log "")
    endif()
  else()
    set(GIT_EXECUTABLE "")
  endif()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DGIT=${GIT_EXECUTABLE}" -DOUTPUT=${output}
            -DSOURCE=${PROJECT_SOURCE_DIR} -P ${NACRE_COMMIT_SCRIPT}
    DEPENDS ${ARGN} ${log} ${NACRE_COMMIT_SCRIPT}
    COMMENT "Asking git for the commit"
    VERBATIM)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(NACRE_COMMIT_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  return()
endif()

set(commit "")
if(GIT)
  execute_process(
    COMMAND ${GIT} describe --always --dirty --exclude=*
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(commit)
  set(commit " (${commit})")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"/* Written by commit.cmake. */
#include \"repl/host/repl.h\"

const char sh_commit[] = \"${commit}\";
")
