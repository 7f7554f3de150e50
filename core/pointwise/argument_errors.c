/* SPDX-License-Identifier: MIT */
/*
** argument_errors.c - what is wrong with the arguments of a call. Whoever reads
** arguments by a signature, from Lua or from C, records these errors.
*/
#include <stdio.h>
#include <string.h>

#include "core/signature.h"
#include "core/suggest.h"

int nc_check_given(const Signature *s, const char *op, const Arg *arg,
                   int all) {
  char noun[NC_NOUN];
  for (int i = 0; i < s->n; i++) {
    const Param *p = &s->param[i];
    if (arg[i].present || p->optional || (p->type == P_SIZE && !all)) continue;
    nc_fail(NC_EVALUE, "%s is missing: %s expected", p->name,
            nc_param_noun(p, noun));
    nc_cause((Cause){ NC_CAUSE_missing, p->name, NULL });
    nc_error_op(op);
    return NC_EVALUE;
  }
  return NC_OK;
}

int nc_wrong_argument(const char *op, const Param *p, const char *value,
                      const char *type) {
  char noun[NC_NOUN];
  const int tensor = p->type == P_TENSOR || p->type == P_OPERAND;
  const int self = tensor && strcmp(p->name, "self") == 0;
  nc_fail(NC_EVALUE, "%s must be %s, not %s", p->name,
          self ? "a tensor" : nc_param_noun(p, noun), value);
  nc_cause((Cause){ tensor ? NC_CAUSE_tensor : NC_CAUSE_type, p->name, type });
  nc_error_op(op);
  return NC_EVALUE;
}

int nc_repeated_argument(const char *op, const Param *p) {
  nc_fail(NC_EVALUE, "%s is given twice", p->name);
  nc_error_op(op);
  return NC_EVALUE;
}

/* In x:add(...) the user does not count x, so the message does not either. */
int nc_surplus_arguments(const Signature *s, const char *op, int got) {
  const int self = s->method, most = s->positional - self;
  char number[16] = "no";
  if (most) snprintf(number, sizeof number, "at most %d", most);
  nc_fail(NC_EVALUE, "takes %s argument%s%s, got %d", number,
          most < 2 ? "" : "s", self ? " besides self" : "", got - self);
  nc_error_op(op);
  return NC_EVALUE;
}

/* The name that is meant: the nearest one, or one that begins as `name' does,
   "red" for "reduction"; NULL if there is none. */
static const char *find_meant(const char *name, const char *const names[]) {
  const char *near = nc_nearest(name, names);
  for (int i = 0; near == NULL && names[i]; i++)
    if (strncmp(name, names[i], 3) == 0) return names[i];
  return near;
}

/* The names, separated by commas; those that no hint has room for are "...". */
static void hint_names(const char *const names[]) {
  char text[sizeof nc_lasterror()->hint] = "";
  const size_t most = sizeof text - sizeof "it takes , ...";
  size_t n = 0;
  for (int i = 0; names[i]; i++) {
    const int fits = n + strlen(names[i]) + 2 <= most;
    snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "",
             fits ? names[i] : "...");
    if (!fits) break;
    n = strlen(text);
  }
  if (n) nc_hint("it takes %s", text);
}

int nc_unknown_argument(const Signature *s, const char *op, const char *name,
                        int out) {
  const char *names[NC_MAXPARAM + 2] = { NULL }, *near;
  int n = 0;
  for (; n < s->n; n++) names[n] = s->param[n].name;
  if (out) names[n] = "out";
  near = find_meant(name, names);
  if (near)
    nc_fail(NC_EVALUE, "no argument '%s', did you mean '%s'?", name, near);
  else nc_fail(NC_EVALUE, "no argument '%s'", name);
  nc_cause((Cause){ NC_CAUSE_argument, name, NULL });
  nc_error_op(op);
  if (near == NULL) hint_names(names);
  return NC_EVALUE;
}

int nc_read_dtype(DType *type, const char *op, const char *name) {
  const char *names[DT_COUNT + 1] = { NULL }, *near;
  char all[200] = "";
  if ((*type = nc_dtypefrom(name)) != DT_NONE) return NC_OK;
  for (int t = 0; t < DT_COUNT; t++) {
    const size_t n = strlen(all);
    names[t] = nc_dtypename((DType)t);
    snprintf(all + n, sizeof all - n, "%s%s", t ? ", " : "", names[t]);
  }
  near = nc_nearest(name, names);
  nc_fail(NC_EVALUE,
          near ? "no dtype '%s', did you mean '%s'?"
               : "no dtype '%s': there are %s",
          name, near ? near : all);
  nc_error_op(op);
  return NC_EVALUE;
}
