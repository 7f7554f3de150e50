/* SPDX-License-Identifier: MIT */
/*
** error.c - the record of the last failure, one a thread.
*/
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "op.h"
#include "watched.h"

static _Thread_local Error record;

int nc_fail(int code, const char *fmt, ...) {
  va_list args;
  record.code = code;
  record.op[0] = record.rule[0] = record.hint[0] = record.first[0] = '\0';
  record.n = 0;
  va_start(args, fmt);
  vsnprintf(record.text, sizeof record.text, fmt, args);
  va_end(args);
  return code;
}

void nc_rule(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(record.rule, sizeof record.rule, fmt, args);
  va_end(args);
}

void nc_hint(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(record.hint, sizeof record.hint, fmt, args);
  va_end(args);
}

void nc_first(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(record.first, sizeof record.first, fmt, args);
  va_end(args);
}

void nc_blame(const char *role, const Tensor *t) {
  Operand *o = &record.operand[record.n];
  if (record.n == NC_MAXBLAME) return;
  record.n++;
  snprintf(o->role, sizeof o->role, "%s", role);
  o->note[0] = '\0';
  o->identity = t;
  o->dtype = t->dtype;
  o->nd = t->nd;
  memcpy(o->size, t->size, sizeof o->size);
  o->device = nc_device(t)->name;
  o->isview = t->data->refs > 1 && !nc_isdense(t);
}

void nc_blamenote(const char *fmt, ...) {
  Operand *o = &record.operand[record.n - 1];
  va_list args;
  va_start(args, fmt);
  if (record.n > 0) vsnprintf(o->note, sizeof o->note, fmt, args);
  va_end(args);
}

void nc_reblame(const Tensor *from, const Tensor *to) {
  for (int i = 0; i < record.n; i++)
    if (record.operand[i].identity == from) record.operand[i].identity = to;
}

void nc_blameop(const char *op) {
  snprintf(record.op, sizeof record.op, "%s", op);
}

const Error *nc_lasterror(void) {
  return &record;
}

const char *nc_errname(int code) {
#define X(name, text) #name,
  static const char *const names[] = { "OK", NC_ERRORS(X) };
#undef X
  return code >= 0 && code < NC_ERRCOUNT ? names[code] : "?";
}

int nc_blamed(int r, const char *op, const Arg in[], int n) {
  char role[16];
  if (r == NC_OK || r == NC_EINTR) return r;
  if (nc_lasterror()->op[0] == '\0') nc_blameop(op);
  if (nc_lasterror()->n > 0) return r;
  for (int j = 0; j < n; j++) {
    snprintf(role, sizeof role, j ? "arg %d" : "self", j);
    if (in[j].t) nc_blame(role, in[j].t);
  }
  return r;
}
