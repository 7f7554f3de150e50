/* SPDX-License-Identifier: MIT */
/*
** launch.h - the interface between pointwise.c, which plans launches, and the
** .cu files of this folder, most of which are compiled once for each type.
**
** A launcher starts one kernel on the stream and returns the error of the
** launch.  The caller has called nc_record_use for all operands.
*/
#ifndef cuda_pointwise_launch_h
#define cuda_pointwise_launch_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

NC_C_BEGIN

#define NC_ROWBLOCK 128       /* threads of a block */
#define NC_EACH 4             /* elements of a thread without vectors */

/*
** A pointwise operation with vectorized loads and stores.  All operands have
** the same storage type, except that conditions and truth values are bytes.
** Along dimension 0 an operand is contiguous and aligned, or it is broadcast
** (its bit in `still' is set).  `at' counts in vectors.  If at.nd is 0, all
** operands are dense or broadcast, and `tail' single elements follow the n
** vectors.  Operand 0 is the result.
*/
typedef struct VectorMap {
  char *p[NC_MAXIN];          /* NULL: the operand is a number */
  uint64_t number[NC_MAXIN];  /* 8 bytes filled with its element */
  uint64_t par[2];            /* p and q in the compute type */
  uint32_t n, tail;           /* vectors, elements after them */
  uint32_t still;
  uint32_t truth;             /* the result is bool: store 0 or 1 */
  Offsets at;
} VectorMap;

/* A pointwise operation on single elements, of any types and strides.  An
   operand whose bit in `via' is set is first converted to the common dtype,
   which is narrower than the compute type. */
typedef struct StridedMap {
  char *p[NC_MAXIN];
  uint64_t number[NC_MAXIN];  /* in the compute type */
  uint64_t par[2];
  uint32_t n;
  uint32_t via;
  int32_t common_dtype;
  int32_t type[NC_MAXIN];
  Offsets at;
} StridedMap;

/* Launches v, or if it is NULL s, which is for a compute type.  Returns
   cudaErrorInvalidDeviceFunction if the operation has no kernel for the
   type. */
typedef cudaError_t PointwiseLauncher(int op, const VectorMap *v,
                                      const StridedMap *s,
                                      cudaStream_t stream);
#define X(t, ...) PointwiseLauncher nc_pointwise_##t;
NC_STOREDTYPES(X)
#undef X

/* Gradient `grad_index' (from 1: of which operand) of an operation.  The
   operands are g and those that its formula names. */
typedef cudaError_t GradientLauncher(int op, int grad_index,
                                     const StridedMap *a,
                                     cudaStream_t stream);
GradientLauncher nc_gradients_f32, nc_gradients_f64;

/*
** A pointwise operation over complex numbers, or the gradient of one.  An
** operand is of the complex type that is computed in, of the type of its parts,
** or bytes of truth.  Another complex or float type of the result is converted
** to.
*/
typedef enum ComplexForm { FORM_COMPLEX, FORM_REAL, FORM_TRUTH } ComplexForm;

typedef struct ComplexMap {
  char *p[NC_MAXIN];
  double number[NC_MAXIN][2]; /* its parts */
  double par[2];
  uint32_t n;
  int32_t conjugated;         /* a gradient is g*conj(dy/dx): conjugate g, which
                                 is complex, and the result */
  int32_t form[NC_MAXIN];
  int32_t type;               /* of the result */
  Offsets at;
} ComplexMap;

typedef cudaError_t ComplexLauncher(int op, int grad_index, const ComplexMap *a,
                                    cudaStream_t stream);
ComplexLauncher nc_complex_c64, nc_complex_c128;

/*
** Copies that convert types.  If `dense', n groups of NC_CASTWIDTH elements and
** then `tail' single ones, where x and y are aligned to a group; otherwise n
** elements with the strides in `at'.
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
/* The same, not `dense', where one of the types is a storage dtype. */
cudaError_t nc_storage_casts(int from, int to, const Cast *c,
                             cudaStream_t stream);

/* Copies between layouts.  Two dimensions are divided into tiles; y is
   contiguous along dimension 0 of these, x along dimension 1. */
typedef struct Transpose {
  const char *x;
  char *y;
  uint32_t size[2];
  uint64_t xstep[2], ystep[2];
  int32_t words;              /* copy in words: step 1, 4-byte aligned */
  Divisor tiles[2];           /* the number of tiles along each */
  Offsets rest;               /* the other dimensions, of y and x */
} Transpose;

/* The side of a tile in elements of `size' bytes. */
#define nc_tile(size, words) ((words) ? 128 / (size) : (size) < 8 ? 64 : 32)

cudaError_t nc_transposes(int size, const Transpose *t, uint32_t batches,
                          cudaStream_t stream);

NC_C_END

#endif
