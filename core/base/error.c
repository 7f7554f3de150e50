/* SPDX-License-Identifier: MIT */
/*
** error.c - the error record of the last failure, one for each thread
** (error.h).  Operations fill it with nc_fail; the binding reads it with
** nc_lasterror.
*/
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/op.h"
#include "core/trace_internal.h"

/* In a stored text a placeholder {j} is this byte, which no text contains,
   followed by the digit. */
#define PLACEHOLDER '\2'
/* The digit of {out}. */
#define OUT 9

static _Thread_local Error record;

/* Returns whether the character controls a terminal: control characters,
   line separators, marks of the writing direction. */
static int controls_terminal(uint32_t c) {
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Messages contain names from files and users: replaces what controls a
   terminal, or is not UTF-8, by \xNN. */
static void escape_controls(char *text, size_t room) {
  char escaped[sizeof record.text];
  size_t n = strlen(text), used = 0, k;
  uint32_t c = 0;
  for (k = 0;
       k < n && !controls_terminal((unsigned char)text[k]) && text[k] > 0;)
    k++;
  if (k == n) return;
  for (size_t i = 0; i < n && used + 8 < room; i += k ? k : 1) {
    if (text[i] == PLACEHOLDER && isdigit((unsigned char)text[i + 1])) {
      memcpy(escaped + used, text + i, k = 2), used += 2;
      continue;
    }
    k = nc_utf8(&c, text + i, n - i);
    if (k && !controls_terminal(c))
      memcpy(escaped + used, text + i, k), used += k;
    else
      for (size_t j = 0; j < (k ? k : 1) && used + 8 < room; j++)
        used += (size_t)snprintf(escaped + used, 5, "\\x%02x",
                                 (unsigned char)text[i + j]);
  }
  memcpy(text, escaped, used);
  text[used] = '\0';
}

/* Changes "-nan" to "nan": C prints the sign of a nan, which says nothing. */
static void drop_nan_signs(char *text) {
  for (char *p = text; (p = strstr(p, "-nan")) != NULL; p++) {
    if (p > text && (p[-1] == '-' || isalnum((unsigned char)p[-1]))) continue;
    if (!isalnum((unsigned char)p[4])) memmove(p, p + 1, strlen(p));
  }
}

/* Changes "1 dimensions", which many formats print, to "1 dimension". */
static void agree(char *text) {
  static const char many[] = "1 dimensions";
  for (char *p = text; (p = strstr(p, many)) != NULL; p++) {
    char *last = p + sizeof many - 2;
    if (p > text && isalnum((unsigned char)p[-1])) continue;
    memmove(last, last + 1, strlen(last));
  }
}

/* Replaces {j} and {out} in a format by the placeholder. */
static void markplaceholders(char *out, size_t room, const char *fmt) {
  size_t n = 0;
  while (*fmt && n + 2 < room) {
    if (fmt[0] == '{' && isdigit((unsigned char)fmt[1]) && fmt[2] == '}') {
      out[n++] = PLACEHOLDER;
      out[n++] = fmt[1];
      fmt += 3;
    } else if (strncmp(fmt, "{out}", 5) == 0) {
      out[n++] = PLACEHOLDER;
      out[n++] = '0' + OUT;
      fmt += 5;
    } else out[n++] = *fmt++;
  }
  out[n] = '\0';
}

static void print(char *text, size_t room, const char *fmt, va_list args) {
  char marked[sizeof record.text];
  markplaceholders(marked, sizeof marked, fmt);
  nc_vformat(text, room, marked, args);
  drop_nan_signs(text);
  escape_controls(text, room);
}

int nc_fail(int code, const char *fmt, ...) {
  va_list args;
  record.code = code;
  record.op[0] = record.rule[0] = record.hint[0] = record.first[0] = '\0';
  record.node = 0;
  record.rank = -1;
  record.host[0] = '\0';
  record.name[0] = record.got[0] = '\0';
  record.n = record.partly = record.final = record.cause = 0;
  va_start(args, fmt);
  print(record.text, sizeof record.text, fmt, args);
  va_end(args);
  agree(record.text);
  return code;
}

void nc_rule(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  print(record.rule, sizeof record.rule, fmt, args);
  va_end(args);
}

void nc_hint(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  print(record.hint, sizeof record.hint, fmt, args);
  va_end(args);
}

void nc_error_node(uintptr_t node) {
  record.node = node;
}

void nc_error_peer(int rank, const char *host) {
  record.rank = rank;
  snprintf(record.host, sizeof record.host, "%s", host);
}

void nc_error_first(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  print(record.first, sizeof record.first, fmt, args);
  va_end(args);
}

void nc_cause(Cause c) {
  record.cause = c.kind;
  snprintf(record.name, sizeof record.name, "%s", c.name ? c.name : "");
  snprintf(record.got, sizeof record.got, "%s", c.got ? c.got : "");
}

#define X(name) #name,
const char *const nc_causenames[] = { "", NC_CAUSES(X) NULL };
#undef X

void nc_error_operand(const char *role, const Tensor *t) {
  Operand *o = &record.operand[record.n];
  if (record.n == NC_MAXERROROPERANDS) return;
  record.n++;
  snprintf(o->role, sizeof o->role, "%s", role);
  o->position = -1;
  o->fills = 0;
  o->note[0] = '\0';
  o->identity = t;
  o->dtype = t->dtype;
  o->nd = t->nd;
  memcpy(o->size, t->size, sizeof o->size);
  o->device = nc_device(t)->name;
  o->isview = t->data->refs > 1 && !nc_isdense(t);
}

void nc_error_element(int i, const Tensor *t) {
  char role[sizeof record.operand->role];
  snprintf(role, sizeof role, "[%d]", i + 1);
  nc_error_operand(role, t);
}

void nc_error_out(const Tensor *t) {
  const int i = record.n;
  nc_error_operand("out", t);
  if (i < record.n) record.operand[i].fills = 1u << OUT;
}

void nc_error_forget(const Tensor *t) {
  int n = 0;
  for (int i = 0; i < record.n; i++)
    if (record.operand[i].identity != t)
      record.operand[n++] = record.operand[i];
  record.n = n;
}

void nc_error_note(const char *fmt, ...) {
  Operand *o = &record.operand[record.n - 1];
  va_list args;
  va_start(args, fmt);
  if (record.n > 0) nc_vformat(o->note, sizeof o->note, fmt, args);
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

const char *nc_errname(int code) {
#define X(name, text) #name,
  static const char *const names[] = { "OK", NC_ERRORS(X) };
#undef X
  return code >= 0 && code < NC_ERRCOUNT ? names[code] : "?";
}

/*
** The operation that failed, and its operands
*/
void nc_error_final(void) {
  record.final = 1;
}

static const char *const usualrole[NC_MAXARG] = { "self",  "arg 1", "arg 2",
                                                  "arg 3", "arg 4", "arg 5",
                                                  "arg 6", "arg 7" };

const char *nc_operandtext(int j) {
  static const char *const text[NC_MAXARG] = { NC_OPERAND(0), NC_OPERAND(1),
                                               NC_OPERAND(2), NC_OPERAND(3),
                                               NC_OPERAND(4), NC_OPERAND(5),
                                               NC_OPERAND(6), NC_OPERAND(7) };
  return text[j];
}

void nc_error_operandat(int j, const char *role, const Tensor *t) {
  const int i = record.n;
  nc_error_operand(role, t);
  if (i == record.n) return;
  record.operand[i].position = j;
  record.operand[i].fills = 1u << j;
}

void nc_error_name(int j, const char *role) {
  for (int i = 0; i < record.n; i++) {
    Operand *o = &record.operand[i];
    if (o->position == j && strcmp(o->role, usualrole[j]) == 0)
      snprintf(o->role, sizeof o->role, "%s", role);
  }
}

/* Adds the tensors of in[] as operands; operand j fills placeholder j. */
static void attach(const Arg in[], int n) {
  for (int j = 0; j < n; j++)
    if (in[j].t) nc_error_operandat(j, usualrole[j], in[j].t);
}

static int ismentioned(const char *text, unsigned placeholders) {
  for (; *text; text++)
    if (*text == PLACEHOLDER && placeholders >> (text[1] - '0') & 1) return 1;
  return 0;
}

/* Returns which operand of an outer operation the operand o is, or -1.  If a
   tensor occurs twice, prefers the number that o had. */
static int positionof(const Operand *o, const Arg in[], int n) {
  for (int j = 0; j < n; j++)
    if (in[j].t && in[j].t == o->identity && o->fills >> j & 1) return j;
  for (int j = 0; j < n; j++)
    if (in[j].t && in[j].t == o->identity) return j;
  return -1;
}

/* Replaces the operands of an inner operation by those of the outer one,
   unless the text mentions a tensor that is no operand of the outer one.  The
   tensor to write to stays in any case. */
static void replaceoperands(const Arg in[], int n) {
  const int ninner = record.n;
  const Tensor *out = NULL;
  unsigned fills[NC_MAXARG] = { 0 };
  int tensors = 0;
  for (int j = 0; j < n; j++) tensors += in[j].t != NULL;
  for (int i = 0; i < ninner; i++) {
    const Operand *o = &record.operand[i];
    const int at = positionof(o, in, n);
    if (o->fills == 0 || tensors == 0) return;
    if (at >= 0) fills[at] |= o->fills;
    else if (o->fills == 1u << OUT) out = o->identity;
    else if (ismentioned(record.text, o->fills) ||
             ismentioned(record.hint, o->fills))
      return;
  }
  record.n = 0;
  attach(in, n);
  for (int i = 0, j = 0; i < record.n; i++, j++) {
    while (in[j].t == NULL) j++;
    record.operand[i].fills = fills[j];
  }
  if (out) nc_error_out(out);
}

int nc_error_call(int r, const char *op, const Arg *in, int n) {
  if (r == NC_OK || r == NC_EINTR || record.final) return r;
  if (record.n == 0) attach(in, n);
  else replaceoperands(in, n);
  nc_error_op(op);
  return r;
}

/*
** Reading the record
*/
static const char *roleof(const Error *e, char placeholder) {
  const int j = placeholder - '0';
  for (int i = 0; i < e->n; i++)
    if (e->operand[i].fills >> j & 1) return e->operand[i].role;
  return j == OUT ? "out" : usualrole[j % NC_MAXARG];
}

char *nc_error_fill(char *out, size_t room, const Error *e, const char *text) {
  size_t n = 0;
  for (; *text && n + sizeof e->operand->role < room; text++)
    if (*text == PLACEHOLDER && isdigit((unsigned char)text[1])) {
      const char *role = roleof(e, *++text);
      memcpy(out + n, role, strlen(role));
      n += strlen(role);
    } else out[n++] = *text;
  if (*text) { /* cut: not inside a character of UTF-8 */
    while (n > 0 && ((unsigned char)out[n - 1] & 0xc0) == 0x80) n--;
    if (n > 0 && (unsigned char)out[n - 1] >= 0xc0) n--;
  }
  out[n] = '\0';
  return out;
}

void nc_error_restore(const Error *e) {
  record = *e;
}

const Error *nc_lasterror(void) {
  return &record;
}
