/* SPDX-License-Identifier: MIT */
/*
** columns.c - scans and argmax along a dimension that is not the last, on the
** CPU, by strips of columns (columns.inc) where the elements are.
*/
#include "core/cpu/columns.h"

#include "core/cpu/cpu.h"
#include "core/cpu/cursor.h"
#include "core/cpu/dim_rows.h"
#include "core/portable.h"
#include "core/tensor.h"

typedef struct ColumnWork {
  const char *x;
  char *y; /* or NULL, as at */
  int64_t *at;
  int64_t size, length, inner; /* bytes; elements of a column; columns */
  int64_t width, strips;       /* of the inner columns */
  int64_t out;                 /* rows of the result for each matrix of x */
  ColumnKernel *loop;
} ColumnWork;

/* Task i: strip i % strips of the matrix i / strips. */
static void run_strips(void *ctx, int64_t begin, int64_t end) {
  const ColumnWork *j = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const int64_t first = i % j->strips * j->width, k = i / j->strips;
    const int64_t from = k * j->length * j->inner + first;
    const int64_t to = k * j->out * j->inner + first;
    j->loop(j->x + from * j->size, j->y ? j->y + to * j->size : NULL,
            j->at ? j->at + to : NULL, j->length, j->inner,
            nc_min(j->inner - first, j->width));
  }
}

/* The columns of a strip: fewer where a thread would have nothing to do. */
static int64_t strip_width(int64_t inner, int64_t matrices) {
  enum { LINE = 16 };
  const int64_t share = nc_ceil_div(inner * matrices, nc_threads());
  return nc_min(NC_COLUMNS, nc_ceil_div(share, LINE) * LINE);
}

/* Are all of the operands where the loop can use them? */
static int has_loop(const DimCall *c) {
  const Tensor *x = c->x;
  const KernelType type = nc_kernel_type(x->dtype);
  return nc_kernels()->columns[c->op][type] != NULL &&
         nc_matches_kernel(x->dtype, type) && x->nd > 1 &&
         (c->dims & (c->dims - 1)) == 0 && nc_numel(x) > 0 && nc_isdense(x) &&
         (c->y == NULL || (nc_isdense(c->y) && c->y->dtype == x->dtype)) &&
         (c->at == NULL || nc_isdense(c->at));
}

int nc_cpu_columns(const DimCall *c, int *done) {
  enum { FEW = 8 }; /* columns: extremes are found faster along them */
  const Tensor *x = c->x;
  const int dim = nc_dim_of(c);
  const int reduces = c->op == DIM_ARGMAX || c->op == DIM_ARGMIN;
  ColumnWork j = { .inner = 1 };
  int64_t matrices;
  *done = 0;
  if (!has_loop(c)) return NC_OK;
  for (int d = dim + 1; d < x->nd; d++) j.inner *= x->size[d];
  j.length = x->size[dim];
  if (j.inner < (reduces ? FEW : 2) || j.length >= INT32_MAX) return NC_OK;
  *done = 1;
  j.loop = nc_kernels()->columns[c->op][nc_kernel_type(x->dtype)];
  j.x = nc_data(c->x);
  j.y = c->y ? nc_data(c->y) : NULL;
  j.at = c->at ? nc_data(c->at) : NULL;
  j.size = nc_dtypesize(x->dtype);
  j.out = reduces ? 1 : j.length;
  matrices = nc_numel(x) / (j.length * j.inner);
  j.width = strip_width(j.inner, matrices);
  j.strips = nc_ceil_div(j.inner, j.width);
  return nc_parallel(matrices * j.strips,
                     1 + 16384 / (j.length * nc_min(j.inner, j.width)),
                     run_strips, &j);
}
