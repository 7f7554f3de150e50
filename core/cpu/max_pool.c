/* SPDX-License-Identifier: MIT */
/*
** max_pool.c - the request max_pool on the CPU, and its gradient, plane by
** plane.  Halves are computed in float32.
*/
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define GRAIN 100000 /* elements read that are worth a thread */

typedef struct MaxPoolWork {
  const ConvGeometry *w;
  int wide, back; /* wide: float64 */
  char *x, *y;
  int64_t *at;
  _Atomic int64_t bad; /* number, from 1, of a position out of range, or 0 */
} MaxPoolWork;

static void run_planes(void *ctx, int64_t begin, int64_t end) {
  MaxPoolWork *j = ctx;
  const ConvGeometry *w = j->w;
  const MaxPoolKernels *k = &nc_kernels()->max_pool[j->wide];
  const int64_t item = j->wide ? sizeof(double) : sizeof(float);
  const int64_t size = w->size[0] * w->size[1], n = w->out[0] * w->out[1];
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    void *x = j->x + i * size * item, *y = j->y + i * n * item;
    int64_t *at = j->at + i * n, bad = 0;
    if (j->back) bad = k->backward(w, x, y, at);
    else k->forward(w, x, y, at);
    if (bad) atomic_store(&j->bad, i * n + bad);
  }
}

static int run_max_pool(const MaxPoolCall *p, Tensor *x, Tensor *y) {
  const ConvGeometry *w = &p->windows;
  const double places = (double)w->out[0] * (double)w->out[1];
  const double work = places * (double)w->kernel[0] * (double)w->kernel[1];
  MaxPoolWork j = { .w = w, .wide = x->dtype == DT_f64, .back = p->back };
  int r;
  j.x = nc_data(x);
  j.y = nc_data(y);
  j.at = nc_data(p->at);
  r = nc_parallel(p->planes, 1 + (int64_t)(GRAIN / work), run_planes, &j);
  if (r == NC_OK && j.bad)
    return nc_fail(NC_EINDEX, "position %lld is not in a plane of %lld x %lld",
                   (long long)j.at[j.bad - 1], (long long)w->size[0],
                   (long long)w->size[1]);
  return r;
}

int nc_cpu_max_pool(const MaxPoolCall *p) {
  const DType type = p->x->dtype == DT_f64 ? DT_f64 : DT_f32;
  const Tensor *from = p->back ? p->y : p->x, *to = p->back ? p->x : p->y;
  Tensor *in = NULL, *out = NULL;
  int r = nc_cast(&in, (Tensor *)from, type);
  if (r == NC_OK) r = nc_cpu_result(&out, to, type);
  if (r == NC_OK)
    r = p->back ? run_max_pool(p, out, in) : run_max_pool(p, in, out);
  nc_release(in);
  return nc_cpu_store_result(r, to, out);
}
