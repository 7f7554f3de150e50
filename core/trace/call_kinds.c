/* SPDX-License-Identifier: MIT */
/*
** call_kinds.c - nc_call: one way for any call.  What is more than computing is
** asked for in a fixed order; each step makes the call again without itself:
**
**   batch      of samples of vmap: on the values of all (core/batch/)
**   autocast   operands in the dtype of a region (autocast.c)
**   trace      an event around the call (trace.c), then a note for a fusion
**   tape       a node, to which the results are linked (core/autograd/)
**   run        the operation
**
** nc_apply, nc_reduce and the like compute at once unless one of these is on.
*/
#include "core/base/mapping.h"
#include "core/batch.h"
#include "core/op.h"
#include "core/tape.h"
#include "core/trace_internal.h"

static int run_pointwise(Call *c) {
  return nc_apply(&c->out[0], c->op, c->arg, c->par, c->into);
}

static int run_reduce(Call *c) {
  const Arg *a = c->arg;
  return nc_reduce(&c->out[0], c->op, a[0].t, (unsigned)a[1].s.i, (int)a[2].s.i,
                   a[3].dtype, c->par, c->into);
}

static int run_cast(Call *c) {
  return nc_cast(&c->out[0], c->arg[0].t, c->arg[1].dtype);
}

static int run_move(Call *c) {
  return nc_move(&c->out[0], c->arg[0].t, c->arg[1].device, (int)c->arg[2].s.i);
}

static int run_index(Call *c) {
  return nc_index(&c->out[0], c->arg[0].t, c->index, c->nindex);
}

static int run_setindex(Call *c) {
  return nc_setindex(c->arg[0].t, c->index, c->nindex, c->arg[1].t,
                     c->arg[1].s);
}

static int run_detach(Call *c) {
  return nc_detach(&c->out[0], c->arg[0].t);
}

/* What operators share after they have run, recorded or not. */
static int end_operator(int r, Call *c) {
  if (r == NC_OK && nc_operators[c->op].grad == GRADCLASS_VIEW)
    r = nc_set_bases(c);
  else {
    r = nc_check_lost_operands(r, c->arg, NC_MAXARG);
    r = nc_check_lost_lists(r, c->arg, NC_MAXARG);
  }
  nc_release_failed(r, c->out, NC_MAXOUT);
  return nc_error_call(r, nc_operators[c->op].name, c->arg, NC_MAXARG);
}

/* Fails if the operator does not take the dtype t: of argument `at', or, if
   that is -1, of the result that is asked for. */
static int check_dtype(const Call *c, DType t, int at) {
  const OperatorInfo *o = &nc_operators[c->op];
  if (nc_is_complex(t) && !o->takes_complex) return nc_refuse_complex();
  return nc_is_storage(t) && !o->takes_storage ? nc_refuse_storage(t, at)
                                               : NC_OK;
}

/* Fails if a dtype or a complex number is here that the operator does not take.
   Nothing below looks: a kernel would read other elements than there are. */
static int check_dtypes(const Call *c) {
  const Arg *a = c->arg;
  if (nc_operators[c->op].takes_storage) return NC_OK;
  for (int i = 0; i < NC_MAXARG; i++) {
    if (a[i].t) TRY(check_dtype(c, a[i].t->dtype, i));
    if (a[i].dtype != DT_NONE) TRY(check_dtype(c, a[i].dtype, -1));
    if (a[i].t == NULL && nc_imag(a[i].s) != 0 &&
        !nc_operators[c->op].takes_complex)
      return nc_fail(NC_EDTYPE, "does not take complex numbers: it needs real "
                                "ones, such as the re and im of a number");
  }
  for (int i = 0; a[0].tensors && i < a[0].n; i++)
    TRY(check_dtype(c, a[0].tensors[i]->dtype, 0));
  return NC_OK;
}

static int run_operator(Call *c) {
  int r = check_dtypes(c);
  if (r == NC_OK) r = nc_operators[c->op].fn(c);
  return end_operator(r, c);
}

static int record_operator(Call *c) {
  int r = check_dtypes(c);
  if (r == NC_OK) r = nc_record_operator(c);
  return end_operator(r, c);
}

/* The kinds of calls.  Without `record' the function that runs the call records
   it, too: a copy has one node whether or not it is called by itself. */
static const struct {
  const char *name; /* NULL: that of op */
  int args;
  int (*run)(Call *c);
  int (*record)(Call *c);
} kinds[] = {
  [CALL_OPERATOR] = { NULL, NC_MAXARG, run_operator, record_operator },
  [CALL_POINTWISE] = { NULL, 0, run_pointwise, nc_record_pointwise },
  [CALL_REDUCE] = { NULL, 4, run_reduce, nc_record_pointwise },
  [CALL_CAST] = { "to", 2, run_cast, NULL },
  [CALL_MOVE] = { "to", 3, run_move, NULL },
  [CALL_INDEX] = { "index", 1, run_index, nc_record_index },
  [CALL_SETINDEX] = { "setindex", 2, run_setindex, nc_record_setindex },
  [CALL_DETACH] = { "detach", 1, run_detach, NULL },
};

const char *nc_call_name(const Call *c) {
  if (kinds[c->kind].name) return kinds[c->kind].name;
  return c->kind == CALL_OPERATOR ? nc_operators[c->op].name
                                  : nc_opinfo[c->op].name;
}

int nc_call_args(const Call *c) {
  return c->kind == CALL_POINTWISE ? nc_arity(c->op) : kinds[c->kind].args;
}

/* Returns whether a tensor of the call may have to be recorded. */
static int may_be_recorded(const Call *c) {
  const Arg *list = &c->arg[0];
  if (c->kind != CALL_OPERATOR && c->into && nc_mayrecord(c->into)) return 1;
  for (int i = 0; i < nc_call_args(c); i++)
    if (c->arg[i].t && nc_mayrecord(c->arg[i].t)) return 1;
  for (int i = 0; list->tensors && i < list->n; i++)
    if (nc_mayrecord(list->tensors[i])) return 1;
  return 0;
}

int nc_call(Call *c) {
  if (nc_context->tracing & NC_BATCH) return nc_batch_call(c);
  if (nc_context->tracing & NC_AUTOCAST) return nc_autocast_call(c);
  if (nc_context->tracing) return nc_trace_call(c);
  if (kinds[c->kind].record && nc_context->no_grad == 0 && may_be_recorded(c))
    return kinds[c->kind].record(c);
  return kinds[c->kind].run(c);
}
