/* SPDX-License-Identifier: MIT */
/* gguf_header.c - numbers, texts and the metadata of the header of a GGUF
   file. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/io/gguf/gguf.h"
#include "core/io/rowmajor.h"
#include "core/numerals.h"

enum { MOST_LEVELS = 8 };

/*
** Bytes
*/
int64_t nc_gguf_left(const GgufInput *in) {
  return in->n - in->at + in->r->left;
}

int64_t nc_gguf_place(const GgufInput *in) {
  return in->r->size - nc_gguf_left(in);
}

static int refill(GgufInput *in, const char *field) {
  const int64_t room = (int64_t)sizeof in->buf;
  in->n = in->r->left < room ? in->r->left : room;
  in->at = 0;
  return nc_readblock(in->r, in->buf, in->n, field);
}

int nc_gguf_take(GgufInput *in, void *p, int64_t n, const char *field) {
  char *to = p;
  if (n < 0 || n > nc_gguf_left(in))
    return nc_failfile(NC_EFILE, in->r->path,
                       "%s: %lld bytes are needed, the file has %lld "
                       "left",
                       field, (long long)n, (long long)nc_gguf_left(in));
  while (n > 0) {
    if (in->at == in->n) TRY(refill(in, field));
    const int64_t k = n < in->n - in->at ? n : in->n - in->at;
    memcpy(to, in->buf + in->at, (size_t)k);
    in->at += k, to += k, n -= k;
  }
  return NC_OK;
}

int nc_gguf_number(GgufInput *in, uint64_t *v, int bytes, const char *field) {
  unsigned char b[8];
  TRY(nc_gguf_take(in, b, bytes, field));
  *v = nc_littleendian(b, bytes);
  return NC_OK;
}

int nc_gguf_count(GgufInput *in, int64_t *n, int64_t item, const char *field) {
  uint64_t v = 0;
  TRY(nc_gguf_number(in, &v, 8, field));
  *n = (int64_t)v;
  if (v <= (uint64_t)(nc_gguf_left(in) / item)) return NC_OK;
  return nc_failfile(NC_EFILE, in->r->path,
                     "%s: %" PRIu64 " take more than the %lld bytes that the "
                     "file has left",
                     field, v, (long long)nc_gguf_left(in));
}

/*
** Texts
*/
static int add(ByteList *to, const char *text) {
  return nc_addbytes(to, text, (int64_t)strlen(text));
}

/* Appends a character of a text, of k bytes, as JSON has it. */
static int add_quoted(ByteList *to, const char *s, size_t k, uint32_t c) {
  char escape[8];
  if (c == '"' || c == '\\') TRY(nc_addbytes(to, "\\", 1));
  if (c >= ' ' && c != 127) return nc_addbytes(to, s, (int64_t)k);
  snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
  return add(to, escape);
}

/* Appends the n bytes behind `start' of the list again, as UTF-8 without '\0';
   quoted: as a text of JSON. */
static int add_valid(ByteList *to, int64_t start, int64_t n, int quoted) {
  for (int64_t i = 0; i < n;) {
    char character[8];
    uint32_t c = 0;
    const char *s = to->p + start + i;
    const size_t k = nc_utf8(&c, s, (size_t)(n - i));
    memcpy(character, s, k); /* the list may move */
    if (k == 0 || (c == 0 && !quoted)) TRY(add(to, "\xEF\xBF\xBD"));
    else if (quoted) TRY(add_quoted(to, character, k, c));
    else TRY(nc_addbytes(to, character, (int64_t)k));
    i += k ? (int64_t)k : 1;
  }
  return NC_OK;
}

/* Appends a text of the file, and returns with *start where it begins. */
static int take_text(ByteList *to, GgufInput *in, int64_t *start,
                     const char *field) {
  void *list = to->p;
  int64_t n = 0;
  TRY(nc_gguf_count(in, &n, 1, field));
  *start = to->used;
  TRY(nc_growlist(&list, &to->room, to->used, to->used + n + 1));
  to->p = list;
  TRY(nc_gguf_take(in, to->p + to->used, n, field));
  to->used += n;
  return NC_OK;
}

/* Replaces what begins at `start' by its valid form. */
static int make_valid(ByteList *to, int64_t start, int quoted) {
  const int64_t n = to->used - start;
  if (quoted) TRY(add(to, "\""));
  TRY(add_valid(to, start, n, quoted));
  if (quoted) TRY(add(to, "\""));
  memmove(to->p + start, to->p + start + n, (size_t)(to->used - start - n));
  to->used -= n;
  return NC_OK;
}

int nc_gguf_text(ByteList *to, GgufInput *in, const char *field) {
  int64_t start = 0;
  TRY(take_text(to, in, &start, field));
  TRY(make_valid(to, start, 0));
  return nc_addbytes(to, "", 1);
}

/*
** Values
*/
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 };

static const unsigned char sizes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8 };

static int fail_type(const GgufInput *in, uint32_t type) {
  return nc_failfile(NC_EFILE, in->r->path,
                     "metadata: %u is not the number of a type", type);
}

/* JSON has neither nan nor inf. */
static void float_text(char text[32], double x, const char *format,
                       int quoted) {
  if (quoted && !isfinite(x)) strcpy(text, "null");
  else nc_format(text, 32, format, x);
}

static int add_number(ByteList *to, uint64_t v, uint32_t type, int quoted) {
  char text[32];
  const int bits = 64 - 8 * sizes[type];
  const int64_t i = (int64_t)(v << bits) >> bits;
  uint32_t low = (uint32_t)v;
  float f;
  double d;
  memcpy(&f, &low, sizeof f);
  memcpy(&d, &v, sizeof d);
  switch (type) {
    case F32: float_text(text, (double)f, "%.9g", quoted); break;
    case F64: float_text(text, d, "%.17g", quoted); break;
    case BOOL: strcpy(text, v ? "true" : "false"); break;
    case I8:
    case I16:
    case I32:
    case I64: snprintf(text, sizeof text, "%" PRId64, i); break;
    default: snprintf(text, sizeof text, "%" PRIu64, v); break;
  }
  return add(to, text);
}

static int add_value(ByteList *to, GgufInput *in, uint32_t type, int level);

static int add_array(ByteList *to, GgufInput *in, int level) {
  uint64_t type = 0;
  int64_t n = 0;
  TRY(nc_gguf_number(in, &type, 4, "metadata"));
  if (type >= sizeof sizes) return fail_type(in, (uint32_t)type);
  TRY(nc_gguf_count(in, &n, sizes[type], "elements of the metadata"));
  if (level > MOST_LEVELS)
    return nc_failfile(NC_EFILE, in->r->path,
                       "metadata: too many lists in "
                       "lists");
  TRY(add(to, "["));
  for (int64_t i = 0; i < n; i++) {
    if (i > 0) TRY(add(to, ", "));
    TRY(add_value(to, in, (uint32_t)type, level + 1));
  }
  return add(to, "]");
}

static int add_value(ByteList *to, GgufInput *in, uint32_t type, int level) {
  uint64_t v = 0;
  int64_t start = 0;
  if (type >= sizeof sizes) return fail_type(in, type);
  if (type == ARRAY) return add_array(to, in, level);
  if (type == STRING) {
    TRY(take_text(to, in, &start, "metadata"));
    return make_valid(to, start, level > 0);
  }
  TRY(nc_gguf_number(in, &v, sizes[type], "metadata"));
  return add_number(to, v, type, level > 0);
}

int nc_gguf_value(ByteList *to, GgufInput *in, uint32_t type) {
  TRY(add_value(to, in, type, 0));
  return nc_addbytes(to, "", 1);
}
