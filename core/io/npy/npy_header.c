/* SPDX-License-Identifier: MIT */
/*
** npy_header.c - parses the header of a .npy file, which is a Python dict:
**
**   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
**
** It accepts the part of Python that NumPy writes there and nothing else.
*/
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/io/header_parser.h"
#include "core/io/npy/npy.h"
#include "core/io/rowmajor.h"

/*
** Tokens
*/
/* A string without escapes. */
static int parse_string(HeaderParser *s, const char **text, size_t *n) {
  char quote;
  nc_header_blanks(s);
  if (s->end - s->p > 1 && *s->p == 'u' && strchr("'\"", s->p[1]))
    s->p++; /* of Python 2 */
  quote = nc_header_take(s, '"') ? '"' : '\'';
  if (quote == '\'') TRY(nc_header_need(s, '\'', "a string"));
  *text = s->p;
  while (s->p < s->end && *s->p != quote) {
    if ((unsigned char)*s->p < ' ' || *s->p == '\\')
      return nc_header_expected(s, "a plain character");
    s->p++;
  }
  *n = (size_t)(s->p - *text);
  return nc_header_need(s, quote, "a closing quote");
}

static int take_word(HeaderParser *s, const char *name) {
  size_t n = strlen(name);
  nc_header_blanks(s);
  if ((size_t)(s->end - s->p) < n || memcmp(s->p, name, n) != 0) return 0;
  s->p += n;
  return 1;
}

/* Versions 1 and 2 of the format may also come from Python 2, which writes an L
   after a number. */
static int parse_size(HeaderParser *s, int major, int64_t *v) {
  TRY(nc_header_number(s, v, "a size"));
  if (major < 3 && s->p < s->end && *s->p == 'L') s->p++;
  return NC_OK;
}

/*
** Values
*/
/* clang-format off */
/* Other dtypes of NumPy; a code that ends in '*' is a prefix. */
static const struct { const char *code, *name, *instead; } foreign_codes[] = {
  { "f12", "float96", "float64" },
  { "f16", "float128", "float64" },  { "c24", "complex192", NULL },
  { "c32", "complex256", NULL },     { "O*",  "Python objects", NULL },
  { "S*",  "byte strings", NULL },   { "a*",  "byte strings", NULL },
  { "U*",  "text", NULL },           { "V*",  "raw bytes", NULL },
  { "M*",  "datetime64", NULL },     { "m*",  "timedelta64", NULL },
};
/* clang-format on */

/* The kinds of nc_dtypekind that NumPy has. */
static int is_numpy(char kind) {
  return strchr("biufc", kind) != NULL;
}

void nc_numpytype(char type[8], DType t) {
  const int bytes = (int)nc_dtypesize(t);
  const char order = bytes == 1 ? '|' : nc_bigendian() ? '>' : '<';
  *type = '\0';
  if (is_numpy(nc_dtypekind(t)))
    snprintf(type, 8, "%c%c%d", order, nc_dtypekind(t), bytes);
}

static int matches(const char *code, const char *s, size_t n) {
  size_t len = strlen(code);
  if (code[len - 1] == '*') return n >= 1 && s[0] == code[0];
  return n == len && memcmp(s, code, n) == 0;
}

/* Fails: s, of n bytes, with its byte order, is no dtype that is read. */
static int fail_descr(const HeaderParser *scan, const char *s, size_t n) {
  char shown[64];
  nc_printable(shown, sizeof shown, s, n);
  for (size_t i = 0; n && i < sizeof foreign_codes / sizeof *foreign_codes; i++)
    if (matches(foreign_codes[i].code, s + 1, n - 1)) {
      nc_failfile(NC_EDTYPE, scan->path,
                  "descr: '%s' is %s, which is not supported", shown,
                  foreign_codes[i].name);
      if (foreign_codes[i].instead)
        nc_hint("in Python: numpy.save(path, a.astype('%s'))",
                foreign_codes[i].instead);
      return NC_EDTYPE;
    }
  return nc_failfile(NC_EDTYPE, scan->path, "descr: '%s' is not a dtype",
                     shown);
}

/* Sets the dtype for one by its whole name, as "float32"; 0: there is none. */
static int set_named(NpyHeader *h, const char *name, size_t n) {
  h->dtype = nc_storednamed(name, n);
  return h->dtype != DT_NONE && is_numpy(nc_dtypekind(h->dtype));
}

/* Sets the dtype for a kind and a number of bytes, as "f4"; 0 if it is not
   read. */
static int set_dtype(NpyHeader *h, const char *code, size_t n) {
  int bytes = 0;
  if (n < 2 || n > 3 || !is_numpy(*code) || code[1] == '0') return 0;
  for (size_t i = 1; i < n; i++) {
    if (!isdigit((unsigned char)code[i])) return 0;
    bytes = 10 * bytes + code[i] - '0';
  }
  h->dtype = nc_dtypeof(*code, bytes);
  return h->dtype != DT_NONE;
}

static int parse_descr(HeaderParser *s, NpyHeader *h) {
  const char *code;
  size_t n;
  if (nc_header_take(s, '['))
    return nc_failfile(NC_EDTYPE, s->path,
                       "descr: records of several fields are not supported");
  TRY(parse_string(s, &code, &n));
  if (set_dtype(h, code, n) || set_named(h, code, n)) return NC_OK;
  if (n && strchr("<>=|", *code) && set_dtype(h, code + 1, n - 1)) {
    h->swap =
        nc_dtypesize(h->dtype) > 1 && *code == (nc_bigendian() ? '<' : '>');
    return NC_OK;
  }
  return fail_descr(s, code, n);
}

static int parse_order(HeaderParser *s, NpyHeader *h) {
  if (take_word(s, "True")) h->fortran = 1;
  else if (take_word(s, "False")) h->fortran = 0;
  else return nc_header_expected(s, "True or False");
  return NC_OK;
}

static int parse_shape(HeaderParser *s, NpyHeader *h) {
  int comma = 0;
  h->nd = 0;
  TRY(nc_header_need(s, '(', "a tuple"));
  while (!nc_header_take(s, ')')) {
    int64_t v;
    if (h->nd > 0 && !comma) return nc_header_expected(s, "a comma");
    TRY(parse_size(s, h->major, &v));
    if (h->nd == NC_MAXDIM)
      return nc_failfile(NC_EFILE, s->path, "shape: more than %d dimensions",
                         NC_MAXDIM);
    h->size[h->nd++] = v;
    comma = nc_header_take(s, ',');
  }
  if (h->nd == 1 && !comma) { /* (3) is a number in Python */
    s->p--;
    return nc_header_expected(s, "a comma");
  }
  return NC_OK;
}

/*
** The dict
*/
static const struct {
  const char *name;
  int (*read)(HeaderParser *s, NpyHeader *h);
} keys[] = {
  { "descr", parse_descr },
  { "fortran_order", parse_order },
  { "shape", parse_shape },
};

static int parse_entry(HeaderParser *s, NpyHeader *h, unsigned *seen) {
  const char *name;
  char shown[64];
  size_t n;
  TRY(parse_string(s, &name, &n));
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (n != strlen(keys[i].name) || memcmp(name, keys[i].name, n) != 0)
      continue;
    if (*seen & 1u << i)
      return nc_failfile(NC_EFILE, s->path, "header: '%s' occurs twice",
                         keys[i].name);
    *seen |= 1u << i;
    TRY(nc_header_need(s, ':', "a colon"));
    return keys[i].read(s, h);
  }
  return nc_failfile(NC_EFILE, s->path, "header: unknown key '%s'",
                     nc_printable(shown, sizeof shown, name, n));
}

static int parse_dict(HeaderParser *s, NpyHeader *h) {
  unsigned seen = 0;
  int comma = 1;
  TRY(nc_header_need(s, '{', "a dict"));
  while (!nc_header_take(s, '}')) {
    if (!comma) return nc_header_expected(s, "a comma or }");
    TRY(parse_entry(s, h, &seen));
    comma = nc_header_take(s, ',');
  }
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (!(seen & 1u << i))
      return nc_failfile(NC_EFILE, s->path, "header: '%s' is missing",
                         keys[i].name);
  return NC_OK;
}

int nc_parsenpy(NpyHeader *h, const char *path, int major, const char *text,
                int64_t n) {
  HeaderParser s = nc_header_parser(path, " \t\r\n\f", text, n);
  *h = (NpyHeader){ .major = major };
  TRY(parse_dict(&s, h));
  nc_header_blanks(&s);
  return s.p == s.end ? NC_OK : nc_header_expected(&s, "nothing more");
}
