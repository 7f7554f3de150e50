/* SPDX-License-Identifier: MIT */
/*
** fused_grad.c - gradients of a fused part: one node that keeps the operands.
*/
#include "core/fusion/fusion_internal.h"

int nc_fusion_record(Fusion *f, Part *p, const Scalar number[],
                     Tensor *const operand[], Tensor *result[]) {
  (void)f;
  nc_context->no_grad++;
  int r = nc_fusion_execute(p, number, operand, result);
  nc_context->no_grad--;
  return r;
}

void nc_fusion_drop_gradient(Part *p) {
  (void)p;
}
