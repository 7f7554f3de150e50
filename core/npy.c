/* SPDX-License-Identifier: MIT */
/*
** npy.c - tensors in NumPy's .npy format, versions 1.0 to 3.0.
**
** A file is untrusted: its header is read strictly, and what it declares is
** held against the bytes that are there before anything is allocated.
** Nothing in a file is ever executed.
*/
#include "npy.h"

#include <stdio.h>
#include <string.h>

#include "file.h"

#define MAGIC 6               /* bytes */
#define ALIGNED 64            /* data begins at a multiple of it */

/*
** Loading
*/
static int magic(Reader *r, int *major) {
  unsigned char b[MAGIC + 2];
  char shown[40];
  TRY(nc_readblock(r, b, sizeof b, "magic"));
  if (memcmp(b, NPY_MAGIC, MAGIC) != 0) {
    nc_failfile(NC_EFILE, r->path,
                "magic: no .npy file: it begins with \"%s\"",
                nc_printable(shown, sizeof shown, (char *)b, MAGIC));
    if (memcmp(b, "PK\3\4", 4) == 0)
      nc_hint("this is a zip archive, perhaps a .npz: unzip it first");
    return NC_EFILE;
  }
  *major = b[MAGIC];
  if (*major < 1 || *major > 3 || b[MAGIC + 1] != 0)
    return nc_failfile(NC_EFILE, r->path,
                       "version: %d.%d is unknown, 1.0, 2.0 and 3.0 are read",
                       *major, b[MAGIC + 1]);
  return NC_OK;
}

static int header(Reader *r, NpyHeader *h) {
  unsigned char b[4] = { 0 };
  char text[NPY_MAXHEADER];
  int major;
  uint32_t n;
  TRY(magic(r, &major));
  TRY(nc_readblock(r, b, major == 1 ? 2 : 4, "header length"));
  n = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
  if (n > NPY_MAXHEADER)
    return nc_failfile(NC_EFILE, r->path,
                       "header length: %lu bytes, the most is %d",
                       (unsigned long)n, NPY_MAXHEADER);
  TRY(nc_readblock(r, text, n, "header"));
  return nc_parsenpy(h, r->path, major, text, n);
}

/* Is what remains of the file exactly the declared data? */
static int checkdata(const Reader *r, const NpyHeader *h) {
  char shape[NC_TEXT];
  int64_t n, bytes;
  if (nc_checksize(&n, h->dtype, h->nd, h->size) != NC_OK)
    return nc_failfile(NC_EFILE, r->path, "shape: (%s) is beyond 64 bits",
                       nc_shapetext(shape, h->nd, h->size));
  bytes = n * nc_dtypesize(h->dtype);
  if (bytes == r->left) return NC_OK;
  return nc_failfile(NC_EFILE, r->path,
                     "data: %s[%s] takes %lld bytes, the file has %lld left",
                     nc_dtypename(h->dtype),
                     nc_shapetext(shape, h->nd, h->size), (long long)bytes,
                     (long long)r->left);
}

static void swap(unsigned char *p, int64_t bytes, int64_t item) {
  for (unsigned char *end = p + bytes; p < end; p += item)
    for (int64_t i = 0; i < item / 2; i++) {
      unsigned char c = p[i];
      p[i] = p[item - 1 - i];
      p[item - 1 - i] = c;
    }
}

/* Reads bytes into p, as this machine and our types want them. */
static int data(Reader *r, const NpyHeader *h, unsigned char *p) {
  while (r->left > 0) {
    int64_t n = r->left < NC_IOBLOCK ? r->left : NC_IOBLOCK;
    TRY(nc_readblock(r, p, n, "data"));
    if (h->swap) swap(p, n, nc_dtypesize(h->dtype));
    if (h->dtype == DT_b8) /* ours are 0 or 1; NumPy's any byte */
      for (int64_t i = 0; i < n; i++) p[i] = p[i] != 0;
    p += n;
  }
  return nc_readend(r);
}

static void reverse(int64_t v[], int n) {
  for (int i = 0; i < n / 2; i++) {
    int64_t x = v[i];
    v[i] = v[n - 1 - i];
    v[n - 1 - i] = x;
  }
}

/* A file in Fortran order is the transpose of a row-major one. */
static int fill(Tensor **out, Reader *r, NpyHeader *h) {
  Tensor *t;
  int status;
  if (h->fortran) reverse(h->size, h->nd);
  if ((status = nc_new(&t, &nc_cpu, h->dtype, h->nd, h->size)) != NC_OK) {
    char text[256];
    snprintf(text, sizeof text, "%.255s", nc_lasterror()->text);
    return nc_failfile(status, r->path, "data: %s", text);
  }
  nc_count(0, r->left);
  if ((status = data(r, h, nc_data(t))) != NC_OK) {
    nc_release(t);
    return status;
  }
  if (h->fortran) {
    reverse(t->size, t->nd);
    reverse(t->step, t->nd);
  }
  *out = t;
  return NC_OK;
}

int nc_load(Tensor **t, const char *path) {
  Reader r;
  NpyHeader h;
  int status;
  *t = NULL;
  TRY(nc_openread(&r, path));
  status = header(&r, &h);
  if (status == NC_OK) status = checkdata(&r, &h);
  if (status == NC_OK) status = fill(t, &r, &h);
  nc_closeread(&r);
  return status;
}

/*
** Saving
*/
static const char *const codes[DT_COUNT] = { "b1", "u1", "i1", "i2", "i4",
                                             "i8", "f2", "",   "f4", "f8" };

/* The header that NumPy would write, byte for byte: it leaves room for the
   first size to grow to 21 digits.  Eight sizes never need version 2.0. */
static int64_t makeheader(char buf[512], const Tensor *t) {
  char order = nc_dtypesize(t->dtype) == 1 ? '|' : nc_bigendian() ? '>' : '<';
  int n = MAGIC + 4, grow = 0;
  n += snprintf(buf + n, 64, "{'descr': '%c%s', 'fortran_order': False, "
                "'shape': (", order, codes[t->dtype]);
  for (int d = 0; d < t->nd; d++) {
    int digits = snprintf(buf + n, 32, "%lld", (long long)t->size[d]);
    if (d == 0) grow = 21 - digits;
    n += digits;
    n += snprintf(buf + n, 4, d + 1 < t->nd ? ", " : t->nd == 1 ? "," : "");
  }
  n += snprintf(buf + n, 32, "), }%*s", grow, "");
  while ((n + 1) % ALIGNED != 0) buf[n++] = ' ';
  buf[n++] = '\n';
  memcpy(buf, NPY_MAGIC "\1\0", MAGIC + 2);
  buf[MAGIC + 2] = (char)((n - MAGIC - 4) & 0xff);
  buf[MAGIC + 3] = (char)((n - MAGIC - 4) >> 8);
  return n;
}

/* A place in a tensor that is walked row by row. */
typedef struct Walk {
  int64_t at[NC_MAXDIM];
  int64_t offset;             /* in elements, from the first */
} Walk;

/* Goes on by n elements, within the last dimension. */
static void advance(Walk *w, const Tensor *t, int64_t n) {
  int d = t->nd - 1;
  w->at[d] += n;
  w->offset += n * t->step[d];
  for (; d > 0 && w->at[d] == t->size[d]; d--) {
    w->offset -= w->at[d] * t->step[d];
    w->at[d] = 0;
    w->at[d - 1]++;
    w->offset += t->step[d - 1];
  }
}

/* Copies n elements that lie `step' apart. */
static void pick(char *y, const char *x, int64_t n, int64_t step,
                 int64_t item) {
#define PICK(size) \
  case size: \
    for (int64_t i = 0; i < n; i++) \
      memcpy(y + i * size, x + i * step * size, size); \
    break
  switch (item) {
    PICK(1);
    PICK(2);
    PICK(4);
    PICK(8);
  }
#undef PICK
}

/* Writes t in row-major order through a buffer of NC_IOBLOCK bytes. */
static int strided(Writer *w, const Tensor *t, char *buf) {
  int64_t item = nc_dtypesize(t->dtype), left = nc_numel(t), used = 0;
  int last = t->nd - 1;
  const char *x = nc_data(t);
  Walk walk = { { 0 }, 0 };
  while (left > 0) {
    int64_t n = t->size[last] - walk.at[last];
    int64_t room = (NC_IOBLOCK - used) / item;
    if (n > room) n = room;
    pick(buf + used, x + walk.offset * item, n, t->step[last], item);
    advance(&walk, t, n);
    used += n * item;
    left -= n;
    if (used == NC_IOBLOCK || left == 0) {
      TRY(nc_writeblock(w, buf, used));
      used = 0;
    }
  }
  return NC_OK;
}

static int dense(Writer *w, const Tensor *t) {
  int64_t left = nc_numel(t) * nc_dtypesize(t->dtype);
  const char *p = nc_data(t);
  while (left > 0) {
    int64_t n = left < NC_IOBLOCK ? left : NC_IOBLOCK;
    TRY(nc_writeblock(w, p, n));
    p += n;
    left -= n;
  }
  return NC_OK;
}

/* t lies on the CPU; buf is NULL if it is dense. */
static int writeall(const char *path, const Tensor *t, int atomic, char *buf) {
  Writer w;
  char text[512];
  int status;
  TRY(nc_openwrite(&w, path, atomic));
  status = nc_writeblock(&w, text, makeheader(text, t));
  if (status == NC_OK) status = buf ? strided(&w, t, buf) : dense(&w, t);
  return nc_closewrite(&w, status);
}

int nc_save(const char *path, Tensor *t, int atomic) {
  Tensor *x = NULL;
  void *buf = NULL;
  int status;
  if (codes[t->dtype][0] == '\0') {
    nc_failfile(NC_EDTYPE, path, "the .npy format has no %s",
                nc_dtypename(t->dtype));
    nc_blame("arg 2", t);
    nc_hint("nacre.save(path, t:to(\"float32\")) keeps every value");
    return NC_EDTYPE;
  }
  status = nc_todevice(&x, t, &nc_cpu);
  if (status == NC_OK && !nc_isdense(x))
    status = nc_hostalloc(&buf, NC_IOBLOCK);
  if (status == NC_OK) status = writeall(path, x, atomic, buf);
  if (status == NC_OK) nc_count(0, nc_numel(t) * nc_dtypesize(t->dtype));
  nc_hostfree(buf, NC_IOBLOCK);
  nc_release(x);
  return status;
}
