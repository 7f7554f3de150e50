/* SPDX-License-Identifier: MIT */
/*
** autograd.c - gradients: fields and methods of tensors, backward, hooks,
** custom functions, and recording on and off. autograd.lua has the rest of
** nacre.autograd.
**
** The core calls Lua functions (hooks and custom backward functions) through
** protected calls, so no longjmp crosses the core. The error of such a function
** is saved in the registry and raised again, unchanged, by the binding function
** that called the core.
*/
#include <string.h>

#include "bindings/binding.h"

/*
** Lua functions that the core calls
*/
#define NODE "nacre.node" /* the node of a custom function */
#define FUNCTION "nacre.grad_fn"
#define RECORDING "nacre.recording"

static lua_State *running; /* the state in which backward runs, or NULL */
/* its address is the registry key of the saved error */
static const char raised;

/* Saves the error on top for check(). Returns the status that stops the core.
   [-1, +0, m] */
static int failed(lua_State *L) {
  lua_rawsetp(L, LUA_REGISTRYINDEX, &raised);
  return nc_fail(NC_EVALUE, "a function of the program failed");
}

/* As nl_check, but raises the saved error if there is one. [-0, +0, e] */
static int check(lua_State *L, int r) {
  if (r == NC_OK) return 1;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &raised) == LUA_TNIL) {
    lua_pop(L, 1);
    return nl_check(L, r);
  }
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &raised);
  return lua_error(L);
}

/* Calls f with `data' as a light userdata, in a protected call. Returns a
   status. */
static int protect(lua_CFunction f, void *data) {
  lua_State *L = running;
  if (!lua_checkstack(L, 8))
    return nc_fail(NC_ENOMEM, "no room on Lua's stack");
  lua_pushcfunction(L, f);
  lua_pushlightuserdata(L, data);
  return lua_pcall(L, 1, 0, 0) == LUA_OK ? NC_OK : failed(L);
}

/* Pushes a tensor userdata with a new reference to t. [-0, +1, m] */
static void pushtensor(lua_State *L, Tensor *t) {
  Tensor **box = nl_newbox(L);
  nc_retain(*box = t);
  nl_result(L, -1);
}

/*
** Hooks
*/
typedef struct HookCall {
  const Ref *f;
  Tensor **g;
} HookCall;

/* Calls the hook with the gradient; replaces the gradient if the hook returns a
   tensor. Runs in a protected call. */
static int hook(lua_State *L) {
  HookCall *c = lua_touserdata(L, 1);
  Tensor *t;
  if (!nl_pushref(L, c->f)) return 0;
  pushtensor(L, *c->g);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) return 0;
  if ((t = nl_totensor(L, -1)) == NULL)
    return nl_error(L, "register_hook",
                    "a hook gives a tensor or nothing, "
                    "not a %s",
                    nl_typename(L, -1));
  nc_retain(t);
  nc_release(*c->g);
  *c->g = t;
  return 0;
}

/* The callback of the core: calls the Lua function with *g. */
static int callhook(void *data, Tensor **g) {
  HookCall c = { data, g };
  return protect(hook, &c);
}

static int removehook(lua_State *L) {
  nc_removehook(*(Hook **)luaL_checkudata(L, 1, "nacre.hook"));
  return 0;
}

static int freehook(lua_State *L) {
  Hook **h = luaL_checkudata(L, 1, "nacre.hook");
  if (*h) nc_releasehook(*h);
  *h = NULL;
  return 0;
}

/* Returns a handle, a userdata that owns the hook's registration; the hook
   itself is a Ref that the core frees with nl_dropref. */
static int register_hook(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1);
  Hook **h;
  Ref *f;
  if (!lua_isfunction(L, 2))
    return nl_error(L, "register_hook", "a hook is a function, not a %s",
                    nl_typename(L, 2));
  h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = NULL;
  if (luaL_newmetatable(L, "nacre.hook")) {
    lua_pushcfunction(L, freehook);
    lua_setfield(L, -2, "__gc");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, removehook);
    lua_setfield(L, -2, "remove");
    lua_setfield(L, -2, "__index");
  }
  lua_setmetatable(L, -2);
  f = nl_newref(L, 2, NULL);
  int r = nc_addhook(t, h);
  if (r != NC_OK) {
    nl_dropref(f);
    nc_error_op("register_hook");
    if (nc_lasterror()->n == 0) nc_error_operand("self", t);
    return nl_check(L, r);
  }
  (*h)->data = f;
  (*h)->drop = nl_dropref;
  (*h)->call = callhook;
  nl_maycycle(L, 1);
  return 1;
}

/*
** Backward
*/
int nl_inbackward(void) {
  return running != NULL;
}

/* Calls nc_backward with this state as the one that runs hooks. Returns a
   status. */
static int run(lua_State *L, const Backward *b) {
  lua_State *before = running;
  int r;
  running = L;
  r = nc_backward(b);
  running = before;
  return r;
}

#define BACKWARD                                       \
  "self, gradient:tensor=nil, retain_graph:bool=nil, " \
  "create_graph:bool=false, inputs:tensors=nil"

static int backward(lua_State *L) {
  static Signature s;
  const int64_t before = nc_memory.since;
  Args a;
  nl_args(L, &s, "backward", BACKWARD, &a);
  const Backward b = { .n = 1,
                       .output = &a.arg[0].t,
                       .given = &a.arg[1].t,
                       .create = (int)a.arg[3].s.i,
                       .retain =
                           (int)(a.arg[2].given ? a.arg[2].s.i : a.arg[3].s.i),
                       .ninput = a.arg[4].given ? a.arg[4].n : 0,
                       .input = a.arg[4].tensors };
  if (a.arg[4].given && a.arg[4].n == 0)
    return nl_error(L, "backward", "the list of inputs is empty");
  check(L, run(L, &b));
  nl_pace(L, nc_memory.since - before);
  return 0;
}

/* Pushes an array with the tensors of the list at index i; an element that is
   nil or false becomes NULL. [-0, +1, e] */
static Tensor **list(lua_State *L, int i, int n, const char *what) {
  Tensor **t = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *t, 0);
  for (int k = 0; k < n; k++) {
    int type = lua_rawgeti(L, i, k + 1);
    t[k] = nl_totensor(L, -1);
    if (t[k] == NULL && type != LUA_TNIL && type != LUA_TBOOLEAN)
      nl_error(L, "grad", "%s %d is a %s, not a tensor", what, k + 1,
               nl_typename(L, -1));
    lua_pop(L, 1);
  }
  return t;
}

/* _backward(outputs, gradients or nil, inputs or nil, retain, create,
   accumulate). With inputs it returns the list of their gradients, false for
   none, unless `accumulate' adds them to the grad fields. */
static int tapebackward(lua_State *L) {
  const int64_t before = nc_memory.since;
  const int n = lua_istable(L, 1) ? (int)lua_rawlen(L, 1) : 0;
  const int ninput = lua_istable(L, 3) ? (int)lua_rawlen(L, 3) : 0;
  Backward b = { .n = n,
                 .retain = lua_toboolean(L, 4),
                 .create = lua_toboolean(L, 5),
                 .ninput = ninput };
  Tensor ***box;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 6);
  luaL_checkstack(L, ninput + 12, NULL);
  b.output = list(L, 1, n, "output");
  for (int k = 0; k < n; k++)
    if (b.output[k] == NULL)
      return nl_error(L, "grad", "output %d is no tensor", k + 1);
  if (lua_istable(L, 2)) b.given = list(L, 2, n, "gradient");
  if (!lua_istable(L, 3)) {
    check(L, run(L, &b));
    return 0;
  }
  b.input = list(L, 3, ninput, "input");
  for (int k = 0; k < ninput; k++)
    if (b.input[k] == NULL)
      return nl_error(L, "grad", "input %d is no tensor", k + 1);
  if (lua_toboolean(L, 6)) {
    check(L, run(L, &b));
    return 0;
  }
  b.result = lua_newuserdatauv(L, (size_t)(ninput + 1) * sizeof *b.result, 0);
  memset(b.result, 0, (size_t)(ninput + 1) * sizeof *b.result);
  box = lua_newuserdatauv(L, (size_t)(ninput + 1) * sizeof *box, 0);
  lua_createtable(L, ninput, 0);
  /* create the userdata first; the core fills them */
  for (int k = 0; k < ninput; k++) {
    box[k] = nl_newbox(L);
    lua_rawseti(L, -2, k + 1);
  }
  const int r = run(L, &b);
  if (r != NC_OK && strcmp(nc_lasterror()->op, "backward") == 0)
    nc_error_op("grad");
  for (int k = 0; k < ninput; k++) *box[k] = b.result[k];
  check(L, r);
  for (int k = 0; k < ninput; k++) {
    if (b.result[k]) continue;
    lua_pushboolean(L, 0);
    lua_rawseti(L, -2, k + 1);
  }
  nl_pace(L, nc_memory.since - before);
  return 1;
}

/*
** Custom functions
*/
typedef struct CustomCall {
  const Ref *f;
  Tensor *const *g;
  Tensor **d;
  const int *need;
} CustomCall;

/* Calls f(gradients, needs) in a protected call. f returns a list of gradients,
   with false or nil for none. */
static int custom(lua_State *L) {
  CustomCall *c = lua_touserdata(L, 1);
  int nout, nin;
  if (!nl_pushref(L, c->f))
    return nl_error(L, "backward", "a custom function was collected");
  lua_getiuservalue(L, -1, 1); /* { function, nin, nout } */
  lua_rawgeti(L, -1, 2);
  nin = (int)lua_tointeger(L, -1);
  lua_rawgeti(L, -2, 3);
  nout = (int)lua_tointeger(L, -1);
  lua_pop(L, 2);
  lua_rawgeti(L, -1, 1);
  lua_createtable(L, nout, 0);
  for (int i = 0; i < nout; i++) {
    if (c->g[i]) pushtensor(L, c->g[i]);
    else lua_pushboolean(L, 0);
    lua_rawseti(L, -2, i + 1);
  }
  lua_createtable(L, nin, 0);
  for (int i = 0; i < nin; i++) {
    lua_pushboolean(L, c->need[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_call(L, 2, 1);
  for (int i = 0; i < nin; i++) {
    lua_rawgeti(L, -1, i + 1);
    Tensor *t = nl_totensor(L, -1);
    if (t == NULL && lua_toboolean(L, -1))
      return nl_error(L, "backward",
                      "gradient %d of a custom function is a "
                      "%s, not a tensor",
                      i + 1, nl_typename(L, -1));
    if (t && c->need[i]) nc_retain(c->d[i] = t);
    lua_pop(L, 1);
  }
  return 0;
}

/* Called when the node is freed: saved tensors are no longer available. */
static void dropcustom(void *data) {
  *((Ref *)data)->node = NULL;
  nl_dropref(data);
}

int nl_isref(void (*drop)(void *)) {
  return drop == nl_dropref || drop == dropcustom;
}

/* The callback of the core: g are the gradients of the outputs, d[] receives
   those of the inputs that need one. */
static int callcustom(void *data, Tensor *const g[], Tensor *d[],
                      const int need[]) {
  CustomCall c = { data, g, d, need };
  return protect(custom, &c);
}

/* _custom(name, inputs, outputs, saved, backward): records a node that connects
   outputs to inputs. Returns the node, for _saved, or nothing if nothing was
   recorded. */
static int newcustom(lua_State *L) {
  for (int i = 2; i <= 4; i++) luaL_checktype(L, i, LUA_TTABLE);
  luaL_checktype(L, 5, LUA_TFUNCTION);
  const int nin = (int)lua_rawlen(L, 2), nout = (int)lua_rawlen(L, 3);
  const int nsaved = (int)lua_rawlen(L, 4);
  Custom c = { .name = luaL_checkstring(L, 1),
               .backward = callcustom,
               .drop = dropcustom };
  Tensor **in, **out, **saved;
  Node **node;
  lua_settop(L, 5);
  in = list(L, 2, nin, "input");
  out = list(L, 3, nout, "output");
  saved = list(L, 4, nsaved, "saved tensor");
  /* the user value holds what custom() needs */
  node = lua_newuserdatauv(L, sizeof *node, 1);
  *node = NULL;
  luaL_newmetatable(L, NODE);
  lua_setmetatable(L, -2);
  const int held = lua_gettop(L);
  lua_createtable(L, 3, 0);
  lua_pushvalue(L, 5);
  lua_rawseti(L, -2, 1);
  lua_pushinteger(L, nin);
  lua_rawseti(L, -2, 2);
  lua_pushinteger(L, nout);
  lua_rawseti(L, -2, 3);
  lua_setiuservalue(L, -2, 1);
  c.data = nl_newref(L, -1, node);
  nl_check(L, nc_custom(node, &c, in, nin, out, nout, saved, nsaved));
  for (int i = 0; i < nout; i++) {
    if (lua_rawgeti(L, 3, i + 1) == LUA_TUSERDATA) nl_maycycle(L, -1);
    lua_pop(L, 1);
  }
  lua_settop(L, held);
  return *node != NULL;
}

/* _saved(node, i): the i-th saved tensor */
static int saved(lua_State *L) {
  Node **node = luaL_checkudata(L, 1, NODE);
  Tensor **box;
  if (*node == NULL) return nl_error(L, "saved_tensors", "the graph is gone");
  box = nl_newbox(L);
  nl_check(L, nc_customsaved(box, *node, (int)luaL_checkinteger(L, 2) - 1));
  if (*box == NULL) lua_pushnil(L);
  return 1;
}

/*
** Recording on and off
*/
static int restore(lua_State *L) {
  nc_gradoff = *(int *)luaL_checkudata(L, 1, RECORDING);
  return 0;
}

/* Calls fn with recording off or on. A to-be-closed variable restores the
   previous mode when fn returns or raises an error. [-?, +n, e] */
static int with(lua_State *L, const char *name, int off) {
  int *before;
  if (!lua_isfunction(L, 1) &&
      (nl_totensor(L, 1) || luaL_getmetafield(L, 1, "__call") == LUA_TNIL)) {
    nc_fail(NC_EVALUE, "takes a function, not %s%s",
            lua_isnone(L, 1) ? "" : "a ",
            lua_isnone(L, 1) ? "nothing" : nl_typename(L, 1));
    nc_error_op(name);
    nc_hint("nacre.%s(function() ... end)", name);
    return nl_check(L, NC_EVALUE);
  }
  if (!lua_isfunction(L, 1)) lua_pop(L, 1);
  before = lua_newuserdatauv(L, sizeof *before, 0);
  *before = nc_gradoff;
  if (luaL_newmetatable(L, RECORDING)) {
    lua_pushcfunction(L, restore);
    lua_setfield(L, -2, "__close");
  }
  lua_setmetatable(L, -2);
  lua_insert(L, 1);
  lua_toclose(L, 1);
  nc_gradoff = off;
  lua_call(L, lua_gettop(L) - 2, LUA_MULTRET);
  return lua_gettop(L) - 1;
}

static int no_grad(lua_State *L) {
  return with(L, "no_grad", 1);
}

static int enable_grad(lua_State *L) {
  return with(L, "enable_grad", 0);
}

static int set_grad_enabled(lua_State *L) {
  luaL_checktype(L, 1, LUA_TBOOLEAN);
  nc_gradoff = !lua_toboolean(L, 1);
  return 0;
}

static int is_grad_enabled(lua_State *L) {
  lua_pushboolean(L, nc_gradoff == 0);
  return 1;
}

/*
** Tensors
*/
/* As nl_check; adds the operation and self to an error that lacks them.
   [-0, +0, e] */
static int named(lua_State *L, const char *op, int r) {
  if (r != NC_OK && nc_lasterror()->op[0] == '\0') nc_error_op(op);
  if (r != NC_OK && nc_lasterror()->n == 0)
    nc_error_operand("self", nl_checktensor(L, 1));
  return nl_check(L, r);
}

#define REQUIRES "self, requires_grad=true -> tensor"

static int requires_grad_(lua_State *L) {
  static Signature s;
  Args a;
  nl_args(L, &s, "requires_grad_", REQUIRES, &a);
  named(L, s.name, nc_require(a.arg[0].t, (int)a.arg[1].s.i));
  lua_settop(L, 1);
  return 1;
}

static int retain_grad(lua_State *L) {
  named(L, "retain_grad", nc_retaingrad(nl_checktensor(L, 1)));
  return 0;
}

static int detach(lua_State *L) {
  /* read before nl_newbox changes the stack */
  Tensor *t = nl_checktensor(L, 1);
  named(L, "detach", nc_detach(nl_newbox(L), t));
  return 1;
}

static int detach_(lua_State *L) {
  named(L, "detach_", nc_detachinto(nl_checktensor(L, 1)));
  lua_settop(L, 1);
  return 1;
}

/* __tostring of grad_fn. The name of an internal operation loses its "_". */
static int functiontext(lua_State *L) {
  const char *name;
  luaL_checkudata(L, 1, FUNCTION);
  lua_getiuservalue(L, 1, 1);
  name = lua_tostring(L, -1);
  lua_pushfstring(L, "<%s>", name[0] == '_' ? name + 1 : name);
  return 1;
}

static int functionequal(lua_State *L) {
  const uintptr_t *a = luaL_testudata(L, 1, FUNCTION);
  const uintptr_t *b = luaL_testudata(L, 2, FUNCTION);
  lua_pushboolean(L, a && b && *a == *b);
  return 1;
}

/* Pushes t.grad_fn, a userdata that prints as <mul>, or nil. [-0, +1, e] */
static int pushfunction(lua_State *L, Tensor *t) {
  const char *name;
  uintptr_t *id;
  nl_check(L, nc_gradname(&name, t));
  if (name == NULL) {
    lua_pushnil(L);
    return 1;
  }
  id = lua_newuserdatauv(L, sizeof *id, 1);
  *id = nc_gradnode(t);
  lua_pushstring(L, name);
  lua_setiuservalue(L, -2, 1);
  if (luaL_newmetatable(L, FUNCTION)) {
    lua_pushcfunction(L, functiontext);
    lua_setfield(L, -2, "__tostring");
    lua_pushcfunction(L, functionequal);
    lua_setfield(L, -2, "__eq");
  }
  lua_setmetatable(L, -2);
  return 1;
}

int nl_gradfield(lua_State *L, Tensor *t, const char *key) {
  Tensor *g;
  int yes;
  if (strcmp(key, "grad") == 0) {
    if ((g = nc_grad(t)) != NULL) pushtensor(L, g);
    else lua_pushnil(L);
  } else if (strcmp(key, "requires_grad") == 0) {
    nl_check(L, nc_requires(&yes, t));
    lua_pushboolean(L, yes);
  } else if (strcmp(key, "is_leaf") == 0) {
    nl_check(L, nc_isleaf(&yes, t));
    lua_pushboolean(L, yes);
  } else if (strcmp(key, "grad_fn") == 0) {
    pushfunction(L, t);
  } else return 0;
  return 1;
}

int nl_setgradfield(lua_State *L, const char *key) {
  Tensor *t = nl_checktensor(L, 1);
  if (strcmp(key, "requires_grad") == 0) {
    const int type = lua_type(L, 3);
    if (type != LUA_TBOOLEAN)
      return nl_error(L, "", "requires_grad must be true or false, not %s%s",
                      type == LUA_TNUMBER || type == LUA_TNIL ? "" : "a ",
                      type == LUA_TNUMBER ? lua_tostring(L, 3)
                                          : nl_typename(L, 3));
    return named(L, key, nc_require(t, lua_toboolean(L, 3)));
  }
  if (strcmp(key, "grad") == 0) {
    Tensor *g = nl_totensor(L, 3);
    if (g == NULL && !lua_isnil(L, 3))
      return nl_error(L, "grad", "a gradient is a tensor or nil, not a %s",
                      nl_typename(L, 3));
    return named(L, key, nc_setgrad(t, g));
  }
  if (strcmp(key, "is_leaf") == 0 || strcmp(key, "grad_fn") == 0)
    return nl_error(L, "", "%s cannot be set", key);
  return 0;
}

/*
** nacre.autograd: autograd.lua defines the functions whose C function is NULL
*/
#define CHECK                                        \
  "fn:fn, inputs:any, eps:num=1e-6, atol:num=1e-5, " \
  "rtol:num=1e-3, raise:bool=true -> boolean"

const Bound nl_autograd_functions[] = {
  { "grad", NULL,
    "outputs:several, inputs:several, "
    "grad_outputs:gradients=nil, retain_graph:bool=nil, "
    "create_graph:bool=false, only_inputs:bool=true, allow_unused:bool=false, "
    "*, materialize_grads:bool=false -> tensors",
    "the gradients of outputs with respect to inputs, which keep theirs; "
    "nil for an input that is not used, if allow_unused says so, or zeros, "
    "if materialize_grads does",
    1 },
  { "backward", NULL,
    "tensors:several, grad_tensors:gradients=nil, "
    "retain_graph:bool=nil, create_graph:bool=false, *, inputs:several=nil",
    "t:backward() of several tensors at once", 1 },
  { "Function", NULL, "definition:table -> function",
    "an operation with a backward of its own: definition has forward(ctx, "
    "...) and backward(ctx, g, ...); ctx:save_for_backward(...) there is "
    "ctx.saved_tensors here",
    1 },
  { "gradcheck", NULL, CHECK,
    "does backward of fn agree with differences, in float64?", 1 },
  { "gradgradcheck", NULL, CHECK, "the same for second derivatives", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};

int nl_pushautograd(lua_State *L) {
  static const luaL_Reg own[] = { { "_backward", tapebackward },
                                  { "_custom", newcustom },
                                  { "_saved", saved },
                                  { NULL, NULL } };
  luaL_checkstack(L, 8, NULL);
  luaL_newlib(L, own);
  nl_pushembedded(L, "nacre.autograd");
  lua_pushvalue(L, -2);
  lua_newtable(L);
  for (const Bound *b = nl_autograd_functions; b->name; b++) {
    lua_pushstring(L, b->signature);
    lua_setfield(L, -2, b->name);
  }
  nl_pusharguments(L);
  nl_pushfail(L);
  lua_call(L, 4, 0);
  nl_make_strict(L, "autograd");
  return 1;
}

const Bound nl_gradient_methods[] = {
  { "backward", backward, BACKWARD,
    "adds the gradient of self to the grad of every leaf that it depends on "
    "and that requires one; gradient is what to begin with, 1 for a single "
    "element",
    2 },
  { "requires_grad_", requires_grad_, REQUIRES,
    "operations on self are recorded from now on, for backward", 2 },
  { "retain_grad", retain_grad, "self",
    "backward keeps the gradient of self, though it is no leaf", 2 },
  { "register_hook", register_hook, "self, hook:any -> handle",
    "hook is called with the gradient of self when that is known, and may "
    "give another; handle:remove() ends it",
    2 },
  { "detach", detach, "self -> tensor", "the same memory without a history",
    2 },
  { "detach_", detach_, "self -> tensor", "forgets the history of self", 2 },
  { "no_grad", no_grad, "fn:any, ... -> results",
    "calls fn, and records nothing meanwhile", 1 },
  { "enable_grad", enable_grad, "fn:any, ... -> results",
    "calls fn, and records meanwhile", 1 },
  { "set_grad_enabled", set_grad_enabled, "on:bool",
    "are operations recorded from now on?", 1 },
  { "is_grad_enabled", is_grad_enabled, "-> boolean",
    "are operations recorded?", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
