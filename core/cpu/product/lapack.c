/* SPDX-License-Identifier: MIT */
/*
** lapack.c - a LAPACK, opened when the first factorization needs it;
** core/ops/lapack_batch.c calls it.
*/
#include "core/cpu/product/lapack.h"
#include "core/library.h"

#include <stdio.h>
#include <string.h>

#include "core/cpu/product/blas.h"
#include "core/cpu/product/triangular.h"

static struct {
  int tried, found, found_complex;
  Lapack of[4]; /* float32, float64, complex64, complex128 */
} lapack;

static int find_symbol(void *f, void *handle, char type, const char *name) {
  const int complex = type == 'c' || type == 'z';
  char full[16];
  if (complex && strcmp(name, "orgqr") == 0) name = "ungqr";
  if (complex && strcmp(name, "ormqr") == 0) name = "unmqr";
  snprintf(full, sizeof full, "%c%s_", type, name);
  return nc_symbol(f, handle, full);
}

/* Ours are faster than an OpenBLAS's where our products are. */
static void replace_slow(void *handle) {
  enum { MANY = 512 };
  const char *(*name)(void);
  if (!nc_symbol(&name, handle, "openblas_get_corename") ||
      !nc_beats_blas(DT_f64, MANY, MANY))
    return;
  nc_replace_lapack(&lapack.of[0], DT_f32);
  nc_replace_lapack(&lapack.of[1], DT_f64);
}

#define FIND(to, name) \
  ok = ok && find_symbol(&(to).name, handle, "sdcz"[i], #name);
static int bind_complex(void *handle) {
  int ok = 1;
  for (int i = 2; i < 4; i++) {
#define X(name, args) FIND(lapack.of[i], name)
    LAPACK(X)
#undef X
#define X(name, args) FIND(lapack.of[i].of_complex, name)
    COMPLEX_LAPACK(X)
#undef X
  }
  return ok;
}

static int bind_symbols(void *handle) {
  int ok = 1;
  for (int i = 0; i < 2; i++) {
#define X(name, args) FIND(lapack.of[i], name)
    LAPACK(X)
#undef X
#define X(name, args) FIND(lapack.of[i].real, name)
    REAL_LAPACK(X)
#undef X
  }
  if (!ok) return 0;
  lapack.found_complex = bind_complex(handle);
  nc_set_one_thread(handle);
  if (!nc_take_blas_buffers(handle)) return 0;
  replace_slow(handle);
  return 1;
}

/* The BLAS comes first if it has a LAPACK: two libraries would use more memory,
   and their results might differ. */
static int find_library(void) {
  static const char *const names[] = {
    "libopenblas.so.0",
    "libopenblas.so",
    "libmkl_rt.so.2",
    "libmkl_rt.so",
    "liblapack.so.3",
    "liblapack.so",
    "libopenblas.dylib",
    "/System/Library/Frameworks/Accelerate.framework/Accelerate",
    NULL
  };
  if (nc_bind_blas(bind_symbols)) return 1;
  return nc_has_blas_room() && nc_openfirst(names, bind_symbols) != NULL;
}

int nc_lapack(const Lapack **l, DType type) {
  *l = NULL;
  if (!lapack.tried) {
    TRY(nc_openblas());
    lapack.found = nc_open_single(find_library);
    lapack.tried = 1;
  }
  if (!lapack.found && !nc_has_blas_room()) {
    lapack.tried = 0;
    nc_fail(NC_ENOMEM, "not enough memory to open a LAPACK library, which "
                       "matrix decompositions need: it maps 128 MiB");
    nc_hint("raise the limit of the process (ulimit -v)");
    return NC_ENOMEM;
  }
  if (!lapack.found) {
    nc_fail(NC_EFILE,
            "matrix decompositions need a LAPACK library, and none was found");
    nc_hint("install one (Debian: libopenblas0)");
    return NC_EFILE;
  }
  if (nc_is_complex(type) && !lapack.found_complex)
    return nc_fail(NC_EFILE, "this LAPACK library has no complex matrices");
  *l = &lapack.of[2 * nc_is_complex(type) + (nc_real_dtype(type) == DT_f64)];
  return NC_OK;
}
