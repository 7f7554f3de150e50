/* SPDX-License-Identifier: MIT */
/*
** call_arguments.c - reads the arguments of nacre_call by the signature of the
** operation. An argument without a name is that of the next parameter.
*/
#include <limits.h>
#include <math.h>
#include <string.h>

#include "library/libnacre.h"

static int wrong_type(const Signature *s, const Param *p, const char *wanted) {
  return lib_refuse(s->name, "%s must be %s", p->name, wanted);
}

/* A number in the place of a tensor, or as a value. */
static int read_number(Arg *a, const nacre_arg *x) {
  switch (x->type) {
    case NACRE_INT: a->s = nc_int(x->n); return 1;
    case NACRE_NUMBER: a->s = nc_float(x->number); return 1;
    case NACRE_FLAG:
      a->s = (Scalar){ .kind = NC_BOOL, .i = x->n != 0 };
      return 1;
    default: return 0;
  }
}

static int read_tensor(Arg *a, const nacre_arg *x) {
  a->t = x->type == NACRE_TENSOR ? x->as.tensor : NULL;
  return a->t != NULL;
}

/* An integer, or a list of them. */
static int read_integers(Arg *a, const nacre_arg *x, int64_t *one) {
  a->islist = x->type == NACRE_INTS;
  if (!a->islist && x->type != NACRE_INT) return 0;
  if (a->islist && (x->n < 0 || x->n > INT_MAX)) return 0;
  *one = x->n;
  a->n = a->islist ? (int)x->n : 1;
  a->list = a->islist ? x->as.ints : one;
  return 1;
}

static int read_tensors(Arg *a, const nacre_arg *x) {
  if (x->type != NACRE_TENSORS || x->n < 0 || x->n > INT_MAX) return 0;
  for (int64_t i = 0; i < x->n; i++)
    if (x->as.tensors[i] == NULL) return 0;
  a->n = (int)x->n;
  a->tensors = x->as.tensors;
  return 1;
}

/* The position of a word among "none|tanh", which end with '=', ',' or ' '. */
static int read_choice(const Signature *s, const Param *p, Arg *a,
                       const char *word) {
  const char *c = p->choices;
  for (int k = 0;; k++) {
    const size_t n = strcspn(c, "|=, ");
    if (strlen(word) == n && memcmp(c, word, n) == 0)
      return a->s = nc_int(k), NC_OK;
    if (c[n] != '|') break;
    c += n + 1;
  }
  return lib_refuse(s->name, "%s must be one of %.*s, not '%s'", p->name,
                    (int)strcspn(p->choices, "=, "), p->choices, word);
}

static int read_text(const Signature *s, const Param *p, Arg *a,
                     const char *text) {
  if (p->type == P_CHOICE) return read_choice(s, p, a, text);
  if (p->type == P_DEVICE) return nc_finddevice(&a->device, text);
  if (p->type == P_DTYPE) {
    a->dtype = nc_dtypefrom(text);
    if (a->dtype == DT_NONE) return lib_refuse(s->name, "no dtype '%s'", text);
    return NC_OK;
  }
  a->text = text;
  return NC_OK;
}

/* Reads x for parameter i; returns a status. */
static int read_value(Arguments *all, const Signature *s, int i,
                      const nacre_arg *x) {
  const Param *p = &s->param[i];
  Arg *a = &all->arg[i];
  switch (p->type) {
    case P_TENSOR: return read_tensor(a, x) ? 0 : wrong_type(s, p, "a tensor");
    case P_OPERAND:
      return read_tensor(a, x) || read_number(a, x)
                 ? NC_OK
                 : wrong_type(s, p, "a tensor or a number");
    case P_DIMORTENSOR:
      if (read_tensor(a, x)) return NC_OK; /* fallthrough */
    case P_DIM:
    case P_INDEX:
    case P_INT:
      return x->type == NACRE_INT && read_number(a, x)
                 ? NC_OK
                 : wrong_type(s, p, "an integer");
    case P_NUM: return read_number(a, x) ? NC_OK : wrong_type(s, p, "a number");
    case P_BOOL:
      return x->type == NACRE_FLAG && read_number(a, x)
                 ? NC_OK
                 : wrong_type(s, p, "a flag");
    case P_SIZE:
    case P_INTS:
    case P_DIMS:
      return read_integers(a, x, &all->one[i])
                 ? NC_OK
                 : wrong_type(s, p, "an integer or a list of them");
    case P_TENSORS:
      return read_tensors(a, x) ? NC_OK : wrong_type(s, p, "a list of tensors");
    case P_DTYPE:
    case P_DEVICE:
    case P_TEXT:
    case P_CHOICE:
      return x->type == NACRE_TEXT && x->as.text
                 ? read_text(s, p, a, x->as.text)
                 : wrong_type(s, p, "a text");
    default: return lib_refuse(s->name, "%s has no form in C", p->name);
  }
}

/* Sets *at to the number of the parameter that x is for. */
static int find_parameter(int *at, int *next, const Signature *s,
                          const nacre_arg *x) {
  if (x->name) {
    *at = nc_findparam(s, x->name);
    if (*at < 0) return lib_refuse(s->name, "no argument '%s'", x->name);
    return NC_OK;
  }
  *at = (*next)++;
  if (*at >= s->positional)
    return lib_refuse(s->name, "too many arguments: %d without a name",
                      s->positional);
  return NC_OK;
}

int lib_read_arguments(Arguments *a, const Signature *s, const nacre_arg *given,
                       int n) {
  int next = 0;
  for (int i = 0; i < NC_MAXPARAM; i++)
    a->arg[i] = i < s->n ? s->param[i].fallback : (Arg){ .dtype = DT_NONE };
  for (int i = 0; i < s->n; i++) a->arg[i].list = &s->param[i].one;
  for (int k = 0; k < n; k++) {
    int i;
    TRY(find_parameter(&i, &next, s, &given[k]));
    if (given[k].type == NACRE_NONE) continue;
    if (a->arg[i].present)
      return lib_refuse(s->name, "%s is given twice", s->param[i].name);
    TRY(read_value(a, s, i, &given[k]));
    a->arg[i].present = 1;
  }
  for (int i = 0; i < s->n; i++)
    if (!a->arg[i].present && !s->param[i].optional &&
        s->param[i].type != P_SIZE)
      return lib_refuse(s->name, "%s is missing", s->param[i].name);
  return NC_OK;
}
