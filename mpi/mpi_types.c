/* SPDX-License-Identifier: MIT */
/*
** mpi_types.c - dtypes and folds as MPI has them.  Folds are the core's except
** sum and prod of the usual types, which a network may know: MPI has no halves,
** leaves open whether nan wins, and Open MPI 4.1 saturates sums of short
** integers, as MPICH 4.0 takes uint8 for signed in min.
*/
#include "mpi/mpi_transport.h"

static MPI_Datatype type[DT_COUNT];
static MPI_Op op[DT_COUNT][FOLD_COUNT];

#define OWN_FOLD(t, f)                                                    \
  static void t##_##f(void *x, void *acc, int *n, MPI_Datatype *unused) { \
    (void)unused;                                                         \
    tp_core->fold(DT_##t, FOLD_##f, acc, x, *n);                          \
  }
#define BITS(t) OWN_FOLD(t, band) OWN_FOLD(t, bor) OWN_FOLD(t, bxor)
#define ORDER(t) OWN_FOLD(t, min) OWN_FOLD(t, max)
#define SUMS(t) OWN_FOLD(t, sum) OWN_FOLD(t, prod)

/* clang-format off */
SUMS(b8) ORDER(b8) BITS(b8)
SUMS(u8) ORDER(u8) BITS(u8)
SUMS(i8) ORDER(i8) BITS(i8)
SUMS(i16) ORDER(i16) BITS(i16)
ORDER(i32) BITS(i32)
ORDER(i64) BITS(i64)
SUMS(f16) ORDER(f16)
SUMS(bf16) ORDER(bf16)
ORDER(f32)
ORDER(f64)

#define OWN_SUMS(t) [FOLD_sum] = t##_sum, [FOLD_prod] = t##_prod
#define OWN_ORDER(t) [FOLD_min] = t##_min, [FOLD_max] = t##_max
#define OWN_BITS(t) \
  [FOLD_band] = t##_band, [FOLD_bor] = t##_bor, [FOLD_bxor] = t##_bxor

static MPI_User_function *const own[DT_COUNT][FOLD_COUNT] = {
  [DT_b8] = { OWN_SUMS(b8), OWN_ORDER(b8), OWN_BITS(b8) },
  [DT_u8] = { OWN_SUMS(u8), OWN_ORDER(u8), OWN_BITS(u8) },
  [DT_i8] = { OWN_SUMS(i8), OWN_ORDER(i8), OWN_BITS(i8) },
  [DT_i16] = { OWN_SUMS(i16), OWN_ORDER(i16), OWN_BITS(i16) },
  [DT_i32] = { OWN_ORDER(i32), OWN_BITS(i32) },
  [DT_i64] = { OWN_ORDER(i64), OWN_BITS(i64) },
  [DT_f16] = { OWN_SUMS(f16), OWN_ORDER(f16) },
  [DT_bf16] = { OWN_SUMS(bf16), OWN_ORDER(bf16) },
  [DT_f32] = { OWN_ORDER(f32) },
  [DT_f64] = { OWN_ORDER(f64) }
};
/* clang-format on */

static int ishalf(int t) {
  return t == DT_f16 || t == DT_bf16;
}

/* The constants of MPI may be addresses, known only at run time. */
int tp_open_types(void) {
  const MPI_Datatype types[DT_COUNT] = {
    [DT_b8] = MPI_UINT8_T,  [DT_u8] = MPI_UINT8_T,  [DT_i8] = MPI_INT8_T,
    [DT_i16] = MPI_INT16_T, [DT_i32] = MPI_INT32_T, [DT_i64] = MPI_INT64_T,
    [DT_f16] = MPI_BYTE,    [DT_bf16] = MPI_BYTE,   [DT_f32] = MPI_FLOAT,
    [DT_f64] = MPI_DOUBLE
  };
  for (int t = 0; t < DT_COUNT; t++) {
    type[t] = types[t];
    if (ishalf(t)) {
      MPI(MPI_Type_contiguous(2, MPI_BYTE, &type[t]));
      MPI(MPI_Type_commit(&type[t]));
    }
    for (int f = 0; f < FOLD_COUNT; f++) {
      op[t][f] = f == FOLD_sum ? MPI_SUM : MPI_PROD;
      if (own[t][f]) MPI(MPI_Op_create(own[t][f], 1, &op[t][f]));
    }
  }
  return NC_OK;
}

void tp_close_types(void) {
  for (int t = 0; t < DT_COUNT; t++) {
    for (int f = 0; f < FOLD_COUNT; f++)
      if (own[t][f]) MPI_Op_free(&op[t][f]);
    if (ishalf(t)) MPI_Type_free(&type[t]);
  }
}

MPI_Datatype tp_type(DType t) {
  return type[t];
}

MPI_Op tp_op(DType t, CollFold f) {
  return op[t][f];
}

int64_t tp_bytes(DType t) {
#define X(id, name, storage, category) sizeof(storage),
  static const int64_t bytes[] = { DTYPES(X) };
#undef X
  return bytes[t];
}
