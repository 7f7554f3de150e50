# The program. Included by the top-level CMakeLists.txt.
include(${CMAKE_CURRENT_LIST_DIR}/sources.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/embed.cmake)

if(NACRE_READLINE)
  list(APPEND REPL_SOURCES ${REPL_READLINE_SOURCES})
endif()
list(TRANSFORM REPL_SOURCES PREPEND repl/)
list(TRANSFORM REPL_MAIN PREPEND repl/)
list(TRANSFORM REPL_LUA PREPEND repl/)
nacre_embed(${PROJECT_BINARY_DIR}/embedded.c sh_embedded ${REPL_LUA})
list(TRANSFORM REPL_REFERENCE PREPEND repl/reference/)
nacre_embed(${PROJECT_BINARY_DIR}/reference.c sh_reference ${REPL_REFERENCE})

add_library(nacre_repl STATIC ${REPL_SOURCES} ${PROJECT_BINARY_DIR}/embedded.c
  ${PROJECT_BINARY_DIR}/reference.c)
target_compile_definitions(nacre_repl PUBLIC ${REPL_DEFINITIONS}
  NACRE_READLINE=$<BOOL:${NACRE_READLINE}>)
target_link_libraries(nacre_repl PUBLIC nacre_bindings)
if(NACRE_READLINE)
  target_include_directories(nacre_repl PRIVATE ${READLINE_INCLUDE_DIR})
  target_link_libraries(nacre_repl PRIVATE ${READLINE_LIBRARY})
endif()

include(${CMAKE_CURRENT_LIST_DIR}/commit.cmake)
nacre_commit(${PROJECT_BINARY_DIR}/commit.c nacre_repl nacre_bindings nacre_core
  ${REPL_MAIN})
add_executable(nacre ${REPL_MAIN} ${PROJECT_BINARY_DIR}/commit.c)
target_link_libraries(nacre PRIVATE nacre_repl)
