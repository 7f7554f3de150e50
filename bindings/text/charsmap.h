/* SPDX-License-Identifier: MIT */
/* charsmap.h - the maps of characters of SentencePiece. */
#ifndef bindings_text_charsmap_h
#define bindings_text_charsmap_h

#include <lua.h>

/* charsmap(bytes): the map; apply_charsmap(map, text): the text with what it
   replaces. */
int nl_new_charsmap(lua_State *L);
int nl_apply_charsmap(lua_State *L);

#endif
