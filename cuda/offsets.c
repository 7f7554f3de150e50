/* SPDX-License-Identifier: MIT */
/* offsets.c - the host's side of offsets.h: fills Divisor, Offsets and
   StridedDims. */
#include "cuda/offsets.h"

#define MOST ((int64_t)1 << 31)

Divisor nc_divisor(int64_t d) {
  Divisor x = { (uint32_t)d, 0, 0 };
  while (((int64_t)1 << x.shift) < d) x.shift++;
  x.mul = (uint32_t)((((uint64_t)1 << 32) *
                      (((uint64_t)1 << x.shift) - (uint64_t)d)) /
                         (uint64_t)d +
                     1);
  return x;
}

int nc_fitsoffsets(int nd, const int64_t size[], int n,
                   const int64_t step[][NC_MAXDIM]) {
  int64_t count = 1;
  for (int d = 0; d < nd; d++) {
    if (size[d] <= 0 || size[d] > MOST / count) return 0;
    count *= size[d];
    for (int j = 0; j < n; j++)
      if (size[d] > 1 && step[j][d] >> 32) return 0;
  }
  return 1;
}

void nc_makeoffsets(Offsets *x, int nd, const int64_t size[], int n,
                    const int64_t step[][NC_MAXDIM]) {
  x->nd = nd;
  for (int d = 0; d < nd; d++) {
    x->size[d] = nc_divisor(size[d]);
    for (int j = 0; j < n; j++) x->step[j][d] = (uint32_t)step[j][d];
  }
}

void nc_add_outer_dim(StridedDims *x, int64_t size, int64_t step) {
  const int last = x->nd - 1;
  if (size == 1) return;
  if (last >= 0 && step == x->step[last] * x->size[last]) {
    x->size[last] *= size;
  } else {
    x->size[x->nd] = size;
    x->step[x->nd++] = step;
  }
}

void nc_set_divisors(StridedDims *x) {
  int64_t n = 1;
  x->large = 0;
  for (int d = 0; d < x->nd && !x->large; d++) {
    x->large = n > 0 && x->size[d] > MOST / n;
    n *= x->size[d];
    if (!x->large && x->size[d] > 0) x->by[d] = nc_divisor(x->size[d]);
  }
}
