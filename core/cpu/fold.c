/* SPDX-License-Identifier: MIT */
/*
** fold.c - folds dense elements of another process into those of this one, by
** the loops of pointwise operations: nan wins, integers wrap, and halves are
** converted in blocks that stay in the cache.
*/
#include "core/cpu/cpu.h"
#include "core/cpu/cursor.h"
#include "core/cpu/kernels/kernels.h"
#include "core/ops.h"
#include "core/transport.h"

static const Op fold_ops[FOLD_COUNT] = {
  [FOLD_sum] = OP_add,          [FOLD_prod] = OP_mul,
  [FOLD_min] = OP_minimum,      [FOLD_max] = OP_maximum,
  [FOLD_band] = OP_bitwise_and, [FOLD_bor] = OP_bitwise_or,
  [FOLD_bxor] = OP_bitwise_xor
};

/* Bools are bytes of 0 or 1. */
static const Op bool_ops[FOLD_COUNT] = {
  [FOLD_sum] = OP_bitwise_or,   [FOLD_prod] = OP_bitwise_and,
  [FOLD_min] = OP_bitwise_and,  [FOLD_max] = OP_bitwise_or,
  [FOLD_band] = OP_bitwise_and, [FOLD_bor] = OP_bitwise_or,
  [FOLD_bxor] = OP_bitwise_xor
};

/* The same for a dtype whose elements kernels of type c do not read. */
static void fold_converted(DType t, KernelType c, Op op, char *acc,
                           const char *x, int64_t n) {
  const Kernels *k = nc_kernels();
  const int64_t size = nc_dtypesize(t);
  _Alignas(64) char a[NC_BLOCK * 8], b[NC_BLOCK * 8];
  void *v[4] = { a, a, b, NULL }; /* the loops read v[3], too */
  const double par[2] = { 1, 0 }; /* add is a + p*b */
  for (int64_t i = 0; i < n; i += NC_BLOCK) {
    const int64_t m = n - i < NC_BLOCK ? n - i : NC_BLOCK;
    k->load[c][t](a, acc + i * size, 1, m);
    k->load[c][t](b, x + i * size, 1, m);
    k->pointwise[op][c](m, v, par);
    k->store[c][t](acc + i * size, a, 1, m);
  }
}

void nc_fold_into(DType t, CollFold fold, void *acc, const void *x, int64_t n) {
  const KernelType c = nc_kernel_type(t);
  const Op op = t == DT_b8 ? bool_ops[fold] : fold_ops[fold];
  const double par[2] = { 1, 0 }; /* add is a + p*b */
  void *v[4] = { acc, acc, (void *)x, NULL };
  if (nc_is_complex(t)) /* sums and products only */
    nc_kernels()->of_complex[t == DT_c128].pointwise[op](n, v, par);
  else if (t == DT_b8 || nc_kernel_dtype(c) == t)
    nc_kernels()->pointwise[op][c](n, v, par);
  else fold_converted(t, c, op, acc, x, n);
}
