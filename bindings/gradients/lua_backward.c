/* SPDX-License-Identifier: MIT */
/*
** lua_backward.c - backward, and the Lua functions that it calls: hooks and
** custom functions.
**
** The core calls Lua through protected calls, so no longjmp crosses the core.
** The error of such a function is saved in the registry and raised again,
** unchanged, by the binding function that called the core.
*/
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"
#include "core/autograd.h"
#include "core/trace.h"

/*
** Lua functions that the core calls
*/
#define NODE "nacre.node" /* the node of a custom function */
#define HOOK "nacre.hook"

static lua_State *running; /* the state in which backward runs, or NULL */
/* its address is the registry key of the error that a Lua function raised */
static const char lua_error_key;

/* Saves the error on top for check_backward. Returns the status that stops the
   core. [-1, +0, m] */
static int save_error(lua_State *L) {
  lua_rawsetp(L, LUA_REGISTRYINDEX, &lua_error_key);
  return nc_fail(NC_EVALUE, "a function of the program failed");
}

/* As nl_check, but raises the saved error if there is one. [-0, +0, e] */
static int check_backward(lua_State *L, int r) {
  if (r == NC_OK) return 1;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &lua_error_key) == LUA_TNIL) {
    lua_pop(L, 1);
    return nl_check(L, r);
  }
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &lua_error_key);
  return lua_error(L);
}

/* Calls f with `data' as a light userdata, in a protected call. Returns a
   status. */
static int call_protected(lua_CFunction f, void *data) {
  lua_State *L = running;
  int status;
  if (!lua_checkstack(L, 8))
    return nc_fail(NC_ENOMEM, "no room on Lua's stack");
  lua_pushcfunction(L, f);
  lua_pushlightuserdata(L, data);
  status = lua_pcall(L, 1, 0, 0);
  nl_select(L);
  return status == LUA_OK ? NC_OK : save_error(L);
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
static int run_hook(lua_State *L) {
  HookCall *c = lua_touserdata(L, 1);
  Tensor *t;
  if (!nl_pushref(L, c->f)) return 0;
  nl_pushtensor(L, *c->g);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) return 0;
  if ((t = nl_totensor(L, -1)) == NULL)
    return nl_error(L, "register_hook",
                    "a hook must return a tensor or nothing, not a %s",
                    nl_typename(L, -1));
  nc_retain(t);
  nc_release(*c->g);
  *c->g = t;
  return 0;
}

/* The callback of the core: calls the Lua function with *g. */
static int call_hook(void *data, Tensor **g) {
  HookCall c = { data, g };
  return call_protected(run_hook, &c);
}

static int remove_hook(lua_State *L) {
  nc_removehook(*(Hook **)nl_check_userdata(L, 1, HOOK, "remove"));
  return 0;
}

static int free_hook(lua_State *L) {
  Hook **h = luaL_checkudata(L, 1, HOOK);
  if (*h) nc_releasehook(*h);
  *h = NULL;
  return 0;
}

/* Pushes a handle without a hook. Its method remove ends the hook.
   [-0, +1, m] */
static Hook **new_hook(lua_State *L) {
  Hook **h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = NULL;
  if (luaL_newmetatable(L, HOOK)) {
    lua_pushcfunction(L, free_hook);
    lua_setfield(L, -2, "__gc");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, remove_hook);
    lua_setfield(L, -2, "remove");
    lua_setfield(L, -2, "__index");
  }
  lua_setmetatable(L, -2);
  return h;
}

/* Registers the function at index i as a hook of t, which is at index 1.
   Returns a handle, a userdata that owns the hook's registration; the hook
   itself is a Ref that the core frees with nl_dropref. */
static int add_hook(lua_State *L, Tensor *t, int i, int after,
                    const char *name) {
  Hook **h = new_hook(L);
  Ref *f = nl_newref(L, i, NULL);
  int r;
  nl_try(L, r, nc_addhook(t, after, h));
  if (r != NC_OK) {
    nl_dropref(f);
    return nl_check_self(L, r, name);
  }
  (*h)->data = f;
  (*h)->drop = nl_dropref;
  (*h)->call = call_hook;
  nl_maycycle(L, 1);
  return 1;
}

/* Fails unless the argument at index 2 is a function. */
static int check_hook(lua_State *L, const char *name) {
  if (lua_isfunction(L, 2)) return 1;
  return nl_error(L, name, "a hook must be a function, not a %s",
                  nl_typename(L, 2));
}

static int register_hook(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1);
  check_hook(L, "register_hook");
  return add_hook(L, t, 2, 0, "register_hook");
}

#define AFTER "register_post_accumulate_grad_hook"

/* The hook of the next function: calls the user's, an upvalue, with the
   tensor. */
static int call_with_tensor(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) return 0;
  return nl_error(L, AFTER, "a hook must return nothing, not a %s",
                  nl_typename(L, -1));
}

static int register_after_hook(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1);
  check_hook(L, AFTER);
  lua_settop(L, 2);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, call_with_tensor, 2);
  return add_hook(L, t, 3, 1, AFTER);
}

/*
** What is called at the end
*/
typedef struct EndCall {
  const Ref *f;
  int ok;
} EndCall;

static int run_end(lua_State *L) {
  const EndCall *c = lua_touserdata(L, 1);
  if (!nl_pushref(L, c->f)) return 0;
  lua_pushboolean(L, c->ok);
  lua_call(L, 1, 0);
  return 0;
}

/* The callback of the core. The error that made the pass fail stays the one
   that is raised. */
static int call_end(void *data, int status) {
  EndCall c = { data, status == NC_OK };
  if (c.ok) return call_protected(run_end, &c);
  if (!lua_checkstack(running, 1)) return status;
  lua_rawgetp(running, LUA_REGISTRYINDEX, &lua_error_key);
  call_protected(run_end, &c);
  lua_rawsetp(running, LUA_REGISTRYINDEX, &lua_error_key);
  return status;
}

/* _at_end(f): f(ok) is called at the end of the backward pass that runs, see
   nc_atend. */
static int at_end(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  Ref *f = nl_newref(L, 1, NULL);
  const AtEnd e = { call_end, nl_dropref, f };
  int r = nc_atend(&e);
  if (r != NC_OK) nl_dropref(f);
  nl_check(L, r);
  return 0;
}

/*
** Backward
*/
static lua_Integer passes; /* how many have begun outside of another */

/* _pass(): the number of the pass that runs.  After Ctrl-C nothing is called at
   the end of a pass: who keeps a state for it compares the number. */
static int this_pass(lua_State *L) {
  lua_pushinteger(L, passes);
  return 1;
}

int nl_inbackward(void) {
  return running != NULL;
}

/* Calls nc_backward with this state as the one that runs hooks. Returns a
   status. */
static int run_backward(lua_State *L, const Backward *b) {
  lua_State *before = running;
  int r;
  if (running == NULL) passes++;
  running = L;
  nl_select(L);
  r = nc_backward(b);
  running = before;
  return r;
}

static int backward(lua_State *L) {
  Args a;
  nl_args(L, &a);
  const Backward b = { .n = 1,
                       .output = &a.arg[0].t,
                       .grad_outputs = &a.arg[1].t,
                       .create = (int)a.arg[3].s.i,
                       .retain = (int)(a.arg[2].present ? a.arg[2].s.i
                                                        : a.arg[3].s.i),
                       .ninput = a.arg[4].present ? a.arg[4].n : 0,
                       .input = a.arg[4].tensors };
  if (a.arg[4].present && a.arg[4].n == 0)
    return nl_error(L, "backward", "the list of inputs is empty");
  check_backward(L, run_backward(L, &b));
  nl_pace(L);
  return 0;
}

/* Pushes an array with the tensors of the list at index i; an element that is
   nil or false becomes NULL. [-0, +1, e] */
static Tensor **tensor_array(lua_State *L, int i, int n, const char *what) {
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

/* The same for a list of tensors only. [-0, +1, e] */
static Tensor **full_tensor_array(lua_State *L, int i, int n,
                                  const char *what) {
  Tensor **t = tensor_array(L, i, n, what);
  for (int k = 0; k < n; k++)
    if (t[k] == NULL) nl_error(L, "grad", "%s %d is not a tensor", what, k + 1);
  return t;
}

/* _backward(outputs, gradients or nil, inputs or nil, retain, create,
   accumulate). With inputs it returns the list of their gradients, false for
   none, unless `accumulate' adds them to the grad fields. */
static int backward_of_several(lua_State *L) {
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
  b.output = full_tensor_array(L, 1, n, "output");
  if (lua_istable(L, 2)) b.grad_outputs = tensor_array(L, 2, n, "gradient");
  if (lua_istable(L, 3)) b.input = full_tensor_array(L, 3, ninput, "input");
  if (b.input == NULL || lua_toboolean(L, 6)) {
    check_backward(L, run_backward(L, &b));
    return 0;
  }
  b.result = lua_newuserdatauv(L, (size_t)(ninput + 1) * sizeof *b.result, 0);
  memset(b.result, 0, (size_t)(ninput + 1) * sizeof *b.result);
  box = lua_newuserdatauv(L, (size_t)(ninput + 1) * sizeof *box, 0);
  lua_rawgeti(L, 1, 1); /* nl_pace_next looks for operands on the stack */
  lua_createtable(L, ninput, 0);
  /* create the userdata first; the core fills them */
  for (int k = 0; k < ninput; k++) {
    box[k] = nl_newbox(L);
    lua_rawseti(L, -2, k + 1);
  }
  const int r = run_backward(L, &b);
  if (r != NC_OK && strcmp(nc_lasterror()->op, "backward") == 0)
    nc_error_op("grad");
  for (int k = 0; k < ninput; k++) *box[k] = b.result[k];
  check_backward(L, r);
  for (int k = 0; k < ninput; k++) {
    if (b.result[k]) continue;
    lua_pushboolean(L, 0);
    lua_rawseti(L, -2, k + 1);
  }
  nl_pace(L);
  return 1;
}

/*
** Custom functions
*/
/* A userdata, whose user value is the function that computes the gradients */
typedef struct CustomNode {
  Node *node; /* NULL: it is gone, and its saved tensors with it */
  int nin, nout;
} CustomNode;

typedef struct CustomCall {
  const Ref *f;
  Tensor *const *g;
  Tensor **d;
  const int *need;
} CustomCall;

/* Calls f(gradients, needs) in a protected call. f returns a list of gradients,
   with false or nil for none. */
static int run_custom(lua_State *L) {
  const CustomCall *c = lua_touserdata(L, 1);
  if (!nl_pushref(L, c->f))
    return nl_error(L, "backward", "a custom function was collected");
  const CustomNode *node = lua_touserdata(L, -1);
  lua_getiuservalue(L, -1, 1);
  lua_createtable(L, node->nout, 0);
  for (int i = 0; i < node->nout; i++) {
    if (c->g[i]) nl_pushtensor(L, c->g[i]);
    else lua_pushboolean(L, 0);
    lua_rawseti(L, -2, i + 1);
  }
  lua_createtable(L, node->nin, 0);
  for (int i = 0; i < node->nin; i++) {
    lua_pushboolean(L, c->need[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_call(L, 2, 1);
  for (int i = 0; i < node->nin; i++) {
    lua_rawgeti(L, -1, i + 1);
    Tensor *t = nl_totensor(L, -1);
    if (t == NULL && lua_toboolean(L, -1))
      return nl_error(L, "backward",
                      "gradient %d of a custom function is a %s, not a tensor",
                      i + 1, nl_typename(L, -1));
    if (t && c->need[i]) nc_retain(c->d[i] = t);
    lua_pop(L, 1);
  }
  return 0;
}

/* Called when the node is freed: saved tensors are no longer available. */
static void drop_custom(void *data) {
  *((Ref *)data)->node = NULL;
  nl_dropref(data);
}

int nl_isref(void (*drop)(void *)) {
  return drop == nl_dropref || drop == drop_custom;
}

/* The callback of the core: g are the gradients of the outputs, d[] receives
   those of the inputs that need one. */
static int call_custom(void *data, Tensor *const g[], Tensor *d[],
                       const int need[]) {
  CustomCall c = { data, g, d, need };
  return call_protected(run_custom, &c);
}

/* _custom(name, inputs, outputs, saved, backward): records a node that connects
   outputs to inputs. Returns the node, for _saved, or nothing if nothing was
   recorded. */
static int new_custom(lua_State *L) {
  for (int i = 2; i <= 4; i++) luaL_checktype(L, i, LUA_TTABLE);
  luaL_checktype(L, 5, LUA_TFUNCTION);
  const int nin = (int)lua_rawlen(L, 2), nout = (int)lua_rawlen(L, 3);
  const int nsaved = (int)lua_rawlen(L, 4);
  Custom c = { .name = luaL_checkstring(L, 1),
               .backward = call_custom,
               .drop = drop_custom };
  Tensor **in, **out, **saved;
  CustomNode *node;
  int r, attempt = 0;
  lua_settop(L, 5);
  in = tensor_array(L, 2, nin, "input");
  out = tensor_array(L, 3, nout, "output");
  saved = tensor_array(L, 4, nsaved, "saved tensor");
  node = lua_newuserdatauv(L, sizeof *node, 1);
  *node = (CustomNode){ NULL, nin, nout };
  luaL_newmetatable(L, NODE);
  lua_setmetatable(L, -2);
  lua_pushvalue(L, 5);
  lua_setiuservalue(L, -2, 1);
  nl_select(L);
  do { /* nc_custom drops the data if it fails */
    c.data = nl_newref(L, -1, &node->node);
    r = nc_custom(&node->node, &c, in, nin, out, nout, saved, nsaved);
  } while (nl_retry(L, r, attempt++));
  nl_check(L, r);
  for (int i = 0; i < nout; i++) {
    if (lua_rawgeti(L, 3, i + 1) == LUA_TUSERDATA) nl_maycycle(L, -1);
    lua_pop(L, 1);
  }
  return node->node != NULL;
}

/* _saved(node, i): the i-th saved tensor */
static int saved(lua_State *L) {
  const CustomNode *node = luaL_checkudata(L, 1, NODE);
  Tensor **box;
  if (node->node == NULL)
    return nl_error(L, "saved_tensors", "the graph was freed");
  box = nl_newbox(L);
  nl_check(L,
           nc_customsaved(box, node->node, (int)luaL_checkinteger(L, 2) - 1));
  if (*box == NULL) lua_pushnil(L);
  return 1;
}

/*
** Checkpoints
*/
/* _region(): begins a part of the graph; gives the number by which _inputs and
   _redirect know it. Casts of a region of autocast are made anew in it. */
static int begin_region(lua_State *L) {
  nl_select(L);
  nc_forget_casts();
  lua_pushinteger(L, nc_newest_node());
  return 1;
}

/* _inputs(outputs, region): what the part that leads to the outputs uses from
   outside, as a list of tensors without values; what it saved is released. */
static int region_inputs(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  const int n = (int)lua_rawlen(L, 1);
  Tensor **out = full_tensor_array(L, 1, n, "output");
  Region r;
  nl_select(L);
  nl_check(L, nc_region_inputs(&r, out, n, luaL_checkinteger(L, 2)));
  lua_createtable(L, r.n, 0);
  for (int i = 0; i < r.n; i++) {
    nl_pushtensor(L, r.input[i]);
    lua_rawseti(L, -2, i + 1);
  }
  nc_freeregion(&r);
  return 1;
}

/* _others(outputs, region, leaves): does the part use other recorded tensors
   from outside than these leaves? */
static int region_others(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  const int n = (int)lua_rawlen(L, 1), count = (int)lua_rawlen(L, 3);
  Tensor **out = full_tensor_array(L, 1, n, "output");
  Tensor **leaf = full_tensor_array(L, 3, count, "leaf");
  int yes;
  nl_select(L);
  nl_check(
      L, nc_region_others(&yes, out, n, luaL_checkinteger(L, 2), leaf, count));
  lua_pushboolean(L, yes);
  return 1;
}

/* _redirect(outputs, region, from, to): makes the part use the leaf to[i]
   instead of from[i] */
static int redirect_region(lua_State *L) {
  for (int i = 1; i <= 4; i += i == 1 ? 2 : 1) luaL_checktype(L, i, LUA_TTABLE);
  const int n = (int)lua_rawlen(L, 1), count = (int)lua_rawlen(L, 3);
  Tensor **out = full_tensor_array(L, 1, n, "output");
  Tensor **from = full_tensor_array(L, 3, count, "input");
  Tensor **to = full_tensor_array(L, 4, count, "input");
  nl_select(L);
  nl_check_op(
      L, nc_region_redirect(out, n, luaL_checkinteger(L, 2), from, to, count),
      "checkpoint");
  return 0;
}

const Bound nl_backward_methods[] = {
  { "backward", backward,
    "self, gradient:tensor=nil, retain_graph:bool=nil, "
    "create_graph:bool=false, inputs:tensors=nil",
    "adds the gradient of self to the grad of every leaf that it depends on "
    "and that requires one; gradient is the initial one, 1 for a single "
    "element",
    2 },
  { "register_hook", register_hook, "self, hook:any -> handle",
    "calls hook with the gradient of self when that is known; hook may return "
    "another; handle:remove() removes it",
    2 },
  { AFTER, register_after_hook, "self, hook:any -> handle",
    "calls hook with self when a gradient was added to the grad of a leaf; "
    "handle:remove() removes it",
    2 },
  { NULL, NULL, NULL, NULL, 0 }
};

const luaL_Reg nl_backward_internals[] = {
  { "_at_end", at_end },
  { "_backward", backward_of_several },
  { "_custom", new_custom },
  { "_inputs", region_inputs },
  { "_others", region_others },
  { "_pass", this_pass },
  { "_redirect", redirect_region },
  { "_region", begin_region },
  { "_saved", saved },
  { NULL, NULL },
};
