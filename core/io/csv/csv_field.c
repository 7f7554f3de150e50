/* SPDX-License-Identifier: MIT */
/*
** csv_field.c - the number in a field of CSV text: an integer, a float or a
** bool.
*/
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/pointwise/scalar.h"
#include "core/io/csv/csv_table.h"

/* Is the field one of the texts that count as empty? */
static int is_missing(const CsvLines *l) {
  const TextFormat *f = l->format;
  for (int64_t i = 0; i < f->nna; i++)
    if (strlen(f->na[i]) == (size_t)l->n &&
        memcmp(f->na[i], l->field, (size_t)l->n) == 0)
      return 1;
  return l->n == 0;
}

/* buf = the field as a C string, with a point where the format has another
   mark; 0: it cannot be a number. */
static int copy_field(const CsvLines *l, char buf[CSV_MAXFIELD]) {
  if (l->n >= CSV_MAXFIELD || memchr(l->field, '\0', (size_t)l->n)) return 0;
  memcpy(buf, l->field, (size_t)l->n);
  buf[l->n] = '\0';
  if (l->format->comma) {
    if (strchr(buf, '.')) return 0;
    for (char *p = buf; (p = strchr(p, ',')) != NULL;) *p = '.';
  }
  return strchr(" \t\n\v\f\r", *buf) == NULL; /* which strtod skips */
}

static FieldResult parse_integer(const char *s, DType type, int64_t *v) {
  char *end;
  errno = 0;
  *v = strtoll(s, &end, 10);
  if (*end || errno) return FIELD_BAD;
  return type == DT_i64 || nc_checkfits(nc_int(*v), type) == NC_OK ? FIELD_OK
                                                                   : FIELD_BAD;
}

/* As strtod, without hexadecimal numbers and NaN payloads. */
static FieldResult parse_real(const char *s, double *v) {
  char *end;
  if (strpbrk(s, "xX(")) return FIELD_BAD;
  *v = nc_todouble(s, &end);
  return *end ? FIELD_BAD : FIELD_OK;
}

static FieldResult parse_bool(const char *s, uint8_t *v) {
  static const char *const words[] = { "0",     "1",    "false", "true",
                                       "False", "True", "FALSE", "TRUE" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(s, words[i]) == 0) return *v = (uint8_t)(i & 1), FIELD_OK;
  return FIELD_BAD;
}

static double round_to_dtype(double x, DType type) {
  switch (type) {
    case DT_f16: return f16_tofloat(f16_fromfloat((float)x));
    case DT_bf16: return bf16_tofloat(bf16_fromfloat((float)x));
    case DT_f32: return (float)x;
    default: return x;
  }
}

/* Is x exactly the integer written in s? */
static int is_exact(const char *s, double x) {
  char digits[CSV_MAXFIELD];
  const char *d = digits;
  nc_format(digits, sizeof digits, "%.0f", x);
  s += *s == '+' || *s == '-';
  d += *d == '-';
  while (*s == '0' && s[1]) s++;
  return strcmp(s, d) == 0;
}

/* What the last digit of the number in s counts: 1e-3 in "2.125", 1e2 in
   "12e2". */
static double last_digit(const char *s) {
  const char *dot = strchr(s, '.'), *e = strpbrk(s, "eE");
  const long power = e ? strtol(e + 1, NULL, 10) : 0;
  const long decimals = dot ? (e ? e : s + strlen(s)) - dot - 1 : 0;
  return pow(10, (double)(power - decimals));
}

/* Is the text s, of the infinite number x, that of a finite one? */
static int is_beyond(const char *s, double x) {
  return isinf(x) && strpbrk(s, "0123456789") != NULL;
}

/* Has the text s, of a number that is 0, a digit that is not? */
static int is_below(const char *s, double x) {
  return x == 0 && s[strcspn(s, "123456789eE")] != '\0' &&
         strchr("eE", s[strcspn(s, "123456789eE")]) == NULL;
}

/* x was read from s without a requested dtype: notes if float64 is needed, and
   fails if float64 is not enough. */
static FieldResult check_precision(CsvKind *k, const char *s, double x) {
  const double y = round_to_dtype(x, nc_context->dtype);
  if (is_beyond(s, x)) return FIELD_BEYOND;
  if (is_below(s, x)) return FIELD_BELOW;
  /* Would y, written with as many digits, be another number? A tie would not;
     the rounding of float64 must not decide it. */
  if (!k->needs_float64 && x != y && isfinite(x) &&
      !(fabs(x - y) < 0.500001 * last_digit(s)))
    k->needs_float64 = 1;
  if (fabs(x) >= 9007199254740992.0 && !s[strspn(s, "+-0123456789")] &&
      !is_exact(s, x))
    return FIELD_INEXACT; /* it lies between two float64 numbers */
  return FIELD_OK;
}

static FieldResult missing_value(const Scalar *m, DType type, DType as,
                                 void *to) {
  if (m == NULL) return FIELD_EMPTY;
  if (as == DT_f64) {
    const double v = nc_tofloat(*m);
    memcpy(to, &v, sizeof v);
    return FIELD_OK;
  }
  if (m->kind == NC_FLOAT ||
      (type != DT_NONE && type != DT_i64 && nc_checkfits(*m, type) != NC_OK))
    return FIELD_BAD;
  if (as == DT_i64) memcpy(to, &m->i, sizeof m->i);
  else *(uint8_t *)to = m->i != 0;
  return FIELD_OK;
}

FieldResult nc_csv_parse(CsvKind *k, CsvLines *l, void *to) {
  const DType as = k->as;
  char text[CSV_MAXFIELD];
  int64_t i;
  double x;
  FieldResult r;
  nc_csv_unquote(l);
  if (is_missing(l)) return missing_value(l->format->missing, k->type, as, to);
  if (!copy_field(l, text)) return FIELD_BAD;
  if (as == DT_b8) return parse_bool(text, to);
  if (as == DT_i64) {
    r = parse_integer(text, k->type == DT_NONE ? DT_i64 : k->type, &i);
    if (r == FIELD_OK) memcpy(to, &i, sizeof i);
    k->minus_zero |= r == FIELD_OK && i == 0 && *text == '-';
    return r;
  }
  if ((r = parse_real(text, &x)) == FIELD_OK) memcpy(to, &x, sizeof x);
  return r == FIELD_OK && k->type == DT_NONE ? check_precision(k, text, x) : r;
}

FieldResult nc_csv_test(const CsvKind *k, CsvLines l) {
  CsvKind any = *k;
  double x;
  any.as = k->type == DT_b8 ? DT_b8 : DT_f64;
  return nc_csv_parse(&any, &l, &x);
}

int nc_csv_changes(int64_t v) {
  const double x = (double)v, y = round_to_dtype(x, nc_context->dtype);
  if (x >= 9223372036854775808.0 || (int64_t)x != v) return -1;
  return isfinite(y) ? fabs(x - y) >= 0.500001 : 1;
}

int nc_csv_is_integer(const CsvLines *l) {
  char text[CSV_MAXFIELD];
  int64_t i;
  return copy_field(l, text) && parse_integer(text, DT_i64, &i) == FIELD_OK;
}

int nc_csv_is_real(const CsvLines *l) {
  char text[CSV_MAXFIELD];
  double x;
  return copy_field(l, text) && parse_real(text, &x) == FIELD_OK;
}

/*
** Plain numbers, which are nearly all: up to 19 digits with a point and an
** exponent.  They are read where they stand, with the value that strtod gives.
*/
typedef struct Decimal { /* digits * 10^power */
  uint64_t digits;
  int power, negative;
  int integer; /* without a point and an exponent */
} Decimal;

/* Adds the digits at p; the first byte that is none, or NULL: too many. */
static const char *read_digits(Decimal *x, const char *p, const char *stop) {
  for (; p < stop && *p >= '0' && *p <= '9'; p++) {
    if (x->digits >= 1000000000000000000u) return NULL;
    x->digits = x->digits * 10 + (uint64_t)(*p - '0');
  }
  return p;
}

/* The exponent at p, which begins with e. */
static const char *read_exponent(Decimal *x, const char *p, const char *stop) {
  Decimal e = { 0 };
  const char *begin;
  p++;
  if (p < stop && (*p == '+' || *p == '-')) e.negative = *p++ == '-';
  begin = p;
  p = read_digits(&e, p, stop);
  if (p == NULL || p == begin || e.digits > 1000) return NULL;
  x->power += e.negative ? -(int)e.digits : (int)e.digits;
  x->integer = 0;
  return p;
}

/* Reads the number at p; where it ends, or NULL: it is no plain one. */
static const char *read_decimal(Decimal *x, const char *p, const char *stop,
                                char mark) {
  const char *begin, *point;
  *x = (Decimal){ .integer = 1 };
  if (p < stop && (*p == '-' || *p == '+')) x->negative = *p++ == '-';
  begin = p;
  if ((p = read_digits(x, p, stop)) == NULL) return NULL;
  int64_t n = p - begin;
  if (p < stop && *p == mark) {
    point = ++p;
    if ((p = read_digits(x, p, stop)) == NULL) return NULL;
    if (p - point > 400) return NULL;
    x->power = -(int)(p - point);
    x->integer = 0;
    n += p - point;
  }
  if (n == 0) return NULL;
  return p < stop && (*p | 32) == 'e' ? read_exponent(x, p, stop) : p;
}

static const double power_of_ten[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,
                                       1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
                                       1e18, 1e19, 1e20, 1e21, 1e22 };
enum { MOST_POWER = 22 }; /* they are exact up to this one */

/* The float64 next to it, if two exact numbers and one rounding give it. */
static int decimal_value(double *v, const Decimal *x) {
  const int power = x->power < 0 ? -x->power : x->power;
  if (power > MOST_POWER) return 0;
  if (x->digits <= (uint64_t)1 << 53) {
    const double d = (double)x->digits;
    *v = x->power < 0 ? d / power_of_ten[power] : d * power_of_ten[power];
  } else {
#if LDBL_MANT_DIG == 64 && LDBL_MAX_EXP == 16384
    /* rounded twice, which is right unless the first result, of 64 bits, lies
       in the middle between two float64 */
    const long double d = (long double)x->digits, p = power_of_ten[power];
    const long double y = x->power < 0 ? d / p : d * p;
    uint64_t bits;
    memcpy(&bits, &y, sizeof bits);
    if ((bits & 0x7ff) == 0x400) return 0;
    *v = (double)y;
#else
    return 0;
#endif
  }
  if (x->negative) *v = -*v;
  return 1;
}

/* As check_precision. */
static void note_precision(CsvKind *k, const Decimal *x, double v) {
  const double y = round_to_dtype(v, nc_context->dtype);
  const int power = x->power < 0 ? -x->power : x->power;
  const double last =
      x->power < 0 ? 1 / power_of_ten[power] : power_of_ten[power];
  if (v != y && !(fabs(v - y) < 0.500001 * last)) k->needs_float64 = 1;
}

static int store_decimal(CsvKind *k, const Decimal *x, void *to) {
  double v;
  if (k->as == DT_i64) {
    const int64_t i = (int64_t)(x->negative ? 0 - x->digits : x->digits);
    if (!x->integer || x->digits > INT64_MAX) return 0;
    k->minus_zero |= x->negative && i == 0;
    memcpy(to, &i, sizeof i);
    return 1;
  }
  if (k->type == DT_NONE && x->integer && x->digits > (uint64_t)1 << 53)
    return 0;
  if (!decimal_value(&v, x)) return 0;
  if (k->type == DT_NONE && !k->needs_float64) note_precision(k, x, v);
  memcpy(to, &v, sizeof v);
  return 1;
}

int nc_csv_parse_next(CsvKind *k, CsvLines *l, void *to) {
  const char d = l->format->delimiter;
  const char *p = l->p, *stop = l->stop;
  const int plain =
      k->as == DT_f64 ||
      (k->as == DT_i64 && (k->type == DT_NONE || k->type == DT_i64));
  const char mark = l->format->comma ? ',' : '.';
  Decimal x;
  if (p == NULL || !plain || l->numbers) return 0;
  while (p < stop && (*p == ' ' || (*p == '\t' && d != '\t'))) p++;
  if ((p = read_decimal(&x, p, stop, mark)) == NULL) return 0;
  if (p < stop && *p != d && !(d == ' ' && *p == '\t')) return 0;
  if (!store_decimal(k, &x, to)) return 0;
  l->p = p < stop ? p + 1 : NULL;
  l->column++;
  return 1;
}
