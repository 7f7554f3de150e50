/* SPDX-License-Identifier: MIT */
/*
** fourier.c - discrete Fourier transforms along a dimension, with gradients.
** The transform and the one back without a factor are each other's adjoint.  Of
** half a spectrum each element but the first, and the last if n is even, stands
** for two, which is why `inner' is there: the gradient of one kind for real
** numbers is the other one, whose inner elements are halved or doubled.
*/
#include "core/op.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/pointwise/temps.h"
#include "core/tape.h"
#include "core/trace_internal.h"

/* The arguments of _fourier. */
enum { A_SELF, A_DIM, A_N, A_KIND, A_INVERSE, A_SCALE, A_INNER };

typedef struct Fourier {
  FourierKind kind;
  int inverse, dim;
  int64_t n;
  double scale, inner;
} Fourier;

static int64_t half_spectrum(int64_t n) {
  return n / 2 + 1;
}

/* Elements of a line of the operand and of the result. */
static int64_t taken(const Fourier *f) {
  return f->kind == FOURIER_TO_REAL ? half_spectrum(f->n) : f->n;
}
static int64_t given(const Fourier *f) {
  return f->kind == FOURIER_OF_REAL ? half_spectrum(f->n) : f->n;
}

/* Reads the arguments for an operand or a gradient of nd dimensions, the pairs
   not counted. */
static int read(Fourier *f, const Arg arg[], int nd) {
  f->kind = (FourierKind)arg[A_KIND].s.i;
  f->inverse = arg[A_INVERSE].s.i != 0;
  f->n = arg[A_N].s.i;
  f->scale = nc_tofloat(arg[A_SCALE].s);
  f->inner = nc_tofloat(arg[A_INNER].s);
  if (f->n < 1)
    return nc_fail(NC_EVALUE, "n must be at least 1, not %lld",
                   (long long)f->n);
  if (nd == 0)
    return nc_fail(NC_ESHAPE, "needs at least one dimension, not a number");
  return nc_dim(&f->dim, arg[A_DIM].s.i, nd);
}

static int check_pairs(const Tensor *x) {
  if (x->nd > 0 && x->size[x->nd - 1] == 2) return NC_OK;
  return nc_fail(NC_ESHAPE, "complex numbers are pairs in the last dimension");
}

/* x with n elements along dim: cut, or followed by zeros. */
static Tensor *resize(Temps *w, Tensor *x, int dim, int64_t n) {
  int64_t size[NC_MAXDIM];
  if (w->status != NC_OK || x->size[dim] == n) return x;
  if (x->size[dim] > n) return nc_temps_narrow(w, x, dim, 0, n);
  for (int d = 0; d < x->nd; d++) size[d] = x->size[d];
  size[dim] = n - x->size[dim];
  Tensor *both[2] = { x,
                      nc_temps_full(w, x, x->dtype, x->nd, size, nc_int(0)) };
  return nc_temps_cat(w, both, 2, dim);
}

/* Multiplies the elements of half a spectrum that stand for two, in place. */
static void scale_inner(Temps *w, Tensor *half, const Fourier *f) {
  const int64_t inner = (f->n - 1) / 2;
  if (f->inner == 1 || inner < 1 || w->status != NC_OK) return;
  Tensor *part = nc_temps_narrow(w, half, f->dim, 1, inner);
  nc_temps_copyinto(w, part,
                    nc_temps_opnumber(w, OP_mul, part, nc_float(f->inner)));
}

/* A new tensor for the transform of x. */
static Tensor *new_result(Temps *w, const Tensor *x, const Fourier *f) {
  int64_t size[NC_MAXDIM + 1];
  int nd = x->nd;
  if (w->status != NC_OK) return NULL;
  for (int d = 0; d < nd; d++) size[d] = x->size[d];
  size[f->dim] = given(f);
  if (f->kind == FOURIER_TO_REAL) nd--;
  if (f->kind == FOURIER_OF_REAL) size[nd++] = 2;
  w->status = nc_check_maxdim(nd);
  return nc_temps_new(w, x, x->dtype, nd, size);
}

static int64_t flops(const Tensor *y, int64_t n) {
  int64_t steps = 0;
  for (; n > 1; n /= 2) steps++;
  return 5 * nc_numel(y) / 2 * steps; /* as is usual, 5*n*log2(n) of n */
}

/* Sets the imaginary parts of the elements of half a spectrum to 0 that a real
   line does not have, in place. */
static void drop_parts(Temps *w, Tensor *half, const Fourier *f) {
  if (w->status != NC_OK || nc_numel(half) == 0) return;
  Tensor *im = nc_temps_narrow(w, half, half->nd - 1, 1, 1);
  for (int64_t i = 0; i <= f->n / 2; i += f->n / 2) {
    Tensor *part = nc_temps_narrow(w, im, f->dim, i, 1);
    if (w->status == NC_OK) w->status = nc_fill(part, nc_int(0));
    if (f->n % 2 != 0) return;
  }
}

/* *left = 1: the device does not have it. */
static Tensor *transform(Temps *w, Tensor *x, const Fourier *f, int *left) {
  const int to_real = f->kind == FOURIER_TO_REAL;
  const int changes = to_real && (f->inner != 1 || nc_device(x) != &nc_cpu);
  x = resize(w, x, f->dim, taken(f));
  x = changes ? nc_temps_op1(w, OP_clone, x) : x;
  x = nc_temps_dense(w, x);
  if (to_real) scale_inner(w, x, f);
  if (changes) drop_parts(w, x, f);
  Tensor *y = w->status == NC_OK ? new_result(w, x, f) : NULL;
  if (w->status != NC_OK || nc_numel(y) == 0) return y;
  const FourierCall c = { .kind = f->kind,
                          .inverse = f->inverse,
                          .dim = f->dim,
                          .scale = f->scale,
                          .x = x,
                          .y = y,
                          .left = left };
  nc_count(flops(y, f->n),
           (nc_numel(x) + nc_numel(y)) * nc_dtypesize(x->dtype));
  if (nc_ismeta(nc_device(x))) return y;
  w->status = nc_device(x)->fourier(nc_device(x), &c);
  if (f->kind == FOURIER_OF_REAL && !*left) scale_inner(w, y, f);
  return y;
}

int nc_op__fourier(Call *c) {
  Tensor *x = c->arg[A_SELF].t;
  Fourier f;
  Temps w = { 0 };
  int left = 0;
  TRY(nc_check_float32or64(x));
  if (c->arg[A_KIND].s.i != FOURIER_OF_REAL) TRY(check_pairs(x));
  TRY(read(&f, c->arg, x->nd - (c->arg[A_KIND].s.i != FOURIER_OF_REAL)));
  if (nc_device(x)->fourier == NULL && !nc_ismeta(nc_device(x)))
    return nc_run_on_host(c, nc_device(x));
  Tensor *y = transform(&w, x, &f, &left);
  if (w.status != NC_OK || !left) return nc_temps_endcall(&w, c, y);
  TRY(nc_temps_finish(&w));
  return nc_run_on_host(c, nc_device(x));
}

int nc_grad__fourier(OperatorGrad *g) {
  static const FourierKind adjoint[] = { FOURIER_COMPLEX, FOURIER_TO_REAL,
                                         FOURIER_OF_REAL };
  Temps w = { 0 };
  Fourier f;
  Tensor *d = g->g[0];
  const int pairs = g->arg[A_KIND].s.i != FOURIER_TO_REAL;
  TRY(read(&f, g->arg, d->nd - pairs));
  Call c = nc_callon(OPERATOR__fourier, d);
  for (int i = A_DIM; i <= A_INNER; i++) c.arg[i] = g->arg[i];
  c.arg[A_KIND].s = nc_int(adjoint[f.kind]);
  c.arg[A_INVERSE].s = nc_int(!f.inverse);
  if (f.kind == FOURIER_OF_REAL) c.arg[A_INNER].s = nc_float(f.inner / 2);
  if (f.kind == FOURIER_TO_REAL) c.arg[A_INNER].s = nc_float(f.inner * 2);
  d = nc_temps_call(&w, &c);
  return nc_temps_end(&w, &g->d[0],
                      resize(&w, d, f.dim, g->in[0].meta.size[f.dim]));
}
