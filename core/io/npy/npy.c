/* SPDX-License-Identifier: MIT */
/*
** npy.c - NumPy's .npy format, versions 1.0 to 3.0.
**
** A file is untrusted: its header is parsed strictly, and the size that it
** declares is compared with the bytes of the file before memory is allocated.
** Nothing in a file is executed.
*/
#include "core/io/npy/npy.h"

#include <stdio.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/rowmajor.h"

#define MAGIC 6    /* bytes */
#define ALIGNED 64 /* data begins at a multiple of it */

/*
** Loading
*/
/* The first n bytes are not those of a .npy file.  A file whose name does not
   say its format is read as one, too. */
static int fail_magic(const char *path, const char *bytes, int64_t n) {
  char shown[40], text[80];
  const int named = strcmp(nc_extension(path), "npy") == 0;
  if (n == 0) return nc_failfile(NC_EFILE, path, "the file is empty");
  TRY(nc_fail_foreign_format(path, bytes, n));
  nc_failfile(NC_EFILE, path, "%s: it begins with \"%s\"",
              named ? "this is not a .npy file" : "its format is not known",
              nc_printable(shown, sizeof shown, bytes,
                           (size_t)(n < MAGIC ? n : MAGIC)));
  nc_hint("name the format in the file's extension (of a text %s) or with "
          "{format=\"csv\"}",
          nc_formatlist(text, sizeof text, NC_AS_TEXT, ".", "or"));
  return NC_EFILE;
}

static int read_magic(Reader *r, int *major) {
  unsigned char b[MAGIC + 2];
  const int64_t n = r->left < (int64_t)sizeof b ? r->left : (int64_t)sizeof b;
  TRY(nc_readblock(r, b, n, "magic"));
  if (n < (int64_t)sizeof b || memcmp(b, NPY_MAGIC, MAGIC) != 0)
    return fail_magic(r->path, (char *)b, n);
  *major = b[MAGIC];
  if (*major < 1 || *major > 3 || b[MAGIC + 1] != 0)
    return nc_failfile(NC_EFILE, r->path,
                       "version: %d.%d is not supported (1.0, 2.0 and 3.0 are)",
                       *major, b[MAGIC + 1]);
  return NC_OK;
}

static int read_header(Reader *r, NpyHeader *h) {
  unsigned char b[4] = { 0 };
  char text[NPY_MAXHEADER];
  int major = 0;
  uint32_t n;
  TRY(read_magic(r, &major));
  TRY(nc_readblock(r, b, major == 1 ? 2 : 4, "header length"));
  n = (uint32_t)nc_littleendian(b, 4);
  if (n > NPY_MAXHEADER)
    return nc_failfile(NC_EFILE, r->path,
                       "header length: %lu bytes, at most %d are allowed",
                       (unsigned long)n, NPY_MAXHEADER);
  TRY(nc_readblock(r, text, n, "header"));
  return nc_parsenpy(h, r->path, major, text, n);
}

/* *more = does another array follow the n bytes of data?  Does not move r. */
static int find_second_array(Reader *r, int64_t n, int *more) {
  const int64_t at = r->size - r->left;
  char b[MAGIC];
  *more = 0;
  if (r->pull || r->left - n < MAGIC) return NC_OK;
  TRY(nc_seekread(r, at + n));
  TRY(nc_readblock(r, b, MAGIC, "magic"));
  *more = memcmp(b, NPY_MAGIC, MAGIC) == 0;
  return nc_seekread(r, at);
}

/* Fails unless the rest of the file is exactly the declared data, or *more:
   other arrays follow. */
static int check_size(Reader *r, const NpyHeader *h, int *more) {
  char shape[NC_TEXT];
  int64_t n, bytes;
  if (nc_checksize(&n, h->dtype, h->nd, h->size) != NC_OK)
    return nc_failfile(NC_EFILE, r->path, "shape: (%s) is beyond 64 bits",
                       nc_shapetext(shape, h->nd, h->size));
  bytes = n * nc_dtypesize(h->dtype);
  const int64_t left = r->left;
  *more = 0;
  if (bytes < left) TRY(find_second_array(r, bytes, more));
  if (bytes == left || *more) return NC_OK;
  return nc_failfile(NC_EFILE, r->path,
                     "data: %s[%s] takes %lld bytes, the file has %lld left",
                     nc_dtypename(h->dtype),
                     nc_shapetext(shape, h->nd, h->size), (long long)bytes,
                     (long long)left);
}

static void reverse(int64_t v[], int n) {
  for (int i = 0; i < n / 2; i++) {
    int64_t x = v[i];
    v[i] = v[n - 1 - i];
    v[n - 1 - i] = x;
  }
}

/* A file in Fortran order is the transpose of a row-major one. */
int nc_read_npydata(Tensor **out, Reader *r, NpyHeader *h) {
  const int64_t left = r->left;
  int status;
  if (h->fortran) reverse(h->size, h->nd);
  status = nc_newread(out, r, h->dtype, h->nd, h->size, h->swap);
  if (status == NC_ENOMEM) {
    char text[256];
    snprintf(text, sizeof text, "%.255s", nc_lasterror()->text);
    return nc_failfile(status, r->path, "data: %s", text);
  }
  TRY(status);
  nc_count(0, left - r->left);
  if (h->fortran) {
    reverse((*out)->size, h->nd);
    reverse((*out)->step, h->nd);
  }
  return NC_OK;
}

int nc_read_npyheader(NpyHeader *h, Reader *r, int *more) {
  TRY(read_header(r, h));
  return check_size(r, h, more);
}

int nc_readnpy(Tensor **t, Reader *r) {
  NpyHeader h;
  int more = 0;
  *t = NULL;
  TRY(nc_read_npyheader(&h, r, &more));
  if (more)
    return nc_failfile(NC_EFILE, r->path,
                       "data: the file holds several arrays in sequence");
  TRY(nc_read_npydata(t, r, &h));
  return nc_release_failed(nc_readend(r), t, 1);
}

int nc_loadnpy(Tensor **t, const Source *from) {
  Reader r;
  int status;
  *t = NULL;
  TRY(nc_openfrom(&r, from));
  status = nc_readnpy(t, &r);
  nc_closeread(&r);
  return status;
}

/*
** Saving
*/
/* The header that NumPy would write, byte for byte: it leaves room for the
   first size to grow to 21 digits.  NC_MAXDIM sizes fit version 1.0. */
int64_t nc_npyheader(char buf[NPY_ROOM], const Tensor *t) {
  char type[8];
  int n = MAGIC + 4, grow = 0;
  nc_numpytype(type, t->dtype);
  n += snprintf(buf + n, 64,
                "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
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

int nc_npyfits(const char *path, const Tensor *t) {
  char type[8];
  nc_numpytype(type, t->dtype);
  if (*type) return NC_OK;
  nc_failfile(NC_EDTYPE, path, "the .npy format has no %s",
              nc_dtypename(t->dtype));
  nc_hint("t:to(\"float32\") keeps every value; .safetensors has %s",
          nc_dtypename(t->dtype));
  return NC_EDTYPE;
}

int nc_save(const Sink *to, Tensor *t) {
  char text[NPY_ROOM];
  const int status = nc_npyfits(to->path, t);
  if (status == NC_OK)
    return nc_savewith(to, text, nc_npyheader(text, t), t, 0);
  nc_error_operand(to->bytes ? "arg 1" : "arg 2", t);
  return status;
}
