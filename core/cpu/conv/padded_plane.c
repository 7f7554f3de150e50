/* SPDX-License-Identifier: MIT */
/* padded_plane.c - the padded planes of a convolution; see cpu_conv.h. */
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/conv/cpu_conv.h"
#include "core/cpu/kernels/kernels.h"

PaddedPlane nc_padded_plane(const ConvGeometry *w, int64_t rows, int64_t cols) {
  PaddedPlane f = { .w = w, .rows = rows, .cols = cols };
  f.height = rows + (w->kernel[0] - 1) * w->dilation[0] / w->stride[0];
  f.width = cols + (w->kernel[1] - 1) * w->dilation[1] / w->stride[1];
  f.size = w->stride[0] * w->stride[1] * f.height * f.width;
  return f;
}

int64_t nc_tap_offset(const PaddedPlane *f, int64_t i, int64_t j) {
  const ConvGeometry *w = f->w;
  const int64_t y = i * w->dilation[0], x = j * w->dilation[1];
  if (w->stride[0] == 1 && w->stride[1] == 1) return y * f->width + x;
  const int64_t phase = y % w->stride[0] * w->stride[1] + x % w->stride[1];
  return (phase * f->height + y / w->stride[0]) * f->width + x / w->stride[1];
}

/* Does any filter element read this phase of dimension d? */
static int phase_is_used(const ConvGeometry *w, int d, int64_t phase) {
  for (int64_t i = 0; i < w->kernel[d]; i++)
    if (i * w->dilation[d] % w->stride[d] == phase) return 1;
  return 0;
}

/* *a..*b-1: which elements of a row of a phase, which begins at position `at'
   of a row of the plane, lie inside the plane. */
static void inside_range(const PaddedPlane *f, int64_t at, int64_t *a,
                         int64_t *b) {
  const int64_t s = f->w->stride[1], n = f->w->size[1];
  *a = at >= 0 ? 0 : (-at + s - 1) / s;
  *b = at >= n ? 0 : (n - 1 - at) / s + 1;
  if (*b > f->width) *b = f->width;
  if (*a > *b) *a = *b;
}

/* y = x, for `rows' rows of n elements of 16 bits; see RowKernels. */
static void copy_halves(void *to, int64_t ystep, const void *from,
                        int64_t xstep, int64_t rows, int64_t n) {
  enum { FEW = 8 };
  const uint16_t *x = from;
  uint16_t *y = to;
  for (int64_t r = 0; r < rows; r++, y += ystep, x += xstep) {
    if (n >= FEW) {
      for (int64_t i = 0; i + FEW < n; i += FEW)
        memcpy(y + i, x + i, FEW * sizeof *y);
      memcpy(y + n - FEW, x + n - FEW, FEW * sizeof *y);
    } else
      for (int64_t i = 0; i < n; i++) y[i] = x[i];
  }
}

static void copy_rows(int64_t size, void *y, int64_t ystep, const void *x,
                      int64_t xstep, int64_t rows, int64_t n) {
  if (size == sizeof(uint16_t)) copy_halves(y, ystep, x, xstep, rows, n);
  else
    nc_kernels()->row[size == sizeof(double)].copy_rows(y, ystep, x, xstep,
                                                        rows, n);
}

#define T uint16_t /* nothing is added to them */
#define NAME(f) f##_u16
#define ADD(x, y) ((void)0)
#include "core/cpu/conv/padded_plane.inc"
#undef ADD
#define ADD(x, y) ((x) += (y))
#define T float
#define NAME(f) f##_f32
#include "core/cpu/conv/padded_plane.inc"
#define T double
#define NAME(f) f##_f64
#include "core/cpu/conv/padded_plane.inc"

void nc_plane_load(const PaddedPlane *f, DType t, void *padded, const void *x,
                   int64_t row, int64_t col) {
  switch (t) {
    case DT_bf16: transfer_u16(f, padded, (uint16_t *)x, row, col, 0); break;
    case DT_f32: transfer_f32(f, padded, (float *)x, row, col, 0); break;
    default: transfer_f64(f, padded, (double *)x, row, col, 0); break;
  }
}

void nc_plane_add(const PaddedPlane *f, DType t, void *x, const void *padded,
                  int64_t row, int64_t col) {
  t == DT_f32 ? transfer_f32(f, (float *)padded, x, row, col, 1)
              : transfer_f64(f, (double *)padded, x, row, col, 1);
}

void nc_plane_taps(const PaddedPlane *f, DType t, void *padded, void *columns,
                   int64_t step, int64_t rows, int64_t cols, int back) {
  const RowKernels *k = &nc_kernels()->row[t == DT_f64];
  const int64_t size = nc_dtypesize(t);
  char *col = columns;
  for (int64_t i = 0; i < f->w->kernel[0]; i++)
    for (int64_t j = 0; j < f->w->kernel[1]; j++, col += step * size) {
      char *tap = (char *)padded + nc_tap_offset(f, i, j) * size;
      if (back) k->add_rows(tap, f->width, col, cols, rows, cols);
      else copy_rows(size, col, cols, tap, f->width, rows, cols);
    }
}
