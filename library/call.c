/* SPDX-License-Identifier: MIT */
/*
** call.c - nacre_call: an operation by its name. One with a "_" at its end that
** is not an operation itself is the in-place form of one. Those that are not in
** the tables of the core are functions of the binding: lua_call.c.
*/
#include <string.h>

#include "library/libnacre.h"
#include "core/autograd.h"
#include "core/ops.h"

/* What is called. */
typedef struct Target {
  int op, operator_; /* one is -1 */
  int into;          /* the result goes to the first argument */
  const Signature *s;
} Target;

static void find_row(Target *t, const char *name, size_t n) {
  t->op = nc_find_pointwise(name, n);
  t->operator_ = t->op < 0 ? nc_find_operator(name, n) : -1;
}

/* Returns 0 if the tables do not have the operation. */
static int find_in_tables(Target *t, const char *name) {
  const size_t n = strlen(name);
  t->into = 0;
  find_row(t, name, n);
  if (t->op < 0 && t->operator_ < 0 && n > 1 && name[n - 1] == '_') {
    find_row(t, name, n - 1);
    t->into = 1;
  }
  if (t->op < 0 && t->operator_ < 0) return 0;
  t->s = t->op >= 0 ? nc_pointwise_signature((Op)t->op)
                    : nc_operator_signature((Operator)t->operator_);
  return !t->into || t->s->inplace; /* the binding has transpose_ */
}

/* The numeric parameters, behind the operands, or behind (self, dim, keepdim,
   dtype). */
static void read_parameters(const Signature *s, Op op, const Arg *arg,
                            double par[2]) {
  const int k = nc_opinfo[op].kind == REDUCE_OP ? 4 : nc_arity(op);
  par[0] = 1;
  par[1] = 0;
  for (int i = 0; i < 2 && k + i < s->n; i++)
    if (s->param[k + i].type == P_NUM || s->param[k + i].type == P_CHOICE)
      par[i] = nc_tofloat(arg[k + i].s);
}

static int call_pointwise(const Target *t, const Arg *arg, Tensor **y) {
  const Op op = (Op)t->op;
  double par[2];
  int tensors = 0;
  read_parameters(t->s, op, arg, par);
  if (nc_opinfo[op].kind == REDUCE_OP) {
    unsigned dims;
    const int r = nc_dimmask(&dims, &arg[1], arg[0].t->nd);
    if (r != NC_OK) return nc_error_call(r, t->s->name, arg, 1);
    return nc_reduce(y, op, arg[0].t, dims, (int)arg[2].s.i, arg[3].dtype, par,
                     NULL);
  }
  for (int i = 0; i < nc_arity(op); i++) tensors += arg[i].t != NULL;
  if (tensors == 0 || (t->into && arg[0].t == NULL))
    return lib_refuse(t->s->name, "%s must be a tensor", t->s->param[0].name);
  return nc_apply(y, op, arg, par, t->into ? arg[0].t : NULL);
}

/* Makes the result of the call, c->out[0], the value of self. */
static int copy_into(Tensor *self, Call *c) {
  const Arg in = { .t = c->out[0] };
  Tensor *same = NULL;
  if (c->out[0] == self) return NC_OK;
  const int r = nc_apply(&same, OP_clone, &in, NULL, self);
  nc_release(c->out[0]);
  c->out[0] = same;
  return r;
}

/* The tape would save the values of self, which are about to change. */
static int copy_if_recorded(Tensor **own, Tensor *self) {
  int yes = 0;
  TRY(nc_get_requires_grad(&yes, self));
  if (yes && nc_context->no_grad == 0) return nc_apply1(own, OP_clone, self);
  nc_retain(self);
  return *own = self, NC_OK;
}

static int call_into(Call *c) {
  Tensor *self = c->arg[0].t, *own = NULL;
  int r = copy_if_recorded(&own, self);
  c->arg[0].t = own;
  if (r == NC_OK) r = nc_call(c);
  if (r == NC_OK) r = copy_into(self, c);
  if (r != NC_OK && own) nc_error_replace(own, self);
  c->arg[0].t = self;
  nc_release(own);
  return r;
}

int lib_tensor_of(Tensor **t, Scalar v) {
  static const DType type[] = { DT_b8, DT_i64, DT_f64, DT_c128 }; /* by kind */
  return nc_full(t, nc_host(), type[v.kind], 0, NULL, v);
}

/* What creates a tensor takes requires_grad and pin_memory, last. */
static int apply_creation(const Signature *s, const Arg *arg, Tensor **y) {
  Tensor *pinned = NULL;
  if (!s->creates) return NC_OK;
  if (arg[s->n - 1].s.i) {
    TRY(nc_pin(&pinned, *y));
    nc_release(*y);
    *y = pinned;
  }
  return arg[s->n - 2].s.i ? nc_set_requires_grad(*y, 1) : NC_OK;
}

static int call_operator(const Target *t, const Arg *arg, Call *c) {
  const Signature *s = t->s;
  c->op = (Operator)t->operator_;
  memcpy(c->arg, arg, sizeof c->arg);
  int r = t->into ? call_into(c) : nc_call(c);
  if (r == NC_OK) r = apply_creation(s, arg, &c->out[0]);
  if (r == NC_OK && strncmp(s->results, "tensor", 6) != 0)
    r = lib_tensor_of(&c->out[0], c->value);
  return r == NC_OK ? r : nc_error_call(r, s->name, arg, s->n);
}

int lib_refuse_results(const char *op, int there, int room) {
  return lib_refuse(op, "gives %d result%s, there is room for %d", there,
                    there == 1 ? "" : "s", room);
}

/* Moves the results of the call to result[0..n-1]. The first argument, if it is
   the only result, needs no room: the caller has it. */
static int give_results(const Signature *s, Call *c, Tensor *result[], int n,
                        const Tensor *first) {
  Tensor **from = c->list ? c->list : c->out;
  const int most = c->list ? c->nlist : NC_MAXOUT;
  int there = c->list ? most : 0;
  while (there < most && from[there]) there++;
  if (n == 0 && there == 1 && from[0] == first) return NC_OK;
  if (there > n) return lib_refuse_results(s->name, there, n);
  for (int i = 0; i < there; i++) {
    result[i] = from[i];
    from[i] = NULL;
  }
  return NC_OK;
}

static int call_row(const Target *t, nacre_tensor *result[], int n,
                    const nacre_arg arg[], int narg) {
  Call c = { .op = (Operator)0 };
  Arguments a;
  int r = lib_read_arguments(&a, t->s, arg, narg);
  if (r == NC_OK && t->op >= 0) r = call_pointwise(t, a.arg, &c.out[0]);
  else if (r == NC_OK) r = call_operator(t, a.arg, &c);
  if (r == NC_OK) r = give_results(t->s, &c, result, n, a.arg[0].t);
  nc_release_failed(NC_EVALUE, c.out, NC_MAXOUT); /* those not given away */
  nc_freelist(&c);
  return r;
}

int nacre_call(const char *op, nacre_tensor *result[], int n,
               const nacre_arg arg[], int narg) {
  Target t = { .op = -1 };
  for (int i = 0; i < n; i++) result[i] = NULL;
  if (!find_in_tables(&t, op))
    return lib_settle(lib_call_lua(op, result, n, arg, narg));
  return lib_settle(call_row(&t, result, n, arg, narg));
}
