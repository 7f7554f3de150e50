/* SPDX-License-Identifier: MIT */
/*
** lapack.h - factorizations of matrices by a LAPACK, which is opened at its
** first use.  One list of functions serves both types: Fortran takes every
** argument by its address.  Matrices lie column by column.
*/
#ifndef core_cpu_product_lapack_h
#define core_cpu_product_lapack_h

#include "core/tensor.h"

typedef const int *Int;
typedef const char *Flag;

/* The last arguments are the lengths of the flags.  What all types have, though
   for complex ones orgqr and ormqr are called ungqr and unmqr. */
#define LAPACK(X)                                                             \
  X(getrf, (Int m, Int n, void *a, Int lda, int *ipiv, int *info))            \
  X(getrs, (Flag trans, Int n, Int nrhs, const void *a, Int lda, Int ipiv,    \
            void *b, Int ldb, int *info, size_t))                             \
  X(getri, (Int n, void *a, Int lda, Int ipiv, void *work, Int lwork,         \
            int *info))                                                       \
  X(potrf, (Flag uplo, Int n, void *a, Int lda, int *info, size_t))           \
  X(geqrf, (Int m, Int n, void *a, Int lda, void *tau, void *work, Int lwork, \
            int *info))                                                       \
  X(orgqr, (Int m, Int n, Int k, void *a, Int lda, const void *tau,           \
            void *work, Int lwork, int *info))                                \
  X(ormqr, (Flag side, Flag trans, Int m, Int n, Int k, const void *a,        \
            Int lda, const void *tau, void *c, Int ldc, void *work,           \
            Int lwork, int *info, size_t, size_t))                            \
  X(trsm, (Flag side, Flag uplo, Flag trans, Flag diag, Int m, Int n,         \
           const void *alpha, const void *a, Int lda, void *b, Int ldb,       \
           size_t, size_t, size_t, size_t))

#define REAL_LAPACK(X)                                                        \
  X(geev, (Flag jobvl, Flag jobvr, Int n, void *a, Int lda, void *wr,         \
           void *wi, void *vl, Int ldvl, void *vr, Int ldvr, void *work,      \
           Int lwork, int *info, size_t, size_t))                             \
  X(syevd, (Flag jobz, Flag uplo, Int n, void *a, Int lda, void *w,           \
            void *work, Int lwork, int *iwork, Int liwork, int *info, size_t, \
            size_t))                                                          \
  X(gesdd, (Flag jobz, Int m, Int n, void *a, Int lda, void *s, void *u,      \
            Int ldu, void *vt, Int ldvt, void *work, Int lwork, int *iwork,   \
            int *info, size_t))                                               \
  X(gelsd, (Int m, Int n, Int nrhs, void *a, Int lda, void *b, Int ldb,       \
            void *s, const void *rcond, int *rank, void *work, Int lwork,     \
            int *iwork, int *info))

/* With rwork, of reals. */
#define COMPLEX_LAPACK(X)                                                     \
  X(geev, (Flag jobvl, Flag jobvr, Int n, void *a, Int lda, void *w,          \
           void *vl, Int ldvl, void *vr, Int ldvr, void *work, Int lwork,     \
           void *rwork, int *info, size_t, size_t))                           \
  X(heevd, (Flag jobz, Flag uplo, Int n, void *a, Int lda, void *w,           \
            void *work, Int lwork, void *rwork, Int lrwork, int *iwork,       \
            Int liwork, int *info, size_t, size_t))                           \
  X(gesdd, (Flag jobz, Int m, Int n, void *a, Int lda, void *s, void *u,      \
            Int ldu, void *vt, Int ldvt, void *work, Int lwork, void *rwork,  \
            int *iwork, int *info, size_t))                                   \
  X(gelsd, (Int m, Int n, Int nrhs, void *a, Int lda, void *b, Int ldb,       \
            void *s, const void *rcond, int *rank, void *work, Int lwork,     \
            void *rwork, int *iwork, int *info))

#define X(name, args) void (*name) args;
typedef struct RealLapack {
  REAL_LAPACK(X)
} RealLapack;
typedef struct ComplexLapack {
  COMPLEX_LAPACK(X)
} ComplexLapack;
typedef struct Lapack {
  LAPACK(X)
  RealLapack real;
  ComplexLapack of_complex;   /* one of the two is set */
} Lapack;
#undef X

/* *l = the functions for float32, float64 or a complex type. */
int nc_lapack(const Lapack **l, DType type);

#endif
