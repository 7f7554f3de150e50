# SPDX-License-Identifier: MIT
#
# Lua modules as C arrays.  Included, it gives
#
#   nacre_embed(OUTPUT SYMBOL FILE...)
#
# NACRE_EMBED_HEADER, if set, names the header that declares SYMBOL.
# which has OUTPUT written at build time: an array SYMBOL of {name, text, size}
# that ends in {NULL, NULL, 0}, where FILE shell.lua is named "nacre.shell".
# Run as a script (cmake -P) it is what writes.

function(nacre_embed output symbol)
  set(files ${ARGN})
  if(NOT NACRE_EMBED_HEADER)
    set(NACRE_EMBED_HEADER repl/repl.h)
  endif()
  list(TRANSFORM files PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/"
       REGEX "^[^/]")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DOUTPUT=${output}
            -DSYMBOL=${symbol} -DHEADER=${NACRE_EMBED_HEADER} -P ${NACRE_EMBED_SCRIPT}
    DEPENDS ${files} ${NACRE_EMBED_SCRIPT}
    COMMENT "Embedding Lua modules"
    VERBATIM)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(NACRE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  return()
endif()

set(arrays "")
set(rows "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..............................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays
         "static const unsigned char text_${name}[] = {\n${bytes}\n};\n\n")
  string(APPEND rows
         "  {\"nacre.${name}\", text_${name}, sizeof text_${name}},\n")
endforeach()

file(WRITE ${OUTPUT}
"/* Written by embed.cmake. */
#include \"${HEADER}\"

${arrays}const Embedded ${SYMBOL}[] = {
${rows}  {NULL, NULL, 0},
};
")
