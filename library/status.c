/* SPDX-License-Identifier: MIT */
/* status.c - errors, versions, settings of libnacre. */
#include <stdarg.h>
#include <stdio.h>

#include "library/libnacre.h"
#include "core/autograd.h"

#define X(name, text)                                              \
  _Static_assert((int)NC_##name == (int)NACRE_##name, "the codes " \
                                                      "differ");
NC_ERRORS(X)
#undef X

int lib_settle(int status) {
  if (status == NC_EINTR) nc_interrupted = 0;
  return status;
}

int lib_refuse(const char *op, const char *fmt, ...) {
  char text[400];
  va_list args;
  va_start(args, fmt);
  nc_vformat(text, sizeof text, fmt, args);
  va_end(args);
  nc_fail(NC_EVALUE, "%s", text);
  nc_error_op(op);
  return NC_EVALUE;
}

/* The last error of this thread as text. */
const char *nacre_error(void) {
  static _Thread_local char text[sizeof((Error *)0)->text + 64];
  const Error *e = nc_lasterror();
  char filled[sizeof e->text];
  nc_error_fill(filled, sizeof filled, e, e->text);
  snprintf(text, sizeof text, "%s%s%s", e->op, e->op[0] ? ": " : "", filled);
  return text;
}

const char *nacre_error_hint(void) {
  static _Thread_local char text[sizeof((Error *)0)->hint + 64];
  return nc_error_fill(text, sizeof text, nc_lasterror(), nc_lasterror()->hint);
}

const char *nacre_version(void) {
  return NC_VERSION;
}

void nacre_seed(uint64_t seed) {
  nc_seed(&nc_context->generator, seed);
}

void nacre_threads(int n) {
  nc_setthreads(n);
}

int nacre_synchronize(void) {
  return lib_settle(nc_synchronize());
}

void nacre_interrupt(void) {
  nc_interrupted = 1;
}

/*
** Gradients
*/
void nacre_record(int yes) {
  nc_context->no_grad = !yes;
}

int nacre_require_grad(nacre_tensor *t, int yes) {
  return lib_settle(nc_set_requires_grad(t, yes != 0));
}

/* The graph may have functions of Lua in it. */
static int backward_in_lua(nacre_tensor *t) {
  const nacre_arg self = nacre_t(t);
  return lib_call_lua("backward", NULL, 0, &self, 1);
}

int nacre_backward(nacre_tensor *t) {
  if (lib_uses_lua()) return lib_settle(backward_in_lua(t));
  const Backward b = { .n = 1, .output = &t };
  return lib_settle(nc_backward(&b));
}

int nacre_grad(nacre_tensor **grad, const nacre_tensor *t) {
  *grad = nc_grad(t);
  if (*grad) nc_retain(*grad);
  return NC_OK;
}
