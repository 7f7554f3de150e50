/* SPDX-License-Identifier: MIT */
/*
** csv_write.c - nc_savetext: writes a matrix as CSV text.  Floats have the
** fewest digits that read back as the same element of their dtype.
*/
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/pointwise/scalar.h"

#define MAXNUMBER 32 /* "-1.7976931348623157e+308", and a delimiter */

typedef struct CsvWriter {
  Writer w;
  char *buf; /* NC_IOBLOCK bytes */
  int64_t n;
  char delimiter;
} CsvWriter;

static int flush(CsvWriter *o) {
  const int64_t n = o->n;
  o->n = 0;
  return nc_writeblock(&o->w, o->buf, n);
}

static int put(CsvWriter *o, const char *s, int64_t n) { /* n <= NC_IOBLOCK */
  if (n > NC_IOBLOCK - o->n) TRY(flush(o));
  memcpy(o->buf + o->n, s, (size_t)n);
  o->n += n;
  return NC_OK;
}

/* Does the text read back as x, as an element of that type? */
static int reads_back(const char *s, double x, DType type) {
  const double y = nc_todouble(s, NULL);
  const float f = (float)y;
  switch (type) {
    case DT_f16: return f16_tofloat(f16_fromfloat(f)) == (float)x;
    case DT_bf16: return bf16_tofloat(bf16_fromfloat(f)) == (float)x;
    case DT_f32: return f == (float)x;
    default: return y == x;
  }
}

/* Digits that are enough for some elements, for nearly all, and for all. */
static const struct {
  DType type;
  int few, most, all;
} digit_counts[] = {
  { DT_f16, 3, 4, 5 },
  { DT_bf16, 2, 3, 4 },
  { DT_f32, 6, 8, 9 },
  { DT_f64, 15, 16, 17 },
};

static int format_digits(char buf[MAXNUMBER], int n, double x, DType type) {
  nc_format(buf, MAXNUMBER, "%.*g", n, x);
  return reads_back(buf, x, type);
}

/* Tries the common counts first: few, then most, then those between. */
static void format_shortest(char buf[MAXNUMBER], double x, DType type) {
  int i = 0, n;
  while (digit_counts[i].type != type) i++;
  if (format_digits(buf, digit_counts[i].few, x, type)) return;
  if (!format_digits(buf, digit_counts[i].most, x, type)) {
    nc_format(buf, MAXNUMBER, "%.*g", digit_counts[i].all, x);
    return;
  }
  for (n = digit_counts[i].most - 1; n > digit_counts[i].few; n--)
    if (!format_digits(buf, n, x, type)) {
      nc_format(buf, MAXNUMBER, "%.*g", n + 1, x);
      return;
    }
}

static int format_float(char buf[MAXNUMBER], double x, DType type) {
  if (isfinite(x)) format_shortest(buf, x, type);
  else strcpy(buf, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
  if (isfinite(x) && strpbrk(buf, ".e") == NULL)
    strcat(buf, ".0"); /* so that it reads as a float */
  return (int)strlen(buf);
}

static int write_element(CsvWriter *o, const Tensor *t, int64_t offset) {
  char buf[MAXNUMBER];
  Scalar v;
  if (t->dtype == DT_u64)
    return put(o, buf,
               snprintf(buf, sizeof buf, "%" PRIu64,
                        ((const uint64_t *)nc_data(t))[offset]));
  TRY(nc_read(&v, t, offset));
  return put(o, buf,
             v.kind == NC_FLOAT
                 ? format_float(buf, v.f, nc_computed_dtype(t->dtype))
                 : snprintf(buf, sizeof buf, "%lld", (long long)v.i));
}

static int write_row(CsvWriter *o, const Tensor *t, int64_t row,
                     int64_t columns) {
  const int nd = t->nd;
  int64_t offset = nd ? row * t->step[0] : 0;
  for (int64_t j = 0; j < columns; j++) {
    if (j) TRY(put(o, &o->delimiter, 1));
    TRY(write_element(o, t, offset + (nd > 1 ? j * t->step[1] : 0)));
  }
  return put(o, "\n", 1);
}

/* Quotes the name if it is empty or holds special characters. */
static int write_name(CsvWriter *o, const char *s) {
  const char special[] = { '"', '\n', '\r', '#', o->delimiter, '\0' };
  const int quoted = *s == '\0' || strpbrk(s, special) != NULL;
  if (quoted) TRY(put(o, "\"", 1));
  for (; *s; s++) {
    if (*s == '"') TRY(put(o, "\"", 1));
    TRY(put(o, s, 1));
  }
  return quoted ? put(o, "\"", 1) : NC_OK;
}

static int write_matrix(CsvWriter *o, const Tensor *t,
                        const char *const names[]) {
  const int64_t rows = t->nd ? t->size[0] : 1;
  const int64_t columns = t->nd > 1 ? t->size[1] : 1;
  for (int64_t j = 0; names && j < columns; j++) {
    if (j) TRY(put(o, &o->delimiter, 1));
    TRY(write_name(o, names[j]));
  }
  if (names) TRY(put(o, "\n", 1));
  for (int64_t i = 0; i < rows; i++) TRY(write_row(o, t, i, columns));
  return flush(o);
}

static int check_tensor(const Sink *to, const Tensor *t) {
  if (nc_is_complex(t->dtype)) {
    nc_failfile(NC_EDTYPE, to->path, "a text file has no %s",
                nc_dtypename(t->dtype));
    nc_error_operand(to->bytes ? "arg 1" : "arg 2", t);
    nc_hint("nacre.view_as_real(t) has both parts; .npy files have complex "
            "numbers");
    return NC_EDTYPE;
  }
  if (t->nd <= 2) return NC_OK;
  nc_failfile(NC_ESHAPE, to->path,
              "a text file holds a matrix, not %d dimensions", t->nd);
  nc_error_operand(to->bytes ? "arg 1" : "arg 2", t);
  nc_hint("t:flatten(2), or %s",
          to->bytes ? "{format=\"npy\"}" : "a name that ends in .npy");
  return NC_ESHAPE;
}

int nc_savetext(const Sink *to, Tensor *t, char delimiter,
                const char *const names[]) {
  CsvWriter o = { .delimiter = delimiter };
  Tensor *x;
  void *buf;
  int status;
  TRY(check_tensor(to, t));
  TRY(nc_todevice(&x, t, &nc_cpu));
  status = nc_hostalloc(&buf, NC_IOBLOCK);
  if (status == NC_OK) {
    o.buf = buf;
    status = nc_openwrite(&o.w, to);
    if (status == NC_OK)
      status = nc_closewrite(&o.w, write_matrix(&o, x, names));
    nc_hostfree(buf, NC_IOBLOCK);
  }
  if (status == NC_OK) nc_count(0, nc_numel(x) * nc_dtypesize(x->dtype));
  nc_release(x);
  return status;
}

static int save_text(const Sink *to, const FileContents *c) {
  return nc_savetext(to, c->list[0].t, c->delimiter, c->columns);
}

const ArchiveFormat nc_textformat = { .save = save_text };
