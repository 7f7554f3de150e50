/* SPDX-License-Identifier: MIT */
/* rowmajor.c - elements in row-major order; see rowmajor.h. */
#include "core/io/rowmajor.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mapping.h"

int nc_bigendian(void) {
  const uint16_t one = 1;
  unsigned char first;
  memcpy(&first, &one, 1);
  return first == 0;
}

uint64_t nc_littleendian(const void *bytes, int n) {
  const unsigned char *p = bytes;
  uint64_t v = 0;
  while (n-- > 0) v = v << 8 | p[n];
  return v;
}

void nc_swapbytes(void *bytes, int64_t n, int64_t item) {
  unsigned char *p = bytes;
  for (unsigned char *end = p + n; p < end; p += item)
    for (int64_t i = 0; i < item / 2; i++) {
      unsigned char c = p[i];
      p[i] = p[item - 1 - i];
      p[item - 1 - i] = c;
    }
}

/* What has a byte order: an element, or a part of a complex number. */
static int64_t part_size(DType t) {
  return nc_dtypesize(nc_real_dtype(t));
}

void nc_elements_start(ElementCursor *e, const Tensor *t) {
  memset(e, 0, sizeof *e);
  e->t = t;
  e->left = nc_numel(t);
}

/* Moves by n elements, within the last dimension. */
static void advance(ElementCursor *e, int64_t n) {
  const Tensor *t = e->t;
  int d = t->nd - 1;
  e->left -= n;
  if (d < 0) return;
  e->at[d] += n;
  e->offset += n * t->step[d];
  for (; d > 0 && e->at[d] == t->size[d]; d--) {
    e->offset -= e->at[d] * t->step[d];
    e->at[d] = 0;
    e->at[d - 1]++;
    e->offset += t->step[d - 1];
  }
}

/* Copies n elements of x, `step' elements apart. */
static void copy_elements(char *y, const char *x, int64_t n, int64_t step,
                          int64_t item) {
#define COPY(size)                                     \
  case size:                                           \
    for (int64_t i = 0; i < n; i++)                    \
      memcpy(y + i * size, x + i * step * size, size); \
    break
  switch (item) {
    COPY(1);
    COPY(2);
    COPY(4);
    COPY(8);
    COPY(16);
  }
#undef COPY
}

int64_t nc_elements_take(ElementCursor *e, void *to, int64_t room) {
  const int64_t item = nc_dtypesize(e->t->dtype);
  const int last = e->t->nd - 1;
  const char *x = nc_data(e->t);
  int64_t used = 0;
  while (e->left > 0 && room - used >= item) {
    int64_t n = last < 0 ? 1 : e->t->size[last] - e->at[last];
    if (n > (room - used) / item) n = (room - used) / item;
    copy_elements((char *)to + used, x + e->offset * item, n,
                  last < 0 ? 1 : e->t->step[last], item);
    advance(e, n);
    used += n * item;
  }
  return used;
}

int nc_writeelements(Writer *w, const Tensor *t, void *buf, int swap) {
  ElementCursor e;
  int64_t n;
  if (!swap && nc_isdense(t)) {
    const int64_t bytes = nc_numel(t) * nc_dtypesize(t->dtype);
    const int status = nc_writeblock(w, nc_data(t), bytes);
    TRY(nc_check_pages(t));
    return status;
  }
  nc_elements_start(&e, t);
  while ((n = nc_elements_take(&e, buf, NC_IOBLOCK)) > 0) {
    if (swap) nc_swapbytes(buf, n, part_size(t->dtype));
    TRY(nc_writeblock(w, buf, n));
  }
  return nc_check_lost(t);
}

/* t is on the CPU; buf is as for nc_writeelements. */
static int write_file(const Sink *to, const void *head, int64_t n,
                      const Tensor *t, void *buf, int swap) {
  Writer w;
  TRY(nc_openwrite(&w, to));
  int status = n > 0 ? nc_writeblock(&w, head, n) : NC_OK;
  if (status == NC_OK) status = nc_writeelements(&w, t, buf, swap);
  return nc_closewrite(&w, status);
}

int nc_savewith(const Sink *to, const void *head, int64_t n, Tensor *t,
                int swap) {
  Tensor *x = NULL;
  void *buf = NULL;
  int status = nc_todevice(&x, t, &nc_cpu);
  if (status == NC_OK && (swap || !nc_isdense(x)))
    status = nc_hostalloc(&buf, NC_IOBLOCK);
  if (status == NC_OK) status = write_file(to, head, n, x, buf, swap);
  if (status == NC_OK) nc_count(0, nc_numel(t) * nc_dtypesize(t->dtype));
  nc_hostfree(buf, NC_IOBLOCK);
  nc_release(x);
  return status;
}

int nc_readelements(Reader *r, Tensor *t, int swap) {
  int64_t left = nc_numel(t) * nc_dtypesize(t->dtype);
  unsigned char *p = nc_data(t);
  while (left > 0) {
    int64_t n = left < NC_IOBLOCK ? left : NC_IOBLOCK;
    TRY(nc_readblock(r, p, n, "data"));
    if (swap) nc_swapbytes(p, n, part_size(t->dtype));
    if (t->dtype == DT_b8) /* a file may hold any byte for true */
      for (int64_t i = 0; i < n; i++) p[i] = p[i] != 0;
    p += n;
    left -= n;
  }
  return NC_OK;
}

static int is_text(const char *s, size_t n, const char *text) {
  return strlen(text) == n && memcmp(s, text, n) == 0;
}

DType nc_storednamed(const char *name, size_t n) {
  int t = 0;
  while (t < DT_COUNT && !is_text(name, n, nc_dtypename((DType)t))) t++;
  return (DType)t;
}
