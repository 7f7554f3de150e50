/* SPDX-License-Identifier: MIT */
/*
** dispatch.c - calls the core's operations from Lua.
**
** The functions that registry.c pushes for an operation are closures over
** nl_call_pointwise, nl_call_operator and their in-place forms; upvalue 1 is
** the Op or Operator. Calls without options take a fast path that does not
** parse the signature. If memory runs out, the call is repeated once after a
** garbage collection.
*/

#include <stdio.h>
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/fusion/fused_numbers.h"
#include "bindings/state.h"
#include "bindings/tensors/fields.h"
#include "core/autograd.h"
#include "core/ops.h"
#include "core/trace.h"

#define CALL "nacre.call"

/* Paces the collector after an operation, then reports trace events. Call it
   when the result is in its userdata: a collection may free everything else.
   [-0, +0, e] */
static void pace(lua_State *L) {
  nl_pace(L);
  if (nc_trace_any) nl_report_events(L);
}

/* The contract is in binding.h. A tensor whose update was interrupted, or
   failed, holds old and new values; the message must say so. */
int nl_written(int r, const char *name) {
  char text[sizeof((Error *)0)->text];
  if (r != NC_OK && nc_lasterror()->partly) {
    snprintf(text, sizeof text, "%s", nc_lasterror()->text);
    return nc_fail(r,
                   "%.400s; %s was writing to a tensor, which may be partly "
                   "updated",
                   text, name);
  }
  if (r == NC_EINTR && !nc_lasterror()->final) {
    nc_fail(r,
            "interrupted: %s was writing to a tensor, which may be partly "
            "updated",
            name);
    nc_error_final(); /* a second call adds nothing */
  }
  return r;
}

int64_t nl_writes(lua_State *L, int out) {
  const Tensor *t;
  int64_t n = 0;
  if (out == 0) return 0;
  if ((t = nl_totensor(L, out)) != NULL) return t->data->writes;
  for (int i = 1; lua_istable(L, out) && i <= (int)lua_rawlen(L, out); i++) {
    lua_rawgeti(L, out, i);
    if ((t = nl_totensor(L, -1)) != NULL) n += t->data->writes;
    lua_pop(L, 1);
  }
  return n;
}

int nl_retry_into(lua_State *L, int status, int attempt, int out,
                  int64_t writes) {
  if (status == NC_ENOMEM && out && nl_writes(L, out) != writes)
    nc_error_partial();
  if (out && nc_lasterror()->partly) return 0;
  return nl_retry(L, status, attempt);
}

/* Names the operation `name_' in an error of `name' if the in-place form was
   called (into). */
static int name_inplace(int r, int into, const char *name) {
  char full[64];
  if (r == NC_OK || !into || strcmp(nc_lasterror()->op, name) != 0) return r;
  snprintf(full, sizeof full, "%s_", name);
  nc_error_op(full);
  return r;
}

/* Checks the status of a call that wrote to an existing tensor; raises an error
   after a failure.  [-0, +0, v] */
static void check_written(lua_State *L, int r, int into, const char *name) {
  nl_check(L, nl_written(name_inplace(r, into, name), name));
}

/*
** Pointwise operations and reductions
*/

/* The position in the signature of the first numeric parameter: behind the
   operands, for a reduction behind (self, dim, keepdim, dtype). */
static int first_parameter(Op op) {
  return nc_opinfo[op].kind == REDUCE_OP ? 4 : nc_arity(op);
}

static const double *default_parameters(Op op) {
  static double par[OP_COUNT][2];
  static char is_known[OP_COUNT];
  const Signature *s;
  if (is_known[op]) return par[op];
  s = nc_pointwise_signature(op);
  par[op][0] = 1;
  for (int i = 0, k = first_parameter(op); i < 2 && k + i < s->n; i++)
    par[op][i] = nc_tofloat(s->param[k + i].fallback.s);
  is_known[op] = 1;
  return par[op];
}

/* A parameter that is a complex number: *p is it, if there is one. */
static int find_complex(Op op, const Signature *s, const Arg *arg,
                        const Param **p, Scalar *v) {
  for (int i = first_parameter(op); i < s->n; i++)
    if (s->param[i].type == P_NUM && nc_imag(arg[i].s) != 0) {
      *p = &s->param[i];
      *v = arg[i].s;
      return 1;
    }
  return 0;
}

/* Does the formula multiply operand b by its parameter, and nothing else? */
static int scales_operand(Op op) {
  return op == OP_add || op == OP_sub || op == OP_addcmul || op == OP_addcdiv;
}

/* Calls op with a factor v that is complex, the parameter p: kernels have real
   ones, so that it multiplies the operand first. */
static int apply_complex_factor(Tensor **y, Op op, const Arg arg[],
                                const Param *p, Scalar v, Tensor *out) {
  const double one[2] = { 1, 0 };
  const int n = nc_arity(op);
  Arg in[NC_MAXIN];
  Tensor *scaled = NULL;
  int r, complex = 0;
  for (int i = 0; i < n; i++) {
    in[i] = arg[i];
    complex |= arg[i].t && nc_is_complex(arg[i].t->dtype);
  }
  if (!scales_operand(op) || !complex) {
    nc_fail(NC_EDTYPE, "%s is a complex number, %s", p->name,
            complex ? "but must be real" : "but the tensors are real");
    if (scales_operand(op)) nc_hint("{0}:to(\"complex64\") is complex");
    return nc_error_call(NC_EDTYPE, nc_opinfo[op].name, arg, n);
  }
  const Arg factors[2] = { arg[1], { .s = v } };
  if (arg[1].t) {
    r = nc_apply(&scaled, OP_mul, factors, NULL, NULL);
    in[1].t = scaled;
  } else {
    const double a = nc_tofloat(arg[1].s), b = nc_imag(arg[1].s);
    const double c = nc_tofloat(v), d = nc_imag(v);
    in[1].s = nc_complex(a * c - b * d, a * d + b * c);
    r = NC_OK;
  }
  if (r == NC_OK) r = nc_apply(y, op, in, one, out);
  nc_release(scaled);
  return r;
}

/* Reads the numeric parameters from the arguments. */
static void read_parameters(Op op, const Signature *s, const Arg *arg,
                            double par[2]) {
  const int k = first_parameter(op);
  par[0] = 1;
  par[1] = 0;
  for (int i = 0; i < 2 && k + i < s->n; i++)
    if (s->param[k + i].type == P_NUM || s->param[k + i].type == P_CHOICE)
      par[i] = nc_tofloat(arg[k + i].s);
}

/* Reads the operands of a call that has nothing else into in[]. Returns the
   number of tensors among them, or 0 if the call has another form.
   [-0, +0, e] */
static int read_operands(lua_State *L, Op op, Arg in[]) {
  const int n = nc_arity(op);
  int tensors = 0;
  if (lua_gettop(L) != n) return 0;
  for (int i = 0; i < n; i++) {
    in[i].t = nl_totensor(L, i + 1);
    if (in[i].t) tensors++;
    else if (n == 1 || (!nl_toscalar(L, i + 1, &in[i].s) &&
                        !nl_tosymbol(L, i + 1, &in[i].s)))
      return 0;
  }
  return tensors;
}

/* Raises an error if no operand is a tensor. [-0, +0, e] */
static void check_tensor(lua_State *L, const Signature *s, const Arg in[],
                         int n) {
  for (int i = 0; i < n; i++)
    if (in[i].t) return;
  nl_refuse(L, s->name, (Cause){ NC_CAUSE_tensor, s->param[0].name, "number" },
            "%s must be a tensor, not a number", s->param[0].name);
}

/* Calls the core with parsed arguments; *y, the result, is the userdata on top
   of the stack. Returns a status; raises only if no operand is a tensor. */
static int call_parsed(lua_State *L, Op op, const Signature *s, const Args *a,
                       Tensor **y, Tensor *out) {
  double par[2];
  const Param *p;
  Scalar factor;
  read_parameters(op, s, a->arg, par);
  if (nc_opinfo[op].kind == REDUCE_OP) {
    unsigned dims;
    int r = nc_dimmask(&dims, &a->arg[1], a->arg[0].t->nd);
    if (r != NC_OK) return nc_error_call(r, s->name, a->arg, 1);
    return nc_reduce(y, op, a->arg[0].t, dims, (int)a->arg[2].s.i,
                     a->arg[3].dtype, par, out);
  }
  check_tensor(L, s, a->arg, nc_arity(op));
  if (find_complex(op, s, a->arg, &p, &factor))
    return apply_complex_factor(y, op, a->arg, p, factor, out);
  return nc_apply(y, op, a->arg, par, out);
}

/* x:exp_{out = y} has a place for its result. [-0, +0, e] */
static void refuse_out(lua_State *L, const Signature *s, const Args *a) {
  char full[64];
  if (!a->out) return;
  snprintf(full, sizeof full, "%s_", s->name);
  nl_refuse(L, full, (Cause){ NC_CAUSE_argument, "out", NULL },
            "no argument 'out'");
}

/* The general path: parses all arguments. `into': the result goes to self.
   [-0, +1, e] */
static int general_call(lua_State *L, Op op, int into) {
  const Signature *s = nc_pointwise_signature(op);
  const int top = lua_gettop(L);
  int64_t writes = 0;
  int r, out = 0;
  for (int attempt = 0;; attempt++) {
    Tensor **y;
    Args a;
    lua_settop(L, top);
    nl_readargs(L, s, &a);
    if (into) refuse_out(L, s, &a);
    out = into ? 1 : a.out;
    y = nl_newbox(L);
    if (attempt == 0) writes = nl_writes(L, out);
    r = call_parsed(L, op, s, &a, y, out ? nl_checktensor(L, out) : NULL);
    if (!nl_retry_into(L, r, attempt, out, writes)) break;
  }
  if (out) check_written(L, r, into, s->name);
  else nl_check(L, r);
  if (out) lua_pushvalue(L, out);
  nl_result(L, -1);
  pace(L);
  return 1;
}

/* The fast path: operands without options, as in a + b and t:sum(). Pushes the
   userdata of the result and sets *status; returns 0, with nothing pushed, if
   the call has another form. [-0, +(0|1), e] */
static int fast_call(lua_State *L, Op op, int *status) {
  Arg in[NC_MAXIN];
  if (!read_operands(L, op, in)) return 0;
  *status = nc_opinfo[op].kind == REDUCE_OP
                ? nc_reduce(nl_newbox(L), op, in[0].t, ~0u, 0, DT_NONE,
                            default_parameters(op), NULL)
                : nc_apply(nl_newbox(L), op, in, default_parameters(op), NULL);
  return 1;
}

int nl_call_other_metamethod(lua_State *L, const char *event) {
  const int type = lua_type(L, 2);
  if (event == NULL || lua_gettop(L) != 2 ||
      (type != LUA_TTABLE && type != LUA_TUSERDATA) ||
      strcmp(nl_typename(L, 2), "tensor") == 0 ||
      luaL_getmetafield(L, 2, event) == LUA_TNIL)
    return 0;
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}

int nl_call_pointwise(lua_State *L) {
  const Op op = (Op)nl_which(L);
  int r;
  if (fast_call(L, op, &r)) {
    if (r == NC_OK) {
      nl_result(L, -1);
      pace(L);
      return 1;
    }
    if (r != NC_ENOMEM) return nl_check(L, r);
    lua_pop(L, 1);
  }
  if (op == OP_where && lua_gettop(L) == 1) return nl_where_condition(L);
  if (nl_call_other_metamethod(L, nl_event_of(op))) return 1;
  return general_call(L, op, 0);
}

int nl_call_pointwise_into(lua_State *L) {
  const Op op = (Op)nl_which(L);
  Arg in[NC_MAXIN];
  Tensor *y;
  nl_select(L);
  if (nc_opinfo[op].kind != REDUCE_OP && read_operands(L, op, in) && in[0].t) {
    int r = nc_apply(&y, op, in, default_parameters(op), in[0].t);
    if (r != NC_ENOMEM || nc_lasterror()->partly) {
      if (r != NC_OK || nc_trace_any)
        check_written(L, r, 1, nc_opinfo[op].name);
      nc_release(y); /* self holds the other reference */
      lua_pushvalue(L, 1);
      return 1;
    }
  }
  return general_call(L, op, 1);
}

/*
** Operators: calls through nc_call with any number of arguments and results
*/
static int free_call(lua_State *L) {
  nc_freelist(luaL_checkudata(L, 1, CALL));
  return 0;
}

/* Pushes a userdata with a zeroed Call; its finalizer frees the list of results
   if an error is raised first. [-0, +1, m] */
static Call *new_call(lua_State *L) {
  return nl_newowner(L, sizeof(Call), CALL, free_call);
}

/* Pushes the list of result tensors and moves each reference from c->list into
   its userdata. [-0, +1, m] */
static int push_list(lua_State *L, Call *c) {
  lua_createtable(L, c->nlist, 0);
  for (int i = 0; i < c->nlist; i++) {
    Tensor **box = nl_newbox(L);
    *box = c->list[i];
    c->list[i] = NULL;
    nl_result(L, -1);
    lua_rawseti(L, -2, i + 1);
  }
  nc_freelist(c);
  nl_setlist(L);
  return 1;
}

/* Copies the result y into the tensor out, with the conversion and the checks
   of a pointwise operation. Never raises. */
static int copy_to_out(Tensor *out, Tensor *y) {
  Arg in[1] = { { .t = y } };
  Tensor *same = NULL;
  int r;
  if (out == y) return NC_OK;
  r = nc_apply(&same, OP_clone, in, NULL, out);
  if (r != NC_OK) nc_error_forget(y);
  nc_release(same);
  return r;
}

/* Copies all results into {out=...} at index out: one tensor for a single
   result, otherwise a list with as many tensors as there are results. Returns a
   status. [-0, +0, e] */
static int copy_all_to_out(lua_State *L, const Signature *s, int out,
                           Tensor **y[]) {
  const int list = lua_istable(L, out);
  int n = 0, r = NC_OK;
  while (n < s->nresults && *y[n]) n++;
  if (n != (list ? (int)lua_rawlen(L, out) : 1) && n > 0)
    return nl_error(L, s->name, "gives %d result%s: out must be %s", n,
                    n == 1 ? "" : "s",
                    n == 1 ? "a tensor" : "a list of as many tensors");
  for (int i = 0; i < n && r == NC_OK; i++) {
    if (list) lua_rawgeti(L, out, i + 1);
    r = copy_to_out(nl_checktensor(L, list ? -1 : out), *y[i]);
    if (list) lua_pop(L, 1); /* the list keeps the tensor alive */
  }
  if (r != NC_OK) nc_error_op(s->name); /* report the operation, not the copy */
  return nl_written(r, s->name);
}

/* Pushes the elements of the list at index `list'; returns how many.
   [-0, +n, e] */
static int push_elements(lua_State *L, int list) {
  const int n = (int)lua_rawlen(L, list);
  luaL_checkstack(L, n, NULL);
  for (int i = 1; i <= n; i++) lua_rawgeti(L, list, i);
  return n;
}

/* Pushes the results of the call; the userdata of the result tensors start at
   index `box'. Returns how many values it pushed. [-0, +n, e] */
static int push_results(lua_State *L, const Signature *s, Call *c, int box,
                        int out, Tensor *self) {
  if (c->list) return push_list(L, c);
  if (strncmp(s->results, "tensor", 6) != 0) {
    nl_pushscalar(L, c->value);
    return 1;
  }
  if (out)
    return nl_totensor(L, out) ? (lua_pushvalue(L, out), 1)
                               : push_elements(L, out);
  if (self && *(Tensor **)lua_touserdata(L, box) == self) {
    lua_pushvalue(L, 1); /* the result is the argument itself */
    return 1;
  }
  int n = 1;
  while (n < s->nresults && *(Tensor **)lua_touserdata(L, box + n)) n++;
  for (int i = 0; i < n; i++) lua_pushvalue(L, box + i);
  return n;
}

/* Replaces *self by a copy if the operation is recorded: the tape would save
   self's values, which the in-place form is about to overwrite. A traced
   function may be called again with operands that need it. The copy is pushed.
   Returns a status. [-0, +(0|1), m] */
static int copy_if_recorded(lua_State *L, Tensor **self) {
  Tensor **copy;
  int yes, r = nc_get_requires_grad(&yes, nl_value_of(*self));
  yes |= nl_context(L)->fusion != NULL;
  if (r != NC_OK || !yes || nl_context(L)->no_grad) return r;
  copy = nl_newbox(L);
  r = nc_apply1(copy, OP_clone, *self);
  if (r == NC_OK) *self = *copy;
  return r;
}

/* Calls the operator in upvalue 1; `into': the result goes to self.
   [-0, +n, e] */
static int call_operator(lua_State *L, int into) {
  const Operator f = (Operator)nl_which(L);
  const Signature *s = nc_operator_signature(f);
  const int top = lua_gettop(L);
  const int lists = strstr(s->results, "tensors") != NULL;
  Tensor *self = NULL;
  Call local, *c = &local;
  const int writer = into || s->name[strlen(s->name) - 1] == '_';
  int64_t writes = 0;
  int r, n, box, out;
  Args a;
  for (int attempt = 0;; attempt++) {
    Tensor **y[NC_MAXOUT];
    lua_settop(L, top);
    nl_readargs(L, s, &a);
    if (into) refuse_out(L, s, &a);
    out = into ? 1 : a.out;
    if (attempt == 0) writes = nl_writes(L, writer ? 1 : out);
    if (lists) c = new_call(L);
    else memset(c, 0, sizeof *c);
    c->op = f;
    box = lua_gettop(L) + 1;
    for (int i = 0; i < s->nresults; i++) y[i] = nl_newbox(L);
    nl_state(L)->lastbox = lua_touserdata(L, box);
    memcpy(c->arg, a.arg, sizeof c->arg);
    if (s->n && s->param[0].type == P_TENSOR) self = a.arg[0].t;
    r = into ? copy_if_recorded(L, &c->arg[0].t) : NC_OK;
    if (into && c->arg[0].t == self && !nl_context(L)->tracing) c->into = self;
    if (r == NC_OK) r = nc_call(c);
    for (int i = 0; i < s->nresults; i++) {
      *y[i] = c->out[i];
      c->out[i] = NULL;
    }
    if (r == NC_OK && out) r = copy_all_to_out(L, s, out, y);
    if (r == NC_OK && a.pin) r = nl_pin(y[0]);
    if (r == NC_OK && a.require) r = nc_set_requires_grad(*y[0], 1);
    if (!nl_retry_into(L, r, attempt, writer ? 1 : out, writes)) break;
  }
  if (r != NC_OK) {
    if (into) nc_error_replace(c->arg[0].t, a.arg[0].t);
    nc_error_call(r, s->name, a.arg, s->n);
    for (int i = 0; i < s->n && !s->method; i++)
      nc_error_name(i, s->param[i].name);
    name_inplace(r, into, s->name);
    if (writer || out) r = nl_written(r, s->name);
  }
  nl_check(L, r);
  n = push_results(L, s, c, box, out, self);
  for (int i = 1; i <= n; i++) nl_result(L, -i);
  pace(L);
  return n;
}

int nl_call_operator(lua_State *L) {
  const int results = nl_call_overload(L, (Operator)nl_which(L));
  return results ? results : call_operator(L, 0);
}

int nl_call_operator_into(lua_State *L) {
  return call_operator(L, 1);
}
