/* SPDX-License-Identifier: MIT */
/*
** call_arguments.c - reads the arguments of nacre_call by the signature of the
** operation. An argument without a name is that of the next parameter.
*/
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "library/libnacre.h"

/* Named by nacre_argtype. */
static const char *const nouns[] = {
  "nothing",    "a tensor",           "a list of tensors",
  "an integer", "a list of integers", "a number",
  "a boolean",  "a string",
};

static int wrong_type(const Signature *s, const Param *p, const nacre_arg *x) {
  const int known = x->type >= NACRE_NONE && x->type <= NACRE_TEXT;
  char text[80];
  snprintf(text, sizeof text, "%s", known ? nouns[x->type] : "something else");
  if (x->type == NACRE_TEXT && x->as.text)
    snprintf(text, sizeof text, "'%.70s'", x->as.text);
  return nc_wrong_argument(s->name, p, text, "");
}

/* A number in place of a tensor, or as a value. */
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

/* Reads the text for a choice, a dtype or itself. */
static int read_text(Arg *a, const Param *p, const nacre_arg *x) {
  if (x->type != NACRE_TEXT || x->as.text == NULL) return 0;
  a->text = x->as.text;
  if (p->type != P_CHOICE) return 1;
  const int k = nc_find_choice(p, a->text);
  a->s = nc_int(k);
  return k >= 0;
}

/* Reads x for parameter i; returns 0 if it does not fit. */
static int read_value(Arguments *all, const Param *p, int i,
                      const nacre_arg *x) {
  Arg *a = &all->arg[i];
  switch (p->type) {
    case P_TENSOR: return read_tensor(a, x);
    case P_OPERAND: return read_tensor(a, x) || read_number(a, x);
    case P_DIMORTENSOR:
      if (read_tensor(a, x)) return 1; /* fallthrough */
    case P_DIM:
    case P_INDEX:
    case P_INT: return x->type == NACRE_INT && read_number(a, x);
    case P_NUM: return read_number(a, x);
    case P_BOOL: return x->type == NACRE_FLAG && read_number(a, x);
    case P_SIZE:
    case P_INTS:
    case P_DIMS: return read_integers(a, x, &all->one[i]);
    case P_TENSORS: return read_tensors(a, x);
    case P_DTYPE:
    case P_DEVICE:
    case P_TEXT:
    case P_CHOICE: return read_text(a, p, x);
    default: return 0;
  }
}

static int count_unnamed(const nacre_arg *given, int n) {
  int count = 0;
  for (int k = 0; k < n; k++) count += given[k].name == NULL;
  return count;
}

int lib_read_arguments(Arguments *a, const Signature *s, const nacre_arg *given,
                       int n) {
  int next = 0;
  nc_set_defaults(a->arg, s);
  for (int k = 0; k < n; k++) {
    const char *name = given[k].name;
    const int i = name ? nc_findparam(s, name) : next++;
    if (i < 0) return nc_unknown_argument(s, s->name, name, 0);
    if (name == NULL && i >= s->positional)
      return nc_surplus_arguments(s, s->name, count_unnamed(given, n));
    const Param *p = &s->param[i];
    if (given[k].type == NACRE_NONE) continue;
    if (a->arg[i].present) return nc_repeated_argument(s->name, p);
    if (!read_value(a, p, i, &given[k])) return wrong_type(s, p, &given[k]);
    if (p->type == P_DTYPE)
      TRY(nc_read_dtype(&a->arg[i].dtype, s->name, a->arg[i].text));
    if (p->type == P_DEVICE)
      TRY(nc_finddevice(&a->arg[i].device, a->arg[i].text));
    a->arg[i].present = 1;
  }
  return nc_check_given(s, s->name, a->arg, 0);
}
