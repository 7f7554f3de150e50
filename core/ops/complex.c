/* SPDX-License-Identifier: MIT */
/*
** complex.c - complex tensors and their parts: views of one memory in another
** dtype, with gradients.  Such a view follows changes of the memory; a change
** in place through it cannot be recorded (core/autograd/node.c).
*/
#include "core/op.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/pointwise/temps.h"
#include "core/tape.h"

/* *y = a view of the parts of x, as many in a last dimension as `parts', from
   number `first' on; 1: without that dimension. */
static int view_parts(Tensor **y, Tensor *x, int first, int parts) {
  if (parts > 1) TRY(nc_check_maxdim(x->nd + 1));
  TRY(nc_alias(y, x));
  (*y)->dtype = nc_real_dtype(x->dtype);
  (*y)->offset = 2 * x->offset + first;
  for (int d = 0; d < x->nd; d++) (*y)->step[d] = 2 * x->step[d];
  if (parts > 1) {
    (*y)->size[x->nd] = parts;
    (*y)->step[x->nd] = 1;
    (*y)->nd = x->nd + 1;
  }
  return nc_release_failed(nc_setbase(*y, x), y, 1);
}

static int check_is_complex(const Tensor *x) {
  if (nc_is_complex(x->dtype)) return NC_OK;
  nc_fail(NC_EDTYPE, "needs a complex tensor, not %s", nc_dtypename(x->dtype));
  nc_hint("{0}:to(\"%s\") is one", nc_dtypename(nc_complex_dtype(x->dtype)));
  return NC_EDTYPE;
}

int nc_op_view_as_real(Call *c) {
  Tensor *x = c->arg[0].t;
  TRY(check_is_complex(x));
  return view_parts(&c->out[0], x, 0, 2);
}

int nc_op_real(Call *c) {
  Tensor *x = c->arg[0].t;
  if (!nc_is_complex(x->dtype)) {
    nc_retain(c->out[0] = x);
    return NC_OK;
  }
  return view_parts(&c->out[0], x, 0, 1);
}

int nc_op_imag(Call *c) {
  Tensor *x = c->arg[0].t;
  TRY(check_is_complex(x));
  return view_parts(&c->out[0], x, 1, 1);
}

/* Do pairs in the last dimension of x lie as complex numbers do? */
static int check_pairs(const Tensor *x) {
  const int last = x->nd - 1;
  int even = x->offset % 2 == 0;
  if (x->dtype != DT_f32 && x->dtype != DT_f64) {
    nc_fail(NC_EDTYPE, "needs float32 or float64, not %s",
            nc_dtypename(x->dtype));
    nc_hint("{0}:to(\"float32\") first");
    return NC_EDTYPE;
  }
  if (last < 0 || x->size[last] != 2)
    return nc_fail(NC_ESHAPE, "the last dimension must have size 2: real and "
                              "imaginary parts");
  for (int d = 0; d < last; d++) even &= x->size[d] <= 1 || x->step[d] % 2 == 0;
  if (even && x->step[last] == 1) return NC_OK;
  nc_fail(NC_EVALUE, "the pairs do not lie side by side in memory");
  nc_hint("{0}:contiguous() first");
  return NC_EVALUE;
}

int nc_op_view_as_complex(Call *c) {
  Tensor *x = c->arg[0].t, *y;
  TRY(check_pairs(x));
  TRY(nc_alias(&c->out[0], x));
  y = c->out[0];
  y->dtype = nc_complex_dtype(x->dtype);
  y->nd = x->nd - 1;
  y->offset = x->offset / 2;
  for (int d = 0; d < y->nd; d++) y->step[d] = x->step[d] / 2;
  return nc_release_failed(nc_setbase(y, x), c->out, 1);
}

/*
** Gradients
*/
/* g as pairs that lie as complex numbers do. */
static Tensor *pairs(Temps *w, Tensor *g) {
  Call c = nc_callon(OPERATOR_contiguous, g);
  return nc_temps_call(w, &c);
}

int nc_grad_view_as_real(OperatorGrad *g) {
  Temps w = { 0 };
  Call c = nc_callon(OPERATOR_view_as_complex, pairs(&w, g->g[0]));
  if (w.status == NC_OK) nc_temps_result(&w, &g->d[0], nc_temps_call(&w, &c));
  return nc_temps_finish(&w);
}

int nc_grad_view_as_complex(OperatorGrad *g) {
  Call c = nc_callon(OPERATOR_view_as_real, g->g[0]);
  return nc_callfirst(&g->d[0], &c);
}

int nc_grad_real(OperatorGrad *g) {
  return nc_cast(&g->d[0], g->g[0], g->in[0].meta.dtype);
}

int nc_grad_imag(OperatorGrad *g) {
  const Arg in[2] = { { .t = g->g[0] }, { .s = nc_complex(0, 1) } };
  Tensor *t;
  int r;
  TRY(nc_apply(&t, OP_mul, in, NULL, NULL));
  r = nc_cast(&g->d[0], t, g->in[0].meta.dtype);
  nc_release(t);
  return r;
}

int nc_real_part(Tensor **y, Tensor *x) {
  Call c = nc_callon(OPERATOR_real, x);
  return nc_callfirst(y, &c);
}
