/* SPDX-License-Identifier: MIT */
/*
** fourier.c - the request fourier.  Lines in the last dimension are one batch;
** those along another one lie side by side, and there is a batch of them for
** each index of the dimensions before it.
*/
#include "cuda/fourier/cufft_library.h"
#include "core/ops.h"

#include <string.h>

/* y = y times the factor. */
static int scale(const Device *d, const Tensor *y, double factor) {
  TensorIter k;
  memset(&k, 0, sizeof k);
  k.op = OP_mul;
  k.common_dtype = y->dtype;
  k.nargs = 3;
  k.nd = 1;
  k.n = k.size[0] = nc_numel(y);
  for (int j = 0; j < 2; j++) {
    k.p[j] = nc_data(y);
    k.step[j][0] = 1;
  }
  for (int j = 0; j < 3; j++) k.type[j] = y->dtype;
  k.number[2] = nc_float(factor);
  k.par[0] = 1;
  return nc_cuda_run(d, &k);
}

/* cuFFT wants real lines to begin where complex numbers could. */
static int is_aligned(const void *p, int64_t by, int64_t element) {
  return (uintptr_t)p % (uintptr_t)(2 * element) == 0 &&
         by % (2 * element) == 0;
}

int nc_cuda_fourier(const Device *d, const FourierCall *c) {
  const Tensor *x = c->x, *y = c->y;
  const int64_t element = nc_dtypesize(x->dtype);
  const int64_t lines[2] = { x->size[c->dim], y->size[c->dim] };
  const int parts[2] = { c->kind == FOURIER_OF_REAL ? 1 : 2,
                         c->kind == FOURIER_TO_REAL ? 1 : 2 };
  int64_t inner = 1, outer = 1, by[2];
  int done;
  FftLines l;
  memset(&l, 0, sizeof l); /* plans are compared byte by byte */
  for (int i = 0; i < c->dim; i++) outer *= x->size[i];
  for (int i = c->dim + 1; i < x->nd - (parts[0] - 1); i++) inner *= x->size[i];
  l.kind = c->kind;
  l.inverse = c->inverse;
  l.wide = x->dtype == DT_f64;
  l.n = c->kind == FOURIER_TO_REAL ? lines[1] : lines[0];
  l.batch = inner == 1 ? outer : inner;
  for (int i = 0; i < 2; i++) {
    l.step[i] = inner;
    l.line[i] = inner == 1 ? lines[i] : 1;
    by[i] = inner == 1 ? 0 : lines[i] * inner * parts[i] * element;
  }
  *c->left = 1;
  if (!is_aligned(nc_data(x), by[0], element) ||
      !is_aligned(nc_data(y), by[1], element))
    return NC_OK;
  nc_record_use(d, nc_data(x));
  nc_record_use(d, nc_data(y));
  TRY(nc_cufft(d, &l, nc_data(x), nc_data(y), inner == 1 ? 1 : outer, by,
               &done));
  *c->left = !done;
  return done && c->scale != 1 ? scale(d, y, c->scale) : NC_OK;
}
