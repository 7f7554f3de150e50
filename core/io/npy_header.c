/* SPDX-License-Identifier: MIT */
/*
** npy_header.c - parses the header of a .npy file, which is a Python dict:
**
**   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
**
** It accepts the part of Python that NumPy writes there and nothing else.
*/
#include "core/io/npy.h"

#include <string.h>

#include "core/io/rowmajor.h"

typedef struct NpyParser {
  const char *path;
  const char *start, *p, *end;
  int major;
} NpyParser;

/*
** Tokens
*/
static int fail_expected(const NpyParser *s, const char *wanted) {
  return nc_expected(s->path, s->start, s->p, s->end, wanted);
}

static void skip_spaces(NpyParser *s) {
  while (s->p < s->end && *s->p == ' ') s->p++;
}

/* Skips spaces, then the character c if it is there. */
static int take(NpyParser *s, char c) {
  skip_spaces(s);
  if (s->p == s->end || *s->p != c) return 0;
  s->p++;
  return 1;
}

static int need(NpyParser *s, char c, const char *name) {
  return take(s, c) ? NC_OK : fail_expected(s, name);
}

/* A string without escapes. */
static int parse_string(NpyParser *s, const char **text, size_t *n) {
  char quote = take(s, '"') ? '"' : '\'';
  if (quote == '\'') TRY(need(s, '\'', "a string"));
  *text = s->p;
  while (s->p < s->end && *s->p != quote) {
    if ((unsigned char)*s->p < ' ' || *s->p == '\\')
      return fail_expected(s, "a plain character");
    s->p++;
  }
  *n = (size_t)(s->p - *text);
  return need(s, quote, "a closing quote");
}

static int take_word(NpyParser *s, const char *name) {
  size_t n = strlen(name);
  skip_spaces(s);
  if ((size_t)(s->end - s->p) < n || memcmp(s->p, name, n) != 0) return 0;
  s->p += n;
  return 1;
}

/* A decimal number as Python 3 writes it; versions 1 and 2 of the format may
   also come from Python 2, with an L at its end. */
static int parse_number(NpyParser *s, int64_t *v) {
  const char *first;
  *v = 0;
  skip_spaces(s);
  first = s->p;
  while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
    int digit = *s->p++ - '0';
    if (*v > (INT64_MAX - digit) / 10)
      return nc_failfile(NC_EFILE, s->path, "shape: a size is beyond 64 bits");
    *v = *v * 10 + digit;
  }
  if (s->p == first) return fail_expected(s, "a size");
  if (*first == '0' && s->p - first > 1) {
    s->p = first;
    return fail_expected(s, "a size without leading zeros");
  }
  if (s->major < 3 && s->p < s->end && *s->p == 'L') s->p++;
  return NC_OK;
}

/*
** Values
*/
/* clang-format off */
static const struct { const char *code; DType type; } dtype_codes[] = {
  { "b1", DT_b8 },  { "u1", DT_u8 },  { "i1", DT_i8 },  { "i2", DT_i16 },
  { "i4", DT_i32 }, { "i8", DT_i64 }, { "f2", DT_f16 }, { "f4", DT_f32 },
  { "f8", DT_f64 },
};

/* Other dtypes of NumPy; a code that ends in '*' is a prefix. */
static const struct { const char *code, *name, *instead; } foreign_codes[] = {
  { "u2",  "uint16", "int32" },      { "u4",  "uint32", "int64" },
  { "u8",  "uint64", "int64" },      { "f12", "float96", "float64" },
  { "f16", "float128", "float64" },  { "c8",  "complex64", NULL },
  { "c16", "complex128", NULL },     { "c24", "complex192", NULL },
  { "c32", "complex256", NULL },     { "O*",  "Python objects", NULL },
  { "S*",  "byte strings", NULL },   { "a*",  "byte strings", NULL },
  { "U*",  "text", NULL },           { "V*",  "raw bytes", NULL },
  { "M*",  "datetime64", NULL },     { "m*",  "timedelta64", NULL },
};
/* clang-format on */

static int matches(const char *code, const char *s, size_t n) {
  size_t len = strlen(code);
  if (code[len - 1] == '*') return n >= 1 && s[0] == code[0];
  return n == len && memcmp(s, code, n) == 0;
}

/* Fails: s, of n bytes, with its byte order, is no dtype that is read. */
static int fail_descr(const NpyParser *scan, const char *s, size_t n) {
  char shown[64];
  nc_printable(shown, sizeof shown, s, n);
  for (size_t i = 0; n && i < sizeof foreign_codes / sizeof *foreign_codes; i++)
    if (matches(foreign_codes[i].code, s + 1, n - 1)) {
      nc_failfile(NC_EDTYPE, scan->path, "descr: '%s' is %s: no such dtype",
                  shown, foreign_codes[i].name);
      if (foreign_codes[i].instead)
        nc_hint("in Python: numpy.save(path, a.astype('%s'))",
                foreign_codes[i].instead);
      return NC_EDTYPE;
    }
  return nc_failfile(NC_EDTYPE, scan->path, "descr: '%s' is no dtype", shown);
}

static int parse_descr(NpyParser *s, NpyHeader *h) {
  const char *code;
  size_t n;
  if (take(s, '['))
    return nc_failfile(NC_EDTYPE, s->path,
                       "descr: records of several fields: no such dtype");
  TRY(parse_string(s, &code, &n));
  for (size_t i = 0; n == 3 && i < sizeof dtype_codes / sizeof *dtype_codes;
       i++) {
    if (memcmp(code + 1, dtype_codes[i].code, 2) != 0) continue;
    if (strchr("<>=|", code[0]) == NULL || code[0] == '\0') break;
    if (code[0] == '|' && code[2] != '1')
      return nc_failfile(NC_EFILE, s->path,
                         "descr: '%.3s' does not tell the order of its bytes",
                         code);
    h->dtype = dtype_codes[i].type;
    h->swap = code[2] != '1' && code[0] == (nc_bigendian() ? '<' : '>');
    return NC_OK;
  }
  return fail_descr(s, code, n);
}

static int parse_order(NpyParser *s, NpyHeader *h) {
  if (take_word(s, "True")) h->fortran = 1;
  else if (take_word(s, "False")) h->fortran = 0;
  else return fail_expected(s, "True or False");
  return NC_OK;
}

static int parse_shape(NpyParser *s, NpyHeader *h) {
  int comma = 0;
  h->nd = 0;
  TRY(need(s, '(', "a tuple"));
  while (!take(s, ')')) {
    int64_t v;
    if (h->nd > 0 && !comma) return fail_expected(s, "a comma");
    TRY(parse_number(s, &v));
    if (h->nd == NC_MAXDIM)
      return nc_failfile(NC_EFILE, s->path, "shape: more than %d dimensions",
                         NC_MAXDIM);
    h->size[h->nd++] = v;
    comma = take(s, ',');
  }
  if (h->nd == 1 && !comma) { /* (3) is a number in Python */
    s->p--;
    return fail_expected(s, "a comma");
  }
  return NC_OK;
}

/*
** The dict
*/
static const struct {
  const char *name;
  int (*read)(NpyParser *s, NpyHeader *h);
} keys[] = {
  { "descr", parse_descr },
  { "fortran_order", parse_order },
  { "shape", parse_shape },
};

static int parse_entry(NpyParser *s, NpyHeader *h, unsigned *seen) {
  const char *name;
  char shown[64];
  size_t n;
  TRY(parse_string(s, &name, &n));
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (n != strlen(keys[i].name) || memcmp(name, keys[i].name, n) != 0)
      continue;
    if (*seen & 1u << i)
      return nc_failfile(NC_EFILE, s->path, "header: '%s' is there twice",
                         keys[i].name);
    *seen |= 1u << i;
    TRY(need(s, ':', "a colon"));
    return keys[i].read(s, h);
  }
  return nc_failfile(NC_EFILE, s->path, "header: unknown key '%s'",
                     nc_printable(shown, sizeof shown, name, n));
}

static int parse_dict(NpyParser *s, NpyHeader *h) {
  unsigned seen = 0;
  int comma = 1;
  TRY(need(s, '{', "a dict"));
  while (!take(s, '}')) {
    if (!comma) return fail_expected(s, "a comma or }");
    TRY(parse_entry(s, h, &seen));
    comma = take(s, ',');
  }
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (!(seen & 1u << i))
      return nc_failfile(NC_EFILE, s->path, "header: '%s' is missing",
                         keys[i].name);
  return NC_OK;
}

int nc_parsenpy(NpyHeader *h, const char *path, int major, const char *text,
                int64_t n) {
  NpyParser s = { path, text, text, text + n, major };
  memset(h, 0, sizeof *h);
  TRY(parse_dict(&s, h));
  TRY(need(&s, '\n', "a newline"));
  return s.p == s.end ? NC_OK : fail_expected(&s, "nothing more");
}
