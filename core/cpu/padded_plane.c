/* SPDX-License-Identifier: MIT */
/* padded_plane.c - frames of a convolution; see cpu_conv.h. */
#include <string.h>

#include "core/cpu/cpu_conv.h"

Frame nc_frame(const ConvGeometry *w, int64_t rows, int64_t cols) {
  Frame f = { .w = w, .rows = rows, .cols = cols };
  f.high = rows + (w->kernel[0] - 1) * w->dilation[0] / w->stride[0];
  f.wide = cols + (w->kernel[1] - 1) * w->dilation[1] / w->stride[1];
  f.size = w->stride[0] * w->stride[1] * f.high * f.wide;
  return f;
}

int64_t nc_tap(const Frame *f, int64_t i, int64_t j) {
  const ConvGeometry *w = f->w;
  const int64_t y = i * w->dilation[0], x = j * w->dilation[1];
  if (w->stride[0] == 1 && w->stride[1] == 1) return y * f->wide + x;
  const int64_t phase = y % w->stride[0] * w->stride[1] + x % w->stride[1];
  return (phase * f->high + y / w->stride[0]) * f->wide + x / w->stride[1];
}

/* Does any element of the kernel fall in this phase? */
static int used(const ConvGeometry *w, int d, int64_t phase) {
  for (int64_t i = 0; i < w->kernel[d]; i++)
    if (i * w->dilation[d] % w->stride[d] == phase) return 1;
  return 0;
}

/* Of the elements of a line that begin at position `at' of a plane's line,
   and go on by the stride: those within it are from *a to before *b. */
static void within(const Frame *f, int64_t at, int64_t *a, int64_t *b) {
  const int64_t s = f->w->stride[1], n = f->w->size[1];
  *a = at >= 0 ? 0 : (-at + s - 1) / s;
  *b = at >= n ? 0 : (n - 1 - at) / s + 1;
  if (*b > f->wide) *b = f->wide;
  if (*a > *b) *a = *b;
}

#define T float
#define NAME(f) f##_f32
#include "core/cpu/padded_plane.inc"
#undef T
#undef NAME
#define T double
#define NAME(f) f##_f64
#include "core/cpu/padded_plane.inc"
#undef T
#undef NAME

void nc_toframe(const Frame *f, DType t, void *frame, const void *x,
                int64_t row, int64_t col) {
  t == DT_f32 ? walk_f32(f, frame, (float *)x, row, col, 0)
              : walk_f64(f, frame, (double *)x, row, col, 0);
}

void nc_fromframe(const Frame *f, DType t, void *x, const void *frame,
                  int64_t row, int64_t col) {
  t == DT_f32 ? walk_f32(f, (float *)frame, x, row, col, 1)
              : walk_f64(f, (double *)frame, x, row, col, 1);
}
