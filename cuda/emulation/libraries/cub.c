/* SPDX-License-Identifier: MIT */
/*
** cub.c - CUB's radix sort and scan for the emulated device: operations of a
** stream, in plain loops, which check the extents of all buffers first.  Memory
** that CUB leaves undefined becomes undefined here as well: the temporary
** storage and the buffer of a DoubleBuffer that does not hold the result.  As
** in CUB, the buffers are swapped in each pass of DIGIT bits.
*/
#include "cuda/emulation/libraries/cub.h"

#include <string.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/shadow.h"

#define DIGIT 8
#define DIGITS (1 << DIGIT)
#define TILE 1024 /* elements; temporary storage is LEAST bytes */
#define EACH 16   /* plus EACH bytes for each tile */
#define LEAST 767

typedef struct Work {
  EmuSort sort;
  EmuScan scan;
  void *temp;
  size_t bytes;
} Work;

/*
** Submission
*/
/* Sets *bytes if w->temp is NULL, otherwise queues the work.  Returns an
   earlier error that was not cleared, as CUB does. */
static cudaError_t submit(const char *name, void run(void *), const Work *w,
                          size_t n, size_t *bytes, cudaStream_t stream) {
  const size_t needs = LEAST + (n + TILE - 1) / TILE * EACH;
  cudaStream_t s;
  if (w->temp == NULL) {
    *bytes = needs;
    return cudaSuccess;
  }
  s = emu_stream(stream);
  if (s == NULL || s->device != emu_current)
    return cudaErrorInvalidResourceHandle;
  if (*bytes < needs) return cudaErrorInvalidValue;
  if (emu_lasterror(0) != cudaSuccess) return emu_lasterror(0);
  if (n > 0) emu_enqueue(s, name, run, w, sizeof *w, NULL);
  return cudaSuccess;
}

/* Makes n bytes undefined. */
static void make_undefined(void *p, size_t n) {
  emu_access(p, n, 1);
  memset(p, EMU_FILLER, n);
  emu_shadow_undefine(p, n);
}

/*
** Radix sort, least significant digit first
*/
int emu_sortpasses(const EmuSort *s) {
  return s->n == 0 || s->end <= s->begin
             ? 0
             : (s->end - s->begin + DIGIT - 1) / DIGIT;
}

static uint64_t key_at(const void *p, size_t i, int size) {
  switch (size) {
    case 1: return ((const uint8_t *)p)[i];
    case 2: return ((const uint16_t *)p)[i];
    case 4: return ((const uint32_t *)p)[i];
    default: return ((const uint64_t *)p)[i];
  }
}

static unsigned digit_at(const EmuSort *s, int from, size_t i, int bit) {
  const int bits = s->end - bit < DIGIT ? s->end - bit : DIGIT;
  return (unsigned)(key_at(s->key[from], i, s->keysize) >> bit) &
         ((1u << bits) - 1);
}

static void move(void *const buffer[2], int from, size_t to, size_t i,
                 int size) {
  memcpy((char *)buffer[!from] + to * (size_t)size,
         (char *)buffer[from] + i * (size_t)size, (size_t)size);
}

static void pass(const EmuSort *s, int from, int bit) {
  size_t start[DIGITS + 1] = { 0 };
  for (size_t i = 0; i < s->n; i++) start[digit_at(s, from, i, bit) + 1]++;
  for (int k = 1; k < DIGITS; k++) start[k] += start[k - 1];
  for (size_t i = 0; i < s->n; i++) {
    const size_t to = start[digit_at(s, from, i, bit)]++;
    move(s->key, from, to, i, s->keysize);
    if (s->valuesize) move(s->value, from, to, i, s->valuesize);
  }
}

static void sortnow(void *arg) {
  const Work *w = arg;
  const EmuSort *s = &w->sort;
  const size_t keys = s->n * (size_t)s->keysize;
  const size_t values = s->n * (size_t)s->valuesize;
  const int passes = emu_sortpasses(s), at = passes % 2;
  for (int write = 0; write < 2; write++) {
    emu_access(s->key[write], keys, write);
    emu_access(s->value[write], values, write);
  }
  for (int i = 0; i < passes; i++) pass(s, i % 2, s->begin + i * DIGIT);
  emu_access(s->key[at], keys, 1);
  emu_access(s->value[at], values, 1);
  make_undefined(s->key[!at], keys);
  make_undefined(s->value[!at], values);
  make_undefined(w->temp, w->bytes);
}

API(emu_sort,
    (const EmuSort *s, void *temp, size_t *bytes, cudaStream_t stream),
    (s, temp, bytes, stream)) {
  const Work w = { .sort = *s, .temp = temp, .bytes = *bytes };
  if (s->begin < 0 || s->end > 8 * s->keysize) return cudaErrorInvalidValue;
  return submit("CUB sort", sortnow, &w, emu_sortpasses(s) ? s->n : 0, bytes,
                stream);
}

/*
** Inclusive sums
*/
static void scannow(void *arg) {
  const Work *w = arg;
  const EmuScan *s = &w->scan;
  uint64_t sum = 0;
  emu_access(s->x, s->n * sizeof *s->x, 0);
  emu_access(s->y, s->n * sizeof *s->y, 1);
  for (size_t i = 0; i < s->n; i++) s->y[i] = sum += s->x[i];
  make_undefined(w->temp, w->bytes);
}

API(emu_scan,
    (const EmuScan *s, void *temp, size_t *bytes, cudaStream_t stream),
    (s, temp, bytes, stream)) {
  const Work w = { .scan = *s, .temp = temp, .bytes = *bytes };
  return submit("CUB sum", scannow, &w, s->n, bytes, stream);
}
