/* SPDX-License-Identifier: MIT */
/* lua_library.h - the Lua code of the binding (lib/). */
#ifndef bindings_lua_library_h
#define bindings_lua_library_h

#include "bindings/binding.h"

typedef struct Embedded {     /* a Lua file, see embed.cmake */
  const char *name;
  const unsigned char *text;
  size_t size;
} Embedded;

/* By what loads them: C by name, composed.c as a whole (functions of nacre;
   nacre.nn, nacre.optim and the like), or `require'. */
extern const Embedded nl_embedded[], nl_functions[], nl_modules[], nl_display[];
/* The Lua files take their globals now, not when the first of them is loaded:
   what scripts assign to these names later does not concern them.
   [-0, +0, m] */
void nl_open_embedded(lua_State *L);
/* In the program: foreign code, of Python for one, may have set a locale in
   which numbers have another point than ours (nc_keep_point). */
void nl_keep_point(void);
/* Pushes an embedded Lua file as a function. [-0, +1, e] */
void nl_pushembedded(lua_State *L, const char *name);
/* Pushes what an embedded Lua file returns, which runs once for each Lua state,
   with a table of these functions and of `fail' (nl_pushfail). [-0, +1, e] */
void nl_push_result_of(lua_State *L, const char *name,
                       const luaL_Reg functions[]);
/* Functions for lib/data/summary_writer.lua (io/event_files.c). */
extern const luaL_Reg nl_event_functions[];
/* Pushes the table nacre (nacre.c). [-0, +1, -] */
void nl_pushlibrary(lua_State *L);
/* Loads nn.Module and what is made of it (bindings/lib/modules), unless it is
   loaded; returns whether it did. [-0, +0, e] */
int nl_load_modules(lua_State *L);
/* Pushes all[name] of the Lua files, for functions that C calls.
   [-0, +1, e] */
int nl_push_module_function(lua_State *L, const char *name);
/* Sets functions of module_call.c in the table on top. [-0, +0, m] */
void nl_push_module_functions(lua_State *L);
/* Sets in the table on top, if an nn.Module runs, which does: module, "fc1:
   Linear(64, 128), of Net", path, "fc1", and network, the module Net.
   [-0, +0, m] */
void nl_set_modules(lua_State *L);
/* Pushes the path of the module that runs, "block[1].conv", and the class of
   the network, and returns 2, or 0 if none does. [-0, +(0|2), m] */
int nl_push_place(lua_State *L);
/* Pushes fail(op, text, hint, role, t, ...), which raises an error.
   [-0, +1, -] */
void nl_pushfail(lua_State *L);

/* Operations written in Lua (composed.c). Push the function of a name, or the
   description of the function whose name, or which itself, is at index i;
   both return 0 if there is none, nl_pushcomposed with nothing pushed.
   [-0, +(0|1), e] */
int nl_pushcomposed(lua_State *L, const char *name, int where);
int nl_composedinfo(lua_State *L, int i);
/* Appends their names to the list on top, which has n elements; returns the new
   number. `all' includes names with a dot. [-0, +0, e] */
int nl_composednames(lua_State *L, int n, int all);
/* Creates all of them in the table on top. [-0, +0, e] */
void nl_makecomposed(lua_State *L, int where);

#endif
