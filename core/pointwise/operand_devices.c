/* SPDX-License-Identifier: MIT */
/*
** operand_devices.c - the one device on which an operation runs.
*/
#include "core/op.h"
#include "core/trace_internal.h"

/* Returns whether a tensor counts as a number, which any device accepts: a
   0-d tensor on the host. */
static int is_host_scalar(const Tensor *t) {
  return t->nd == 0 && nc_device(t) == &nc_cpu;
}

/* Fails: operands i and j are on devices a and b. */
static int fail_devices(int i, int j, const Device *a, const Device *b) {
  if (nc_ismeta(a) != nc_ismeta(b) && a != &nc_meta && b != &nc_meta)
    return nc_fail(NC_EDEVICE,
                   "one operand belongs to a dry run and has no values");
  nc_fail(NC_EDEVICE, "operands are on different devices");
  nc_rule("one operation runs on one device");
  nc_hint("%s:to(\"%s\"), or %s:to(\"%s\")", nc_operandtext(j), a->name,
          nc_operandtext(i), b->name);
  return NC_EDEVICE;
}

/* *d = the one device of the tensors in[]; with `numbers' 0-d tensors of the
   host do not count. */
static int common_device(const Device **d, const Arg in[], int n, int numbers) {
  int first = -1;
  *d = &nc_cpu;
  for (int j = 0; j < n; j++) {
    const Tensor *t = in[j].t;
    if (t == NULL || (numbers && is_host_scalar(t))) continue;
    if (first >= 0 && nc_device(t) != *d)
      return fail_devices(first, j, *d, nc_device(t));
    if (first < 0) first = j;
    *d = nc_device(t);
  }
  return NC_OK;
}

int nc_samedevice(const Device **d, const Arg in[], int n) {
  return common_device(d, in, n, 1);
}

int nc_onedevice(const Device **d, const Arg in[], int n) {
  return common_device(d, in, n, 0);
}
