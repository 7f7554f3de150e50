/* SPDX-License-Identifier: MIT */
/*
** formula.c - evaluates a gradient formula of ops.def, given as text, over
** tensors.
**
** The compiler makes kernels from the same text.  The interpreter is for what
** these cannot do: gradients that are recorded (create_graph), since each word
** is an operation that is recorded like any other, and devices without the
** kernels.  It is a recursive descent parser that evaluates while it parses.
*/
#include <stdlib.h>
#include <string.h>

#include "core/tape.h"
#include "core/op.h"
#include "core/ops.h"

/* The operations of those words of scalar.h whose operation has another
   name. */
static const struct {
  const char *word;
  Op op;
} words[] = {
  { "absval", OP_abs },
  { "sgn", OP_sgn },
  { "larger", OP_maximum },
  { "smaller", OP_minimum },
  { "both", OP_logical_and },
  { "either", OP_logical_or },
  { "power", OP_pow },
  { "logistic", OP_sigmoid },
  { "floordiv", OP_floor_divide },
  { "truncdiv", OP_trunc_divide },
  { "modulo", OP_remainder },
  { "remain", OP_fmod },
  { "log1p", OP_log1p },
  { "sinpi", OP__sinpi },
  { "cospi", OP__cospi },
  { "trigamma", OP__trigamma },
  { "fast_erf", OP_erf },
};

typedef struct Reader {
  const char *at;
  const Value *letter;
} Reader;

static int isdigit_(char c) {
  return (c >= '0' && c <= '9') || c == '.';
}

static int is_number(const Value *v) {
  return v->t == NULL;
}

static void skip_blanks(Reader *r) {
  while (*r->at == ' ' || *r->at == '\n') r->at++;
}

/* Consumes character c, after blanks, and returns 1; 0 if another follows. */
static int next(Reader *r, char c) {
  skip_blanks(r);
  if (*r->at != c) return 0;
  r->at++;
  return 1;
}

/*
** Values.  The functions below take over the references in v.
*/
static void drop(Value v[], int n) {
  for (int i = 0; i < n; i++) {
    nc_release(v[i].t);
    v[i].t = NULL;
  }
}

/* v[0] = op(v[0], ..).  If all are numbers the result is a 0-d tensor. */
static int apply(Op op, Value v[], int n) {
  Arg in[3] = { { .t = NULL } };
  Tensor *y = NULL;
  int r = NC_OK, some = 0;
  for (int i = 0; i < n; i++) some |= v[i].t != NULL;
  if (!some)
    r = nc_full(&v[0].t, &nc_cpu, DT_f64, 0, NULL,
                nc_float(nc_tofloat(v[0].s)));
  for (int i = 0; i < n; i++) {
    in[i].t = v[i].t;
    in[i].s = v[i].s;
  }
  if (r == NC_OK) r = nc_apply(&y, op, in, NULL, NULL);
  drop(v, n);
  v[0].t = y;
  return r;
}

/* v[0] = v[0] c v[1]; two numbers are computed in double, as K(c) is in C. */
static int arithmetic(char c, Value v[]) {
  Op op = c == '+'   ? OP_add
          : c == '-' ? OP_sub
          : c == '*' ? OP_mul
                     : OP_true_divide;
  double a, b;
  if (!is_number(&v[0]) || !is_number(&v[1])) return apply(op, v, 2);
  a = nc_tofloat(v[0].s);
  b = nc_tofloat(v[1].s);
  v[0].s = nc_float(c == '+'   ? a + b
                    : c == '-' ? a - b
                    : c == '*' ? a * b
                               : a / b);
  return NC_OK;
}

static int negate(Value *v) {
  if (!is_number(v)) return apply(OP_neg, v, 1);
  v->s = nc_float(-nc_tofloat(v->s));
  return NC_OK;
}

/* Replaces v by its real part; a number, or a real tensor, is that itself. */
static int real_part(Value *v) {
  Tensor *z = v->t;
  int r;
  if (z == NULL || !nc_is_complex(z->dtype)) return NC_OK;
  r = nc_real_part(&v->t, z);
  nc_release(z);
  return r;
}

/* Replaces v by v less its real part: 0 if it is real. */
static int imaginary(Value *v) {
  Value both[2] = { *v, *v };
  if (v->t == NULL || !nc_is_complex(v->t->dtype)) {
    drop(v, 1);
    v->s = nc_int(0);
    return NC_OK;
  }
  nc_retain(v->t);
  v->t = NULL;
  int r = real_part(&both[1]);
  if (r == NC_OK) r = apply(OP_sub, both, 2);
  else drop(both, 2);
  *v = both[0];
  return r;
}

/* v[0] = where(v[0], v[1], v[2]).  A condition that is a number selects at
   once. */
static int choose(Value v[]) {
  if (is_number(&v[0])) {
    const int i = nc_tofloat(v[0].s) != 0 ? 1 : 2;
    const Value chosen = v[i];
    nc_release(v[3 - i].t);
    v[0] = chosen;
    v[1].t = v[2].t = NULL;
    return NC_OK;
  }
  return apply(OP_where, v, 3);
}

/* *op = the operation that a word of a formula names. */
static int find_op(const char *s, size_t n, Op *op) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i].word) == n && memcmp(words[i].word, s, n) == 0) {
      *op = words[i].op;
      return NC_OK;
    }
  for (int i = 0; i < OP_COUNT; i++)
    if (strlen(nc_opinfo[i].name) == n &&
        memcmp(nc_opinfo[i].name, s, n) == 0) {
      *op = (Op)i;
      return NC_OK;
    }
  return nc_fail(NC_EVALUE, "no operation computes '%.*s'", (int)n, s);
}

/*
** Expressions.  Each function returns a value in *v, with its own reference; no
** reference after a failure.
*/
static int expression(Reader *r, Value *v);

/* call = word "(" expression {"," expression} ")", after the "(" */
static int call(Reader *r, const char *word, size_t length, Value *out) {
  Value v[3];
  Op op = OP_clone;
  int n = 0, status = NC_OK;
  memset(v, 0, sizeof v);
  do status = expression(r, &v[n++]);
  while (status == NC_OK && n < 3 && next(r, ','));
  if (status == NC_OK && !next(r, ')'))
    status = nc_fail(NC_EVALUE, "')' is missing before '%.20s'", r->at);
  if (status != NC_OK) {
    drop(v, 3);
    return status;
  }
  if (length == 1 && *word == 'K') status = NC_OK;
  else if (length == 5 && memcmp(word, "where", 5) == 0) status = choose(v);
  else if (length == 8 && memcmp(word, "realpart", 8) == 0)
    status = real_part(&v[0]);
  else if (length == 9 && memcmp(word, "imaginary", 9) == 0)
    status = imaginary(&v[0]);
  else if ((status = find_op(word, length, &op)) == NC_OK) {
    /* an order of complex numbers is that of their real parts */
    for (int i = 0; i < n && !nc_opinfo[op].takes_complex; i++)
      if (status == NC_OK) status = real_part(&v[i]);
    if (status == NC_OK) status = apply(op, v, n);
  }
  if (status != NC_OK) drop(v, 3);
  *out = v[0];
  return status;
}

/* primary = "(" expression ")" | "-" primary | number | letter | call */
static int primary(Reader *r, Value *v) {
  const char *word;
  size_t n;
  int letter;
  v->t = NULL;
  if (next(r, '(')) {
    TRY(expression(r, v));
    if (next(r, ')')) return NC_OK;
    drop(v, 1);
    return nc_fail(NC_EVALUE, "')' is missing before '%.20s'", r->at);
  }
  if (next(r, '-')) {
    TRY(primary(r, v));
    return negate(v);
  }
  if (isdigit_(*r->at)) {
    char *end;
    const double f = nc_todouble(r->at, &end);
    int whole = strcspn(r->at, ".e") >= (size_t)(end - r->at);
    v->s = whole ? nc_int((int64_t)f) : nc_float(f);
    r->at = end;
    return NC_OK;
  }
  word = r->at;
  n = nc_word_length(word);
  r->at += n;
  if (n > 0 && next(r, '(')) return call(r, word, n, v);
  if ((letter = nc_letter_of(word, n)) < 0)
    return nc_fail(NC_EVALUE, "'%.20s' is not part of an expression", word);
  *v = r->letter[letter];
  if (v->t) nc_retain(v->t);
  return NC_OK;
}

/* part {(a | b) part}: a chain of two operators of one precedence */
static int chain(Reader *r, Value *v, int (*part)(Reader *r, Value *v), char a,
                 char b) {
  TRY(part(r, v));
  for (;;) {
    const char op = next(r, a) ? a : next(r, b) ? b : '\0';
    Value pair[2] = { *v };
    int status;
    if (op == '\0') return NC_OK;
    v->t = NULL;
    status = part(r, &pair[1]);
    if (status == NC_OK) status = arithmetic(op, pair);
    if (status != NC_OK) {
      nc_release(pair[0].t);
      return status;
    }
    *v = pair[0];
  }
}

/* term = primary {("*" | "/") primary} */
static int term(Reader *r, Value *v) {
  return chain(r, v, primary, '*', '/');
}

/* expression = term {("+" | "-") term} */
static int expression(Reader *r, Value *v) {
  return chain(r, v, term, '+', '-');
}

/* *y = the value of a formula.  A value that is a number fills the shape of
   g. */
static int evaluate(Tensor **y, const char *text, const Value letter[]) {
  Reader r = { text, letter };
  Value v = { NULL, nc_int(0) };
  const Tensor *g = letter[LETTER_G].t;
  TRY(expression(&r, &v));
  skip_blanks(&r);
  if (*r.at) {
    drop(&v, 1);
    return nc_fail(NC_EVALUE, "unexpected '%.20s' at the end", r.at);
  }
  if (v.t == NULL)
    return nc_full(y, nc_device(g), g->dtype, g->nd, g->size,
                   nc_float(nc_tofloat(v.s)));
  *y = v.t;
  return NC_OK;
}

/* evaluate, between two conj if g is complex: see ops.def. */
static int evaluate_conjugated(Tensor **y, const char *text, Value letter[]) {
  Tensor *g = letter[LETTER_G].t, *t = NULL;
  int r;
  if (g == NULL || !nc_is_complex(g->dtype) || strcmp(text, "g") == 0)
    return evaluate(y, text, letter);
  TRY(nc_apply1(&letter[LETTER_G].t, OP_conj, g));
  nc_release(g);
  r = evaluate(&t, text, letter);
  if (r == NC_OK) r = nc_apply1(y, OP_conj, t);
  nc_release(t);
  return r;
}

/* Evaluates in float32 if operands are half types, which would round after
   every operation. */
int nc_formula_eval(Tensor **y, const char *text, const Value given[LETTERS]) {
  Value letter[LETTERS];
  int r = NC_OK;
  *y = NULL;
  for (int i = 0; i < LETTERS; i++) {
    Tensor *t = given[i].t;
    letter[i] = given[i];
    letter[i].t = NULL;
    if (t == NULL || r != NC_OK) continue;
    if (t->dtype == DT_f16 || t->dtype == DT_bf16)
      r = nc_cast(&letter[i].t, t, DT_f32);
    else nc_retain(letter[i].t = t);
  }
  if (r == NC_OK) r = evaluate_conjugated(y, text, letter);
  drop(letter, LETTERS);
  return r;
}
