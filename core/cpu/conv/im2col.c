/* SPDX-License-Identifier: MIT */
/*
** im2col.c - the request im2col on the CPU: patches as columns, or back
** (col2im), plane by plane by way of a padded plane.  Halves are computed in
** float32.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/conv/cpu_conv.h"

typedef struct Im2colWork {
  const Im2colCall *p;
  DType type;
  PaddedPlane padded;
  char *x, *columns;
} Im2colWork;

static void convert_plane(void *ctx, int64_t i, char *padded) {
  const Im2colWork *j = ctx;
  const ConvGeometry *w = &j->p->at;
  const int64_t size = nc_dtypesize(j->type);
  const int64_t positions = w->out[0] * w->out[1];
  char *x = j->x + i * w->size[0] * w->size[1] * size;
  char *col = j->columns + i * w->kernel[0] * w->kernel[1] * positions * size;
  if (!j->p->back) {
    nc_plane_load(&j->padded, j->type, padded, x, 0, 0);
    nc_plane_taps(&j->padded, j->type, padded, col, positions, w->out[0],
                  w->out[1], 0);
  } else {
    memset(x, 0, (size_t)(w->size[0] * w->size[1] * size));
    memset(padded, 0, (size_t)(j->padded.size * size));
    nc_plane_taps(&j->padded, j->type, padded, col, positions, w->out[0],
                  w->out[1], 1);
    nc_plane_add(&j->padded, j->type, x, padded, 0, 0);
  }
}

static int run_im2col(Im2colWork *j) {
  j->padded = nc_padded_plane(&j->p->at, j->p->at.out[0], j->p->at.out[1]);
  return nc_cpu_tasks(j->p->n * j->p->c, j->padded.size * nc_dtypesize(j->type),
                      convert_plane, j);
}

int nc_cpu_im2col(const Im2colCall *p) {
  Tensor *from = (Tensor *)(p->back ? p->columns : p->x), *in = NULL;
  Tensor *to = (Tensor *)(p->back ? p->x : p->columns), *out = NULL;
  Im2colWork j = { .p = p, .type = to->dtype == DT_f64 ? DT_f64 : DT_f32 };
  int r = nc_cast(&in, from, j.type);
  if (r == NC_OK) r = nc_cpu_result(&out, to, j.type);
  if (r == NC_OK) {
    j.x = nc_data(p->back ? out : in);
    j.columns = nc_data(p->back ? in : out);
    r = run_im2col(&j);
  }
  nc_release(in);
  return nc_cpu_store_result(r, to, out);
}
