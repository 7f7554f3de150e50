# SPDX-License-Identifier: MIT
#
# Lua modules as C arrays.  Included, it gives
#
#   nacre_embed_files(SYMBOL FILE...)     adds files of this folder to SYMBOL
#   nacre_embed_folders(SYMBOL FOLDER...) adds all Lua files of these folders
#   nacre_embed(TARGET SYMBOL HEADER)     compiles SYMBOL into TARGET
#
# SYMBOL, which HEADER declares, is an array of {name, text, size} that ends in
# {NULL, NULL, 0}; the name of FILE shell.lua is "nacre.shell", that of a source
# in C its path, "core/dtype.h".  A text ends in a 0, which size leaves out.  The
# C file is written at build time by this file, run as a script (cmake -P).

function(nacre_embed_files symbol)
  foreach(file ${ARGN})
    get_filename_component(path ${file} ABSOLUTE)
    set_property(GLOBAL APPEND PROPERTY ${symbol} ${path})
  endforeach()
endfunction()

function(nacre_embed_folders symbol)
  foreach(folder ${ARGN})
    file(GLOB files CONFIGURE_DEPENDS ${folder}/*.lua)
    nacre_embed_files(${symbol} ${files})
  endforeach()
endfunction()

function(nacre_embed target symbol header)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_FILE})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
  get_property(files GLOBAL PROPERTY ${symbol})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DOUTPUT=${output}
            -DSYMBOL=${symbol} -DHEADER=${header}
            -DROOT=${PROJECT_SOURCE_DIR} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding ${symbol}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
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
         "static const unsigned char text_${name}[] = {\n${bytes}\n0};\n\n")
  set(key "nacre.${name}")
  if(file MATCHES "\\.(c|h|def|inc)$")
    file(RELATIVE_PATH key ${ROOT} ${file})
  endif()
  string(APPEND rows "  {\"${key}\", text_${name}, sizeof text_${name} - 1},\n")
endforeach()

file(WRITE ${OUTPUT}
"/* Written by embed.cmake. */
#include \"${HEADER}\"

${arrays}const Embedded ${SYMBOL}[] = {
${rows}  {NULL, NULL, 0},
};
")
