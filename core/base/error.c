/* SPDX-License-Identifier: MIT */
/*
** error.c - the record of the last failure, one a thread.
*/
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/op.h"
#include "core/tracing.h"

static _Thread_local Error record;

/* Would the character act on a terminal? */
static int acts(uint32_t c) {
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Names in messages come from files and users: what acts on a terminal, or is
   not UTF-8, is shown as \xNN. */
static void tame(char *text, size_t room) {
  char tamed[sizeof record.text];
  size_t n = strlen(text), used = 0, k;
  uint32_t c = 0;
  for (k = 0; k < n && !acts((unsigned char)text[k]) && text[k] > 0;) k++;
  if (k == n) return;
  for (size_t i = 0; i < n && used + 8 < room; i += k ? k : 1) {
    k = nc_utf8(&c, text + i, n - i);
    if (k && !acts(c)) memcpy(tamed + used, text + i, k), used += k;
    else
      for (size_t j = 0; j < (k ? k : 1) && used + 8 < room; j++)
        used += (size_t)snprintf(tamed + used, 5, "\\x%02x",
                                 (unsigned char)text[i + j]);
  }
  memcpy(text, tamed, used);
  text[used] = '\0';
}

/* "1 dimensions" becomes "1 dimension": many messages count them. */
static void agree(char *text) {
  static const char many[] = "1 dimensions";
  for (char *p = text; (p = strstr(p, many)) != NULL; p++) {
    char *last = p + sizeof many - 2;
    if (p > text && isalnum((unsigned char)p[-1])) continue;
    memmove(last, last + 1, strlen(last));
  }
}

int nc_fail(int code, const char *fmt, ...) {
  va_list args;
  record.code = code;
  record.op[0] = record.rule[0] = record.hint[0] = record.first[0] = '\0';
  record.n = record.partly = 0;
  va_start(args, fmt);
  vsnprintf(record.text, sizeof record.text, fmt, args);
  va_end(args);
  agree(record.text);
  tame(record.text, sizeof record.text);
  return code;
}

void nc_rule(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(record.rule, sizeof record.rule, fmt, args);
  va_end(args);
  tame(record.rule, sizeof record.rule);
}

void nc_hint(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(record.hint, sizeof record.hint, fmt, args);
  va_end(args);
  tame(record.hint, sizeof record.hint);
}

void nc_first(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(record.first, sizeof record.first, fmt, args);
  va_end(args);
  tame(record.first, sizeof record.first);
}

void nc_error_operand(const char *role, const Tensor *t) {
  Operand *o = &record.operand[record.n];
  if (record.n == NC_MAXERROROPERANDS) return;
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

void nc_error_note(const char *fmt, ...) {
  Operand *o = &record.operand[record.n - 1];
  va_list args;
  va_start(args, fmt);
  if (record.n > 0) vsnprintf(o->note, sizeof o->note, fmt, args);
  va_end(args);
}

void nc_error_replace(const Tensor *from, const Tensor *to) {
  for (int i = 0; i < record.n; i++)
    if (record.operand[i].identity == from) record.operand[i].identity = to;
}

void nc_error_partial(void) {
  record.partly = 1;
}

void nc_error_op(const char *op) {
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

enum { ROLE = 16 };

static const char *roleof(char role[ROLE], int j) {
  snprintf(role, ROLE, j ? "arg %d" : "self", j);
  return role;
}

/* A device that works later than it is asked fails under its own name: the
   operands of who happened to wait are not the ones that are wrong. */
static int foundlater(void) {
  return strncmp(record.op, "cuda:", 5) == 0;
}

int nc_error_call(int r, const char *op, const Arg in[], int n) {
  char role[ROLE];
  if (r == NC_OK || r == NC_EINTR || foundlater()) return r;
  if (record.op[0] == '\0') nc_error_op(op);
  if (record.n > 0) return r;
  for (int j = 0; j < n; j++)
    if (in[j].t) nc_error_operand(roleof(role, j), in[j].t);
  return r;
}

/* The place of a tensor among operands, or -1. */
static int placeof(const Tensor *t, const Arg in[], int n) {
  for (int j = 0; j < n; j++)
    if (in[j].t && in[j].t == t) return j;
  return -1;
}

/* Has an operand of the record a role that it has not among these? */
static int misplaced(const Arg in[], int n) {
  char role[ROLE];
  for (int i = 0; i < record.n; i++) {
    const Operand *o = &record.operand[i];
    int same = 0;
    if (strcmp(o->role, "self") != 0 && strncmp(o->role, "arg ", 4) != 0)
      continue;
    for (int j = 0; j < n; j++)
      same |= in[j].t && in[j].t == o->identity &&
              strcmp(o->role, roleof(role, j)) == 0;
    if (!same) return 1;
  }
  return 0;
}

/* A role before a number is the word for that: "index -3". */
static int counts(const char *s) {
  s += strspn(s, " -");
  return isdigit((unsigned char)*s);
}

/* The operand of the record whose role stands at s, or NULL. */
static const Operand *roleat(const char *s) {
  for (int i = 0; i < record.n; i++) {
    const size_t len = strlen(record.operand[i].role);
    if (strncmp(s, record.operand[i].role, len) == 0 &&
        !isalnum((unsigned char)s[len]) && s[len] != '_' && !counts(s + len))
      return &record.operand[i];
  }
  return NULL;
}

/* Writes s with the roles that these operands have to text; 0: it speaks of a
   tensor that is none of them. */
static int reworded(char *text, size_t size, const char *s, const Arg in[],
                    int n) {
  const char *start = s;
  size_t at = 0;
  while (*s && at + ROLE < size) {
    const int first = s == start || !isalnum((unsigned char)s[-1]);
    const Operand *o = first ? roleat(s) : NULL;
    const int j = o ? placeof(o->identity, in, n) : -1;
    if (o && j < 0) return 0;
    if (o) {
      at += strlen(roleof(text + at, j));
      s += strlen(o->role);
    } else text[at++] = *s++;
  }
  text[at] = '\0';
  return 1;
}

void nc_error_rename(const char *op, const Arg in[], int n) {
  const int inner = record.op[0] && strcmp(record.op, op) != 0;
  char text[sizeof record.text], hint[sizeof record.hint];
  const Device *d;
  int tensors = 0;
  if (record.op[0] == '\0') nc_error_op(op);
  if (record.n == 0 || record.code == NC_EINTR || record.first[0]) return;
  for (int j = 0; j < n; j++) tensors += in[j].t != NULL;
  if (tensors && (inner || misplaced(in, n)) &&
      reworded(text, sizeof text, record.text, in, n)) {
    memcpy(record.text, text, sizeof text);
    nc_hint("%s", reworded(hint, sizeof hint, record.hint, in, n) ? hint : "");
    record.n = 0;
    if (record.code == NC_EDEVICE) nc_samedevice(&d, in, n); /* its hint */
  }
  nc_error_op(op);
  nc_error_call(record.code, op, in, n);
}
