/* SPDX-License-Identifier: MIT */
/*
** repeat_copy.c - copies (OP_clone) on the CPU whose operand repeats each
** element a few times along the innermost dimension: repeat_interleave,
** an expanded column.  cpu.c takes this way for all but small copies into dense
** results.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/cursor.h"
#include "core/cpu/kernels/kernels.h"
#include "core/ops.h"
#include "core/portable.h"

#define MOST 64     /* more copies of an element are a row of cpu.c */
#define LEAST 128   /* elements of a result */
#define GRAIN 32768 /* elements that are worth a thread */
#define BUFFER 8192 /* bytes written at once */
#define STREAM_BYTES ((int64_t)32 << 20) /* a result too large to cache */

/* Is the result dense in the order of the loop? */
static int result_is_dense(const TensorIter *k) {
  int64_t step = 1;
  for (int d = 0; d < k->nd; step *= k->size[d++])
    if (k->step[0][d] != step) return 0;
  return 1;
}

int nc_cpu_isrepeat(const TensorIter *k) {
  return k->op == OP_clone && k->grad_index == 0 && k->nd > 1 && k->p[1] &&
         k->step[1][0] == 0 && k->size[0] <= MOST && k->n >= LEAST &&
         k->type[0] == k->type[1] && k->common_dtype == k->type[0] &&
         result_is_dense(k);
}

/* y = n elements of x, which are `step' apart, `times' times each. */
#define REPEAT_EACH(type, count)                              \
  for (int64_t i = 0; i < n; i++) {                           \
    const type v = x[i * step];                               \
    for (int64_t t = 0; t < count; t++) y[i * count + t] = v; \
  }
#define REPEAT(type)                                                           \
  static void repeat_##type(type *y, const type *x, int64_t step,              \
                            int64_t times, int64_t n) {                        \
    if (times == 2 && step == 1)                                               \
      NC_IVDEP for (int64_t i = 0; i < n; i++) y[2 * i] = y[2 * i + 1] = x[i]; \
    else if (times == 2) REPEAT_EACH(type, 2)                                  \
    else if (times == 3) REPEAT_EACH(type, 3)                                  \
    else if (times == 4) REPEAT_EACH(type, 4)                                  \
    else REPEAT_EACH(type, times)                                              \
  }
REPEAT(uint8_t)
REPEAT(uint16_t)
REPEAT(uint32_t)
REPEAT(uint64_t)
#undef REPEAT
#undef REPEAT_EACH

static void repeat(const TensorIter *k, void *y, const void *x, int64_t n) {
  const int64_t step = k->step[1][1], times = k->size[0];
  switch (nc_dtypesize(k->type[0])) {
    case 1: repeat_uint8_t(y, x, step, times, n); break;
    case 2: repeat_uint16_t(y, x, step, times, n); break;
    case 4: repeat_uint32_t(y, x, step, times, n); break;
    default: repeat_uint64_t(y, x, step, times, n);
  }
}

/* Elements begin .. end-1 of the operand, `widest' at a time. */
static void repeat_range(const TensorIter *k, int64_t begin, int64_t end,
                         int64_t widest, int streams) {
  const int64_t size = nc_dtypesize(k->type[0]), bytes = k->size[0] * size;
  _Alignas(64) char buf[BUFFER];
  Cursor w;
  nc_cursor_start(&w, k, 1, k->nd, begin);
  for (int64_t i = begin, n; i < end && !nc_interrupted; i += n) {
    char *y = (char *)k->p[0] + i * bytes;
    const char *x = (char *)k->p[1] + nc_cursor_offset(&w, 1) * size;
    n = nc_min(nc_min(nc_cursor_left(&w), end - i), widest);
    repeat(k, streams ? buf : y, x, n);
    if (streams) nc_kernels()->stream(y, buf, n * bytes);
    nc_cursor_advance(&w, n);
  }
}

static void repeat_cached(void *ctx, int64_t begin, int64_t end) {
  repeat_range(ctx, begin, end, GRAIN, 0);
}

/* In pieces of 64 bytes, which non-temporal stores need. */
static void repeat_past_cache(void *ctx, int64_t begin, int64_t end) {
  const TensorIter *k = ctx;
  const int64_t bytes = k->size[0] * nc_dtypesize(k->type[0]);
  repeat_range(k, begin * 64, nc_min(end * 64, k->n / k->size[0]),
               BUFFER / bytes / 64 * 64, 1);
  nc_kernels()->fence();
}

/* Does each 64th element of the operand begin a cache line of the result, with
   no shorter piece in between? */
static int should_stream(const TensorIter *k) {
  const int64_t bytes = k->size[0] * nc_dtypesize(k->type[0]);
  return k->n * nc_dtypesize(k->type[0]) >= STREAM_BYTES &&
         (uintptr_t)k->p[0] % 64 == 0 && BUFFER / bytes >= 64 &&
         (k->nd == 2 || k->size[1] % 64 == 0);
}

int nc_cpu_repeat(const TensorIter *k) {
  const int64_t n = k->n / k->size[0], grain = 1 + GRAIN / k->size[0];
  if (should_stream(k))
    return nc_parallel(nc_ceil_div(n, 64), 8 * grain / 64 + 1,
                       repeat_past_cache, (void *)k);
  return nc_parallel(n, grain, repeat_cached, (void *)k);
}
