/* SPDX-License-Identifier: MIT */
/*
** lapack.c - a LAPACK, opened when the first factorization needs it;
** core/ops/lapack_batch.c calls it.
*/
#include "core/cpu/product/lapack.h"
#include "core/library.h"

#include <stdio.h>

#include "core/cpu/product/blas.h"
#include "core/cpu/product/triangular.h"

static struct {
  int tried, found;
  Lapack of[2]; /* float32, float64 */
} lapack;

static int find_symbol(void *f, void *handle, char type, const char *name) {
  char full[16];
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

static int bind_symbols(void *handle) {
  int ok = 1;
  for (int i = 0; i < 2; i++) {
#define X(name, args) \
  ok = ok && find_symbol(&lapack.of[i].name, handle, i ? 'd' : 's', #name);
    LAPACK(X)
#undef X
  }
  if (!ok) return 0;
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
  *l = &lapack.of[type == DT_f64];
  return NC_OK;
}
