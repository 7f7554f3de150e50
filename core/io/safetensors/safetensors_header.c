/* SPDX-License-Identifier: MIT */
/*
** safetensors_header.c - parses the header of a .safetensors file, a JSON
** object:
**
**   {"__metadata__": {"format": "pt"},
**    "w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}
**
** It accepts the part of JSON that the format needs and nothing else: objects
** with known names, strings, and whole numbers from 0.  What else a tensor has
** is skipped, as the format's own library does.
*/
#include "core/io/safetensors/safetensors_header.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/header_parser.h"

#define MOST_LEVELS 32 /* of values that are skipped */

/* clang-format off */
/* The dtypes of the format, in the order in which its own library puts tensors,
   with the kind and the bytes of nc_dtypeof; kind 0: no tensor has it. */
static const struct { const char *name; char kind; int bits; } dtypes[] = {
  { "U64", 'u', 64 }, { "I64", 'i', 64 },  { "F64", 'f', 64 },
  { "C64", 'c', 64 }, { "F32", 'f', 32 },  { "U32", 'u', 32 },
  { "I32", 'i', 32 }, { "BF16", 'B', 16 }, { "F16", 'f', 16 },
  { "U16", 'u', 16 }, { "I16", 'i', 16 },
  { "F8_E4M3", '4', 8 }, { "F8_E5M2", '5', 8 },
  { "I8", 'i', 8 }, { "U8", 'u', 8 }, { "BOOL", 'b', 8 }, { "F8_E8M0", 0, 8 },
  { "F8_E4M3FNUZ", 0, 8 }, { "F8_E5M2FNUZ", 0, 8 },
  { "F6_E2M3", 0, 6 }, { "F6_E3M2", 0, 6 }, { "F4", 0, 4 },
};
enum { NAMES = sizeof dtypes / sizeof *dtypes };
/* clang-format on */

int nc_saferank(DType t) {
  for (int i = 0; i < NAMES; i++)
    if (dtypes[i].kind == nc_dtypekind(t) &&
        dtypes[i].bits == 8 * nc_dtypesize(t))
      return i;
  return -1;
}

const char *nc_safedtype(DType t) {
  const int rank = nc_saferank(t);
  return rank < 0 ? "" : dtypes[rank].name;
}

/*
** Tokens
*/
/* Numbers in brackets; the first `most' of them to v. */
static int parse_numbers(HeaderParser *s, int64_t v[], int most, int *n) {
  int64_t x;
  *n = 0;
  TRY(nc_header_need(s, '[', "a list"));
  if (nc_header_take(s, ']')) return NC_OK;
  do {
    TRY(nc_header_number(s, &x, "a number"));
    if (*n < most) v[*n] = x;
    ++*n;
  } while (nc_header_take(s, ','));
  return nc_header_need(s, ']', "a comma or ]");
}

/* Skips the word or the number that is next. */
static int skip_word(HeaderParser *s) {
  const char *first;
  nc_header_blanks(s);
  for (first = s->p; s->p < s->end && (isalnum((unsigned char)*s->p) ||
                                       memchr("+-.", *s->p, 3));)
    s->p++;
  return s->p > first ? NC_OK : nc_header_expected(s, "a value");
}

/* Skips a value of JSON. */
static int skip_value(HeaderParser *s, int level) {
  char *text;
  const int object = nc_header_take(s, '{');
  if (!object && !nc_header_take(s, '[')) {
    nc_header_blanks(s);
    return s->p < s->end && *s->p == '"' ? nc_header_string(s, &text)
                                         : skip_word(s);
  }
  if (level == MOST_LEVELS) return nc_header_expected(s, "less nesting");
  if (nc_header_take(s, object ? '}' : ']')) return NC_OK;
  do {
    if (object) {
      TRY(nc_header_string(s, &text));
      TRY(nc_header_need(s, ':', "a colon"));
    }
    TRY(skip_value(s, level + 1));
  } while (nc_header_take(s, ','));
  return nc_header_need(s, object ? '}' : ']', "a comma or a bracket");
}

/*
** A tensor
*/
static int parse_dtype(HeaderParser *s, SafeEntry *e) {
  char *name;
  TRY(nc_header_string(s, &name));
  e->foreign = NULL;
  e->dtype = DT_NONE;
  e->bits = 0;
  for (int i = 0; i < NAMES; i++)
    if (strcmp(dtypes[i].name, name) == 0) {
      e->bits = dtypes[i].bits;
      e->dtype = nc_dtypeof(dtypes[i].kind, e->bits / 8);
    }
  if (e->dtype == DT_NONE) e->foreign = name;
  return NC_OK;
}

static int parse_shape(HeaderParser *s, SafeEntry *e) {
  const char *first = s->p;
  int64_t v;
  int zero = 0;
  TRY(parse_numbers(s, e->size, NC_MAXDIM, &e->nd));
  HeaderParser again = *s;
  again.p = first;
  nc_header_take(&again, '[');
  e->count = 1;
  for (int d = 0; d < e->nd; d++, nc_header_take(&again, ',')) {
    TRY(nc_header_number(&again, &v, "a number"));
    zero |= v == 0;
    if (e->count >= 0 && v > 0 && e->count > INT64_MAX / v) e->count = -1;
    if (e->count > 0) e->count *= v;
  }
  if (zero) e->count = 0;
  return NC_OK;
}

static int parse_offsets(HeaderParser *s, SafeEntry *e) {
  int64_t v[2] = { 0, 0 };
  int n;
  TRY(parse_numbers(s, v, 2, &n));
  if (n != 2) return nc_header_expected(s, "two offsets");
  e->begin = v[0];
  e->end = v[1];
  return NC_OK;
}

static const struct {
  const char *name;
  int (*read)(HeaderParser *s, SafeEntry *e);
} fields[] = {
  { "dtype", parse_dtype },
  { "shape", parse_shape },
  { "data_offsets", parse_offsets },
};
enum { FIELDS = sizeof fields / sizeof *fields };

static int parse_field(HeaderParser *s, SafeEntry *e, unsigned *seen) {
  char *name;
  TRY(nc_header_string(s, &name));
  TRY(nc_header_need(s, ':', "a colon"));
  for (int i = 0; i < FIELDS; i++) {
    if (strcmp(name, fields[i].name) != 0) continue;
    if (*seen & 1u << i)
      return nc_failfile(NC_EFILE, s->path, "header: %s occurs twice", name);
    *seen |= 1u << i;
    return fields[i].read(s, e);
  }
  return skip_value(s, 0);
}

/* Fails unless the byte range has the size that dtype and shape need. */
static int check_bytes(const HeaderParser *s, const SafeEntry *e) {
  char text[NC_TEXT], name[80], type[32];
  const int shown = e->nd < NC_MAXDIM ? e->nd : NC_MAXDIM;
  const char *dtype = e->foreign ? e->foreign : nc_dtypename(e->dtype);
  nc_printable(name, sizeof name, e->name, strlen(e->name));
  nc_printable(type, sizeof type, dtype, strlen(dtype));
  if (e->count < 0 || e->count > INT64_MAX / 64)
    return nc_failfile(NC_EFILE, s->path, "\"%s\" is beyond 64 bits", name);
  if (e->end >= e->begin &&
      (e->bits == 0 || e->end - e->begin == (e->count * e->bits + 7) / 8))
    return NC_OK;
  return nc_failfile(
      NC_EFILE, s->path, "\"%s\": %s[%s%s] does not take bytes %lld to %lld",
      name, type, nc_shapetext(text, shown, e->size),
      e->nd > shown ? "x..." : "", (long long)e->begin, (long long)e->end);
}

static int parse_tensor(HeaderParser *s, SafeEntry *e) {
  char name[80];
  unsigned seen = 0;
  TRY(nc_header_need(s, '{', "the description of a tensor"));
  if (!nc_header_take(s, '}')) {
    do TRY(parse_field(s, e, &seen));
    while (nc_header_take(s, ','));
    TRY(nc_header_need(s, '}', "a comma or }"));
  }
  for (int i = 0; i < FIELDS; i++)
    if (!(seen & 1u << i))
      return nc_failfile(
          NC_EFILE, s->path, "\"%s\": %s is missing",
          nc_printable(name, sizeof name, e->name, strlen(e->name)),
          fields[i].name);
  return check_bytes(s, e);
}

/*
** The header
*/
static int take_null(HeaderParser *s) {
  nc_header_blanks(s);
  if (s->end - s->p < 4 || memcmp(s->p, "null", 4) != 0) return 0;
  s->p += 4;
  return 1;
}

static int parse_metadata(HeaderParser *s, SafeHeader *h) {
  char *name, *value;
  if (take_null(s)) return NC_OK;
  TRY(nc_header_need(s, '{', "an object of texts"));
  if (nc_header_take(s, '}')) return NC_OK;
  do {
    TRY(nc_header_string(s, &name));
    TRY(nc_header_need(s, ':', "a colon"));
    TRY(nc_header_string(s, &value));
    h->meta[2 * h->nmeta] = name;
    h->meta[2 * h->nmeta++ + 1] = value;
  } while (nc_header_take(s, ','));
  return nc_header_need(s, '}', "a comma or }");
}

static int parse_object(HeaderParser *s, SafeHeader *h) {
  char *name;
  int seen = 0;
  TRY(nc_header_need(s, '{', "an object"));
  if (nc_header_take(s, '}')) return NC_OK;
  do {
    TRY(nc_header_string(s, &name));
    TRY(nc_header_need(s, ':', "a colon"));
    if (strcmp(name, "__metadata__") == 0) {
      if (seen++)
        return nc_failfile(NC_EFILE, s->path, "header: %s occurs twice", name);
      TRY(parse_metadata(s, h));
    } else {
      h->entry[h->n].name = name;
      TRY(parse_tensor(s, &h->entry[h->n++]));
    }
  } while (nc_header_take(s, ','));
  return nc_header_need(s, '}', "a comma or }");
}

static int compare_offsets(const void *a, const void *b) {
  const SafeEntry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

static int check_offsets(SafeHeader *h, int64_t bytes) {
  char name[80];
  int64_t at = 0;
  qsort(h->entry, (size_t)h->n, sizeof *h->entry, compare_offsets);
  for (int64_t i = 0; i < h->n; i++) {
    const SafeEntry *e = &h->entry[i];
    nc_printable(name, sizeof name, e->name, strlen(e->name));
    if (e->begin != at)
      return nc_failfile(
          NC_EFILE, h->path,
          "\"%s\" begins at byte %lld, the tensor before it ends at %lld", name,
          (long long)e->begin, (long long)at);
    at = e->end;
  }
  if (at == bytes) return NC_OK;
  return nc_failfile(NC_EFILE, h->path,
                     "data: the tensors take %lld bytes, the file has %lld",
                     (long long)at, (long long)bytes);
}

int nc_parsesafe(SafeHeader *h, char *text, int64_t n, int64_t bytes) {
  HeaderParser s = nc_header_parser(h->path, " \t\r\n", text, n);
  TRY(parse_object(&s, h));
  nc_header_blanks(&s);
  if (s.p != s.end) return nc_header_expected(&s, "nothing more");
  return check_offsets(h, bytes);
}
