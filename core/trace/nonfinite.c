/* SPDX-License-Identifier: MIT */
/*
** nonfinite.c - nc_checkfinite: did an operation make nan or inf of finite
** operands?
**
** A finite sum proves cheaply that all elements are finite; only if the sum is
** not, elements are counted.
*/
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/op.h"
#include "core/ops.h"
#include "core/trace_internal.h"

static int isfloat(const Tensor *t) {
  return t && !nc_is_exact(t->dtype) && nc_numel(t) > 0;
}

/* A finite sum has finite terms.  The converse does not hold. */
static int sum_is_finite(int *yes, Tensor *t) {
  const DType type = nc_computed_dtype(t->dtype);
  Tensor *sum;
  Scalar v;
  int r;
  TRY(nc_reduce(&sum, OP_sum, t, ~0u, 0, type, NULL, NULL));
  r = nc_item(&v, sum);
  nc_release(sum);
  *yes = r == NC_OK && isfinite(v.f);
  return r;
}

/* *s = the counts of nan and inf in t; s->n = 0 if there are none. */
static int count_nonfinite(Summary *s, Tensor *t) {
  int yes = 1;
  memset(s, 0, sizeof *s);
  if (isfloat(t)) TRY(sum_is_finite(&yes, t));
  if (yes) return NC_OK;
  TRY(nc_summary(s, t, 0));
  if (s->nan + s->posinf + s->neginf == 0) s->n = 0;
  return NC_OK;
}

/* *yes: were all operands finite, and was there a tensor among them?  An
   operand that is only written to does not count. */
static int operands_are_finite(int *yes, const TraceEvent *p) {
  int tensors = 0;
  *yes = p->finite;
  for (int i = 0; i < p->nin && *yes; i++) {
    Summary s;
    if (p->value[i] == NULL || (i == 0 && p->into)) continue;
    tensors++;
    TRY(count_nonfinite(&s, p->value[i]));
    *yes = s.n == 0;
  }
  *yes &= tensors > 0;
  return NC_OK;
}

/* "2 nan, 1 inf and 1 -inf" */
static void format_counts(char *buf, size_t size, const Summary *s) {
  static const char *const name[3] = { "nan", "inf", "-inf" };
  const int64_t n[3] = { s->nan, s->posinf, s->neginf };
  static const char *const between[3] = { "", " and ", ", " };
  int left = (n[0] > 0) + (n[1] > 0) + (n[2] > 0);
  size_t at = 0;
  for (int i = 0; i < 3; i++) {
    if (n[i] == 0) continue;
    left--;
    at += (size_t)snprintf(buf + at, size - at, "%lld %s%s", (long long)n[i],
                           name[i], between[left]);
  }
}

/* Coordinates of a flat position. */
static void coordinates(int64_t at[], const Tensor *y, int64_t position) {
  for (int d = y->nd - 1; d >= 0; d--) {
    at[d] = position % y->size[d];
    position /= y->size[d];
  }
}

/* *v = the element of t, broadcast to y, at coordinates at[]. */
static int element_at(Scalar *v, const Tensor *t, const Tensor *y,
                      const int64_t at[]) {
  int64_t offset = 0;
  for (int d = 0; d < t->nd; d++)
    if (t->size[d] > 1) offset += at[d + y->nd - t->nd] * t->step[d];
  return nc_read(v, t, offset);
}

/* "log(-1)" */
static int format_call(char *buf, size_t size, const TraceEvent *p,
                       const Tensor *y, const int64_t at[]) {
  size_t n = (size_t)snprintf(buf, size, "%s(", p->op);
  for (int i = 0; i < p->nin && n < size; i++) {
    Scalar v = nc_float(p->number[i]);
    if (p->value[i]) TRY(element_at(&v, p->value[i], y, at));
    n += (size_t)nc_format(buf + n, size - n, "%s%.6g", i ? ", " : "",
                           nc_tofloat(v));
  }
  if (n < size) snprintf(buf + n, size - n, ")");
  return NC_OK;
}

/* Sets the record's first bad element: "[1]: log(-1) = nan". */
static int set_first(const TraceEvent *p, const Tensor *y, const Summary *s) {
  char index[NC_TEXT] = "", call[64] = "";
  int64_t at[NC_MAXDIM];
  size_t n = 0;
  Scalar v;
  if (y->nd == 0 && !p->elementwise) return NC_OK;
  coordinates(at, y, s->firstbad);
  for (int d = 0; d < y->nd; d++)
    n += (size_t)snprintf(index + n, sizeof index - n, d ? ",%lld" : "[%lld",
                          (long long)at[d] + 1);
  if (n > 0) snprintf(index + n, sizeof index - n, "]: ");
  TRY(element_at(&v, y, y, at));
  if (p->elementwise) TRY(format_call(call, sizeof call - 4, p, y, at));
  if (call[0]) strcat(call, " = ");
  nc_error_first("%.24s%s%s", index, call,
                 isnan(v.f) ? "nan"
                 : v.f > 0  ? "inf"
                            : "-inf");
  return NC_OK;
}

/* Adds the operands to the record, with their minimum and maximum. */
static int add_operands(const TraceEvent *p) {
  char role[16];
  for (int i = 0; i < p->nin; i++) {
    Summary s;
    if (p->operand[i] == NULL) continue;
    TRY(nc_summary(&s, p->value[i], 0));
    snprintf(role, sizeof role, i ? "arg %d" : "self", i);
    nc_error_operandat(i, p->backward ? "gradient" : role, p->operand[i]);
    if (s.n > 0) nc_error_note("min %.4g  max %.4g", s.min, s.max);
  }
  return NC_OK;
}

int nc_checkfinite(int *found, const TraceEvent *p, Tensor *const out[],
                   int nout) {
  char what[96], op[32];
  Summary s = { 0 };
  int yes, i = 0;
  *found = 0;
  if (p->isview || p->unset) return NC_OK;
  while (i < nout && s.n == 0) TRY(count_nonfinite(&s, out[i++]));
  if (s.n == 0) return NC_OK;
  TRY(operands_are_finite(&yes, p));
  if (!yes) return NC_OK;
  format_counts(what, sizeof what, &s);
  snprintf(op, sizeof op, "%s%s", p->op, p->backward ? " backward" : "");
  nc_fail(NC_EVALUE, "made %s from finite input", what);
  if (s.posinf + s.neginf > 0) nc_cause((Cause){ .kind = NC_CAUSE_infinite });
  nc_error_op(op);
  if (p->backward) nc_error_node(p->node);
  nc_error_final();
  TRY(add_operands(p));
  TRY(set_first(p, out[i - 1], &s));
  *found = 1;
  return NC_OK;
}
