/* SPDX-License-Identifier: MIT */
/*
** launch.h - what pointwise.c plans for the kernels of this folder, which are
** compiled once for each type.
*/
#ifndef cuda_pointwise_launch_h
#define cuda_pointwise_launch_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NC_ROWBLOCK 128       /* threads of a block */
#define NC_EACH 4             /* elements of a thread, if not vectors */

/*
** Maps by vectors.  All operands are of one type of storage, a condition and
** truth values being bytes.  Along dimension 0 an operand runs with step 1,
** aligned, or stands still (its bit in `still' is set).  `at' counts in
** vectors; without dimensions all is dense, and `tail' elements follow.
*/
typedef struct VectorMap {
  char *p[NC_MAXIN];          /* NULL: a number */
  uint64_t number[NC_MAXIN];  /* 8 bytes full of its element */
  uint64_t par[2];            /* p and q in the type of computation */
  uint32_t n, tail;           /* vectors, elements after them */
  uint32_t still;
  uint32_t truth;             /* every result becomes 0 or 1 */
  Offsets at;
} VectorMap;

/* Maps one by one: any types, any steps.  An operand whose bit in `via' is
   set first becomes what the type `work' makes of it. */
typedef struct StridedMap {
  char *p[NC_MAXIN];
  uint64_t number[NC_MAXIN];  /* in the type of computation */
  uint64_t par[2];
  uint32_t n;
  uint32_t via;
  int32_t work;
  int32_t type[NC_MAXIN];
  Offsets at;
} StridedMap;

/* Gives cudaErrorInvalidDeviceFunction if the row has no such kernel. */
typedef cudaError_t VectorLauncher(int op, const VectorMap *a,
                                   cudaStream_t stream);
typedef cudaError_t StridedLauncher(int op, const StridedMap *a,
                                    cudaStream_t stream);

/* types of storage, and those that are computed in */
#define NC_STOREDTYPES(X) \
  X(u8) X(i8) X(i16) X(i32) X(i64) X(f16) X(bf16) X(f32) X(f64)
#define NC_COMPUTEDTYPES(X) X(u8) X(i32) X(i64) X(f32) X(f64)

#define X(t) VectorLauncher nc_vectors_##t;
NC_STOREDTYPES(X)
#undef X
#define X(t) StridedLauncher nc_strided_##t;
NC_COMPUTEDTYPES(X)
#undef X

/* Gradient `part' (1 ...) of a row: the operands are g and what its text
   names. */
typedef cudaError_t GradientLauncher(int op, int part, const StridedMap *a,
                                     cudaStream_t stream);
GradientLauncher nc_gradients_f32, nc_gradients_f64;

/*
** Copies.  From one type to another: dense, `n' times NC_CASTWIDTH elements
** and `tail' ones, each operand aligned to as many; or n elements any way.
*/
#define NC_CASTWIDTH 4

typedef struct Cast {
  const char *x;
  char *y;
  uint32_t n, tail;
  int32_t dense;
  Offsets at;                 /* of y and x */
} Cast;

cudaError_t nc_casts(int from, int to, const Cast *c, cudaStream_t stream);

/* Of elements of `size' bytes; y runs fastest along dimension 0 and x along
   dimension 1 of the two that are cut into tiles. */
typedef struct Transpose {
  const char *x;
  char *y;
  uint32_t size[2];
  uint64_t xstep[2], ystep[2];
  int32_t words;              /* all lies on bounds of 4 bytes, step 1 */
  Divisor tiles[2];           /* of nc_tile(...) elements each way */
  Offsets rest;               /* other dimensions, of y and x */
} Transpose;

#define nc_tile(size, words) ((words) ? 128 / (size) : (size) < 8 ? 64 : 32)

cudaError_t nc_transposes(int size, const Transpose *t, uint32_t batches,
                          cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
