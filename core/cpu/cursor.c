/* SPDX-License-Identifier: MIT */
/*
** cursor.c - the cursor over strided operands (cursor.h).
*/
#include "core/cpu/cursor.h"

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

enum { SPREAD = 256 }; /* values that are repeated at once */

void nc_cursor_start(Cursor *w, const TensorIter *k, int from, int to,
                     int64_t at) {
  w->k = k;
  w->from = from;
  w->to = to;
  for (int d = from; d < to; d++) {
    w->index[d] = at % k->size[d];
    at /= k->size[d];
  }
}

int64_t nc_cursor_offset(const Cursor *w, int j) {
  int64_t offset = 0;
  for (int d = w->from; d < w->to; d++)
    offset += w->index[d] * w->k->step[j][d];
  return offset;
}

void nc_cursor_advance(Cursor *w, int64_t n) {
  for (int d = w->from; d < w->to && n > 0; d++) {
    int64_t size = w->k->size[d], at = w->index[d] + n;
    n = 0;
    if (at >= size && d + 1 < w->to) {
      n = at < 2 * size ? 1 : at / size;
      at -= n * size;
    }
    w->index[d] = at;
  }
}

int64_t nc_cursor_left(const Cursor *w) {
  return w->from == w->to ? 1 : w->k->size[w->from] - w->index[w->from];
}

/* Does `convert' leave elements of type t as they are? */
static int is_plain_copy(DType t, ConvertKernel convert, int store) {
  const Kernels *kernels = nc_kernels();
  for (int c = 0; c < CT_COUNT; c++)
    if (nc_kernel_dtype((KernelType)c) == t)
      return convert == (store ? kernels->store : kernels->load)[c][t];
  return 0;
}

/* The whole rows from the cursor on that nc_cursor_convert can copy in one
   call, of n elements: short ones that are dense. */
static int64_t plain_rows(const TensorIter *k, int j, const Cursor *w,
                          int64_t n) {
  enum { SHORT_ROW = 32 };
  const int d = w->from;
  if (w->to - d < 2 || w->index[d] != 0 || k->size[d] > SHORT_ROW ||
      k->step[j][d] != 1)
    return 0;
  return nc_min(k->size[d + 1] - w->index[d + 1], n / k->size[d]);
}

/* The whole rows from the cursor on, of n elements, that have one value each
   and are so short that a call for each would take longer than its values. */
static int64_t equal_rows(const TensorIter *k, int j, const Cursor *w,
                          int64_t n) {
  enum { SHORT_ROW = 256 };
  const int d = w->from;
  if (w->to - d < 2 || w->index[d] != 0 || k->size[d] > SHORT_ROW ||
      k->step[j][d] != 0)
    return 0;
  n = nc_min(k->size[d + 1] - w->index[d + 1], n / k->size[d]);
  return nc_min(n, SPREAD);
}

/* Repeats each of `rows' values of one or two bytes n times. */
#define REPEAT(type)                                                  \
  static void repeat_##type(void *to, const void *from, int64_t rows, \
                            int64_t n) {                              \
    const type *x = from;                                             \
    type *y = to;                                                     \
    for (int64_t r = 0; r < rows; r++, y += n)                        \
      for (int64_t i = 0; i < n; i++) y[i] = x[r];                    \
  }
REPEAT(uint8_t)
REPEAT(uint16_t)

static void repeat_values(char *y, const char *x, int64_t rows, int64_t n,
                          int64_t size) {
  switch (size) {
    case 1: repeat_uint8_t(y, x, rows, n); break;
    case 2: repeat_uint16_t(y, x, rows, n); break;
    default: nc_kernels()->row[size == 8].repeat_rows(y, x, rows, n);
  }
}

/* Loads `rows' rows of one value each, which begin at p, for
   nc_cursor_convert. */
static void load_equal_rows(const TensorIter *k, int j, const char *p, int d,
                            char *dense, int64_t size, int64_t rows,
                            ConvertKernel convert) {
  _Alignas(64) char values[SPREAD * 8];
  convert(values, p, k->step[j][d + 1], rows);
  repeat_values(dense, values, rows, k->size[d], size);
}

void nc_cursor_convert(const TensorIter *k, int j, const Cursor *start,
                       int64_t base, char *dense, int64_t size, int64_t n,
                       ConvertKernel convert, int store) {
  const int64_t esize = nc_dtypesize(k->type[j]);
  const int d = start->from, plain = is_plain_copy(k->type[j], convert, store);
  const int64_t step = d == start->to ? 0 : k->step[j][d];
  Cursor w = *start;
  for (int64_t i = 0; i < n;) {
    int64_t rows = plain ? plain_rows(k, j, &w, n - i) : 0;
    const int64_t equal = store || size > 8 ? 0 : equal_rows(k, j, &w, n - i);
    int64_t m = nc_cursor_left(&w);
    char *p = (char *)k->p[j] + (base + nc_cursor_offset(&w, j)) * esize;
    if (equal > 1) {
      rows = equal;
      load_equal_rows(k, j, p, d, dense + i * size, size, rows, convert);
      nc_cursor_advance(&w, rows * k->size[d]);
      i += rows * k->size[d];
      continue;
    }
    if (rows > 1) {
      const int64_t bytes = k->size[d] * size, down = k->step[j][d + 1] * size;
      if (store) nc_copy_rows(p, down, dense + i * size, bytes, rows, bytes);
      else nc_copy_rows(dense + i * size, bytes, p, down, rows, bytes);
      nc_cursor_advance(&w, rows * k->size[d]);
      i += rows * k->size[d];
      continue;
    }
    if (m > n - i) m = n - i;
    if (store) convert(p, dense + i * size, step, m);
    else convert(dense + i * size, p, step, m);
    nc_cursor_advance(&w, m);
    i += m;
  }
}
