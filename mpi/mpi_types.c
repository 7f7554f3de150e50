/* SPDX-License-Identifier: MIT */
/*
** mpi_types.c - dtypes and folds as MPI has them.  Folds are the core's except
** sum and prod of the usual types, which a network may know: MPI has no halves,
** leaves open whether nan wins, and Open MPI 4.1 saturates sums of short
** integers, as MPICH 4.0 takes uint8 for signed in min.  So MPI takes all other
** types for bytes.
*/
#include "mpi/mpi_transport.h"

static MPI_Datatype type[DT_COUNT];
static MPI_Op op[DT_COUNT][FOLD_COUNT];

#define OWN_FOLD(t, f)                                                    \
  static void t##_##f(void *x, void *acc, int *n, MPI_Datatype *unused) { \
    (void)unused;                                                         \
    tp_core->fold(DT_##t, FOLD_##f, acc, x, *n);                          \
  }

/* clang-format off */
#define X(id, name, storage, category)                                \
  OWN_FOLD(id, sum) OWN_FOLD(id, prod) OWN_FOLD(id, min)              \
  OWN_FOLD(id, max) OWN_FOLD(id, band) OWN_FOLD(id, bor)              \
  OWN_FOLD(id, bxor)
DTYPES(X)
#undef X

static MPI_User_function *const own[DT_COUNT][FOLD_COUNT] = {
#define X(id, name, storage, category)                                \
  { id##_sum, id##_prod, id##_min, id##_max, id##_band, id##_bor, id##_bxor },
  DTYPES(X)
#undef X
};
/* clang-format on */

int64_t tp_bytes(DType t) {
#define X(id, name, storage, category) sizeof(storage),
  static const int64_t bytes[] = { DTYPES(X) };
#undef X
  return bytes[t];
}

/* Sets the types that MPI computes with; its constants may be addresses, known
   only at run time. */
static int is_usual(DType t, MPI_Datatype *to) {
  switch (t) {
    case DT_i32: return *to = MPI_INT32_T, 1;
    case DT_i64: return *to = MPI_INT64_T, 1;
    case DT_f32: return *to = MPI_FLOAT, 1;
    case DT_f64: return *to = MPI_DOUBLE, 1;
    default: return 0;
  }
}

int tp_open_types(void) {
  for (int t = 0; t < DT_COUNT; t++) {
    const int usual = is_usual((DType)t, &type[t]);
    if (!usual) {
      MPI(MPI_Type_contiguous((int)tp_bytes((DType)t), MPI_BYTE, &type[t]));
      MPI(MPI_Type_commit(&type[t]));
    }
    for (int f = 0; f < FOLD_COUNT; f++)
      if (usual && (f == FOLD_sum || f == FOLD_prod))
        op[t][f] = f == FOLD_sum ? MPI_SUM : MPI_PROD;
      else MPI(MPI_Op_create(own[t][f], 1, &op[t][f]));
  }
  return NC_OK;
}

void tp_close_types(void) {
  for (int t = 0; t < DT_COUNT; t++) {
    const int usual = is_usual((DType)t, &type[t]);
    for (int f = 0; f < FOLD_COUNT; f++)
      if (!usual || (f != FOLD_sum && f != FOLD_prod)) MPI_Op_free(&op[t][f]);
    if (!usual) MPI_Type_free(&type[t]);
  }
}

MPI_Datatype tp_type(DType t) {
  return type[t];
}

MPI_Op tp_op(DType t, CollFold f) {
  return op[t][f];
}
